"""Fixtures: small runs of every task and an in-process test client of the viewer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from helpers import small_objects, small_recognition, small_run
from jostle.reporting.viewer.runs import RunCollection
from jostle.reporting.viewer.server import viewer_app
from jostle.reporting.viewer.store import MediaStore

PORT, TOKEN = 8123, "secret-of-the-test"
HOSTILE = "</script><img src=x onerror=alert(1)>\"'&"


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of finished runs by task (detection also mended), and of their source videos ("films")."""
    root = tmp_path_factory.mktemp("runs")
    (root / "films").mkdir()
    films = small_run.write_videos(root / "films")
    small_run.run(films, root / "detection")
    small_run.probe(films, root / "detection")
    small_run.mended_run(films, root / "mended")
    small_recognition.run(films, root / "recognition", cells=["all"])
    small_recognition.run(films, root / "frames", task="frames", cells=["clean", "gaussian_noise:2"])
    small_objects.run(films, root / "objects")
    return {name: root / name for name in ("detection", "mended", "recognition", "frames", "objects", "films")}


@pytest.fixture(scope="session")
def hostile_run(runs: dict[str, Path]) -> Path:
    """Detection run in which a label, a video and the model have HTML as names."""
    folder = runs["detection"].with_name("hostile")
    shutil.copytree(runs["detection"], folder, ignore=shutil.ignore_patterns("videos"))
    for path in (*folder.glob("*.json*"), *folder.glob("predictions/*")):
        text = path.read_text(encoding="utf-8")
        if path.name != "scores.json":
            for name in ("action", "a", "leaning"):
                text = text.replace(f'"{name}"', json.dumps(HOSTILE))
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MediaStore]:
    store = MediaStore(tmp_path / "cache")
    yield store
    store.close()


@pytest.fixture
def anonymous_client(runs: dict[str, Path], hostile_run: Path, store: MediaStore) -> Iterator[TestClient]:
    """Test client without the access token."""
    collection = RunCollection(
        [runs["detection"], runs["recognition"], runs["frames"], runs["objects"], runs["mended"], hostile_run]
    )
    app = viewer_app(collection, store, token=TOKEN, port=PORT)
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}", follow_redirects=False) as client:
        yield client


@pytest.fixture
def client(anonymous_client: TestClient) -> TestClient:
    """Test client that has the access cookie."""
    response = anonymous_client.get("/", params={"token": TOKEN})
    assert response.status_code == 303
    return anonymous_client
