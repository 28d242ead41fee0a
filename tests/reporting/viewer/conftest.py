"""Fixtures: small runs of every task and an in-process test client of the viewer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from helpers import small_objects, small_recognition, small_run
from helpers.served import PORT, TOKEN, renamed_run
from helpers.synthetic_runs import HOSTILE_LABEL, write_run
from jostle.reporting.viewer.runs import RunCollection
from jostle.reporting.viewer.server import viewer_app
from jostle.reporting.viewer.store import MediaStore

BLUR = "thumos14-c/motion_blur:3"


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
    for task in ("questions", "moments"):
        write_run(root / task, task, videos=6, cells=(BLUR,))
    return {path.name: path for path in root.iterdir()}


@pytest.fixture(scope="session")
def hostile_run(runs: dict[str, Path]) -> Path:
    """Detection run in which a label, a video and the model have HTML as names."""
    names = {f'"{name}"': json.dumps(HOSTILE_LABEL) for name in ("action", "a", "leaning")}
    return renamed_run(runs["detection"], names)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MediaStore]:
    store = MediaStore(tmp_path / "cache")
    yield store
    store.close()


@pytest.fixture
def open_viewer(store: MediaStore) -> Iterator[Callable[..., TestClient]]:
    """Return a function that opens a viewer of some runs, with the access cookie or without."""
    with ExitStack() as stack:

        def start(*runs: Path, cookie: bool = True, **options: Any) -> TestClient:
            app = viewer_app(RunCollection([*runs]), store, token=TOKEN, port=PORT)
            address = f"http://127.0.0.1:{PORT}"
            client = stack.enter_context(TestClient(app, base_url=address, follow_redirects=False, **options))
            if cookie:
                assert client.get("/", params={"token": TOKEN}).status_code == 303
            return client

        yield start


SERVED = ("detection", "recognition", "frames", "objects", "mended", "questions", "moments")


@pytest.fixture
def anonymous_client(open_viewer: Callable[..., TestClient], runs: dict[str, Path], hostile_run: Path) -> TestClient:
    """Test client without the access token."""
    return open_viewer(*(runs[name] for name in SERVED), hostile_run, cookie=False)


@pytest.fixture
def client(anonymous_client: TestClient) -> TestClient:
    """Test client that has the access cookie."""
    assert anonymous_client.get("/", params={"token": TOKEN}).status_code == 303
    return anonymous_client
