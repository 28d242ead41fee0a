"""Every route of the viewer: pages and their JSON, hostile paths and labels, media that disappear."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from starlette.testclient import TestClient

from helpers.served import PORT, TOKEN
from helpers.synthetic_runs import HOSTILE_LABEL
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import DRAWS, analyse_run
from jostle.reporting.analysis.verdict import verdict_of
from jostle.reporting.viewer import runs as runs_module
from jostle.reporting.viewer.server import _files

CELL = "thumos14-c-black_frame-3"
Viewer = Callable[..., TestClient]


def page_json(client: TestClient, path: str, *, within_s: float = 20.0) -> dict[str, Any]:
    """Return the JSON of a page, once the run has been analysed."""
    end = time.monotonic() + within_s
    while True:
        response = client.get(path)
        assert response.status_code == 200, response.text
        payload: dict[str, Any] = json.loads(response.text, parse_constant=pytest.fail)
        if payload["page"] != "waiting" and payload.get("surveyed", True) and payload.get("rank", 1) is not None:
            return payload
        assert time.monotonic() < end
        time.sleep(0.02)


def media_state(client: TestClient, address: str, *, within_s: float = 20.0) -> dict[str, Any]:
    end = time.monotonic() + within_s
    while (media := client.get(f"{address}.json").json())["state"] in ("waiting", "rendering"):
        assert 0 <= media["share"] <= 1
        assert time.monotonic() < end
        time.sleep(0.02)
    assert isinstance(media, dict)
    return media


def test_every_page_is_the_shell_with_json_beside_it(client: TestClient) -> None:
    shell = _files()["shell.html"].decode()
    for path, kind in (
        ("/runs/detection", "run"),
        (f"/runs/detection/cells/{CELL}", "cell"),
        (f"/runs/detection/cells/{CELL}/videos/a", "video"),
        ("/runs/detection/cells/clean/videos/a", "video"),
        ("/runs/detection/gallery", "gallery"),
        ("/runs/detection/probe", "probe"),
        ("/runs/recognition/cells/kinetics-c-motion_blur-1/videos/a", "video"),
        ("/runs/frames/cells/gaussian_noise-2/videos/a", "video"),
        ("/runs/objects/cells/gaussian_noise-3/videos/a", "video"),
    ):
        response = client.get(path)
        assert (response.status_code, response.text) == (200, shell)
        assert client.head(path).status_code == 200
        payload = page_json(client, f"{path}.json")
        assert (payload["format"], payload["page"]) == (1, kind)
    keys = [run["key"] for run in page_json(client, "/index.json")["runs"]]
    assert keys == ["detection", "recognition", "frames", "objects", "mended", "questions", "moments", "hostile"]


def test_run_page(client: TestClient, runs: dict[str, Path]) -> None:
    page = page_json(client, "/runs/detection.json")
    scores = json.loads((runs["detection"] / "scores.json").read_text())
    assert page["numbers"]["clean"]["value"] == scores["clean"]
    low, high = page["numbers"]["clean"]["interval"]
    assert low <= scores["clean"] <= high
    squares = {square["cell"]: square for row in page["rows"] for square in row["cells"] if square}
    assert {cell: square["value"] for cell, square in squares.items()} == {
        cell["cell"]: cell["value"] for cell in scores["cells"]
    }
    assert page["severities"] == [1, 3]
    record = RunRecord.read(runs["detection"])
    assert page["verdict"] == verdict_of(analyse_run(record, draws=DRAWS), "leaning")


def test_videos_of_a_cell_are_sorted_by_loss(client: TestClient) -> None:
    page = page_json(client, f"/runs/detection/cells/{CELL}.json")
    losses = [video["loss"] for video in page["videos"]]
    assert losses == sorted(losses, reverse=True)
    assert sorted(video["video"] for video in page["videos"]) == list("abcd")
    assert [one["severity"] for one in page["family"]] == [None, 1, 3]
    for video in page["videos"]:
        assert video["by_severity"][0] == video["clean"]
        assert video["by_severity"][2] == video["corrupted"]
    assert len(page_json(client, f"/runs/detection/cells/{CELL}.json?show=2")["videos"]) == 2
    for odd in ("-1", "x", "9" * 40, "²"):
        assert len(page_json(client, f"/runs/detection/cells/{CELL}.json?show={odd}")["videos"]) == 4


def test_video_page_of_detection(client: TestClient) -> None:
    order = [video["key"] for video in page_json(client, f"/runs/detection/cells/{CELL}.json")["videos"]]
    page = page_json(client, f"/runs/detection/cells/{CELL}/videos/{order[1]}.json")
    assert (page["rank"], page["of"], page["before"], page["after"]) == (2, 4, order[0], order[2])
    assert len(page["actions"]) == 1
    assert len(page["clean"]) == len(page["corrupted"]) == 2
    assert {"start", "end", "label", "score", "tiou", "kind", "action"} <= set(page["clean"][0])
    assert page["tiou"] == 0.5
    assert page_json(client, f"/runs/detection/cells/{CELL}/videos/a.json?tiou=0.7")["tiou"] == 0.7
    for odd in ("nan", "0", "2", "-1", "x", "inf"):
        assert page_json(client, f"/runs/detection/cells/{CELL}/videos/a.json?tiou={odd}")["tiou"] == 0.5
    clean = page_json(client, "/runs/detection/cells/clean/videos/a.json")
    assert clean["corrupted"] == []
    assert clean["media"]["corrupted"] is None


def test_video_is_rendered_on_request(client: TestClient) -> None:
    address = f"/media/detection/{CELL}/a"
    early = client.get(f"{address}.mp4")
    assert (early.status_code, early.headers["retry-after"]) == (503, "1")
    assert client.get(f"{address}.jpg").status_code == 503
    media = media_state(client, address)
    assert (media["state"], media["film"]["frames"]) == ("ready", 48)
    assert media["film"]["struck"]
    full = client.get(f"{address}.mp4")
    assert (full.status_code, full.headers["content-type"]) == (200, "video/mp4")
    assert full.content[4:8] == b"ftyp"
    part = client.get(f"{address}.mp4", headers={"range": "bytes=100-199"})
    assert (part.status_code, part.content) == (206, full.content[100:200])
    frame = client.get(f"{address}.jpg?frame=3")
    assert (frame.status_code, frame.headers["content-type"], frame.content[:3]) == (200, "image/jpeg", b"\xff\xd8\xff")
    assert frame.content != client.get(f"{address}.jpg?frame=4").content
    assert client.get(f"{address}.jpg?frame=47").content == client.get(f"{address}.jpg?frame=9999").content
    head = client.head(f"{address}.mp4")
    assert (head.headers["content-length"], head.content) == (str(len(full.content)), b"")


def test_probe_page_links_to_the_clip_that_breaks_an_item(client: TestClient) -> None:
    page = page_json(client, "/runs/detection/probe.json")
    assert page["items"]
    item, (kind,) = page["items"][0], page["kinds"]
    assert len(item["curve"]["positions"]) == len(item["curve"]["scores"]) > 0
    damage = f"{item['position'] or 0}-{item['frames'] or item['length']}"
    for excerpt in (f"{page['clean']}-0-{damage}", f"{kind['key']}-1-{damage}"):
        response = client.get(f"{page['media']}/{excerpt}/{item['key']}.json")
        assert response.status_code == 200
        assert response.json()["state"] != "failed"
    for wrong in ("no_such-1-0-1", f"{kind['key']}-9-0-1", f"{kind['key']}-1-0-0", f"{kind['key']}-1-x-1", kind["key"]):
        assert client.get(f"{page['media']}/{wrong}/{item['key']}.json").status_code == 404


def test_run_without_a_probe_names_the_command(client: TestClient) -> None:
    assert "jostle probe" in client.get("/runs/recognition/probe.json").json()["message"]


def test_gallery_has_every_severity(client: TestClient) -> None:
    page = page_json(client, "/runs/detection/gallery.json")
    profiles = {profile["key"]: profile for profile in page["profiles"]}
    assert {"jostle", "imagenet-c", "thumos14-c"} <= set(profiles)
    entry = next(one for one in profiles["thumos14-c"]["corruptions"] if one["spec"] == "thumos14-c/black_frame")
    assert (entry["severities"], entry["placements"][0]) == (3, "centre:1%")
    few = media_state(client, f"{page['media']}/{entry['key']}-1/a")
    many = media_state(client, f"{page['media']}/{entry['key']}-3/a")
    length = [sum(end - start for start, end in one["film"]["struck"]) for one in (few, many)]
    assert 0 < length[0] < length[1]
    assert media_state(client, f"{page['media']}/{page['clean']}/a")["film"]["struck"] == []
    assert client.get(f"{page['media']}/{entry['key']}-4/a.json").status_code == 404


def raw_get(app: Any, address: str) -> tuple[int, str]:
    """Return status and body for an address that no client has normalised."""
    messages: list[Any] = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": unquote(address),
        "raw_path": address.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", f"127.0.0.1:{PORT}".encode()), (b"cookie", f"jostle-{PORT}={TOKEN}".encode())],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    asyncio.run(app(scope, receive, send))
    return messages[0]["status"], b"".join(message.get("body", b"") for message in messages[1:]).decode()


SECRET = "root:"
STEPS = (
    "..",
    "%2e%2e",
    "%252e%252e",
    "..%2f..",
    "..%5c..",
    "..\\..",
    "....//",
    "%c0%ae%c0%ae",
    "a%00",
    "//",
    "C:%5c",
    "~",
)


@pytest.mark.fault("F80")
@pytest.mark.parametrize(
    "form",
    [
        "/static/{}/{}/{}/etc/passwd",
        "/static/{}",
        "/static/{}%2f{}%2fserver.py",
        "/{}/{}/{}/{}/etc/passwd",
        "/runs/{}/run.json",
        "/runs/detection/{}/run",
        "/runs/detection/cells/{}",
        "/runs/detection/cells/clean/videos/{}",
        "/media/detection/clean/{}.mp4",
        "/media/detection/{}/a.mp4",
        "/media/{}/clean/a.json",
        "/excerpts/detection/clean/{}.mp4",
        "/excerpts/detection/{}/a.json",
        "/media/detection/clean/%2fetc%2fpasswd.mp4",
        "/media/detection/clean//etc/passwd.mp4",
    ],
)
def test_F80_no_path_leaves_the_run(client: TestClient, form: str) -> None:
    for step in STEPS:
        status, body = raw_get(client.app, form.replace("{}", step))
        assert status == 404, step
        assert SECRET not in body
        assert "import" not in body


@pytest.mark.fault("F80")
def test_F80_symlink_in_the_run_is_not_followed(runs: dict[str, Path], tmp_path: Path, open_viewer: Viewer) -> None:
    """Only the ids of the loaded run resolve to files; an extra file beside them does not."""
    folder = shutil.copytree(runs["detection"], tmp_path / "run")
    (folder / "predictions" / "passwd.json").symlink_to("/etc/passwd")
    client = open_viewer(folder)
    assert client.get("/runs/run/cells/passwd.json").status_code == 404
    assert client.get("/media/run/passwd/a.mp4").status_code == 404


@pytest.mark.fault("F82")
def test_F82_labels_are_json_data_and_never_html(client: TestClient) -> None:
    run = page_json(client, "/runs/hostile.json")
    assert run["run"]["model"] == HOSTILE_LABEL
    videos = page_json(client, f"/runs/hostile/cells/{CELL}.json")["videos"]
    key = next(video["key"] for video in videos if video["video"] == HOSTILE_LABEL)
    response = client.get(f"/runs/hostile/cells/{CELL}/videos/{key}.json")
    assert response.headers["content-type"] == "application/json"
    assert response.json()["actions"][0]["label"] == HOSTILE_LABEL
    for path in ("/runs/hostile", f"/runs/hostile/cells/{CELL}", f"/runs/hostile/cells/{CELL}/videos/{key}"):
        page = client.get(path)
        assert page.headers["content-type"].startswith("text/html")
        assert "onerror" not in page.text
    wrong = client.get(f"/runs/{quote(HOSTILE_LABEL, safe='')}")
    assert "onerror" not in wrong.text


@pytest.mark.fault("F82")
def test_F82_scripts_never_read_text_as_html() -> None:
    for name, data in _files().items():
        text = data.decode()
        for way in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "http://",
            "https://",
        ):
            allowed = way == "http://" and "http://www.w3.org/2000/svg" in text
            assert allowed or way not in text, f"{name} has {way}"
        assert " style=" not in text
        assert not any(f" on{event}=" in text for event in ("click", "load", "error"))


@pytest.mark.fault("F84")
def test_F84_missing_media_do_not_break_the_page(runs: dict[str, Path], tmp_path: Path, open_viewer: Viewer) -> None:
    folder, films = tmp_path / "run", tmp_path / "films"
    shutil.copytree(runs["detection"], folder)
    shutil.copytree(runs["films"], films)
    journal = folder / "journal.jsonl"
    journal.write_text(journal.read_text().replace(str(runs["films"]), str(films)))
    client = open_viewer(folder)
    address = f"/media/run/{CELL}/a"
    assert media_state(client, address)["state"] == "ready"
    (films / "a.mkv").unlink()
    gone = media_state(client, address)
    assert gone["state"] == "failed"
    assert "no longer there" in gone["message"]
    assert client.get(f"{address}.mp4").status_code == 503
    assert page_json(client, f"/runs/run/cells/{CELL}/videos/a.json")["actions"]
    (films / "b.mkv").write_bytes(b"not a video")
    broken = media_state(client, f"/media/run/{CELL}/b")
    assert (broken["state"], "b.mkv" in broken["message"]) == ("failed", True)
    shutil.copy(runs["films"] / "a.mkv", films / "a.mkv")
    assert media_state(client, address)["state"] == "ready"


@pytest.mark.fault("F85")
def test_F85_unfinished_run(runs: dict[str, Path], tmp_path: Path, open_viewer: Viewer) -> None:
    folder = shutil.copytree(runs["detection"], tmp_path / "run")
    scores = (folder / "scores.json").read_bytes()
    (folder / "scores.json").unlink()
    client = open_viewer(folder)
    for path in ("", "/gallery", f"/cells/{CELL}", f"/cells/{CELL}/videos/a"):
        assert client.get(f"/runs/run{path}").status_code == 200
        page = client.get(f"/runs/run{path}.json").json()
        assert (page["page"], page["done"], page["of"]) == ("unfinished", 4, 4)
    assert client.get(f"/media/run/{CELL}/a.json").json()["state"] == "failed"
    assert "message" in page_json(client, "/index.json")["runs"][0]
    (folder / "scores.json").write_bytes(scores)
    assert page_json(client, "/runs/run.json")["page"] == "run"
    shutil.rmtree(folder)
    assert client.get("/runs/run.json").status_code == 503
    assert "no run.json there" in client.get("/runs/run.json").json()["message"]


def test_run_with_a_damaged_file_names_it(runs: dict[str, Path], tmp_path: Path, open_viewer: Viewer) -> None:
    folder = shutil.copytree(runs["detection"], tmp_path / "run")
    (folder / "predictions" / f"{CELL}.json").write_text("{")
    client = open_viewer(folder, raise_server_exceptions=False)
    page = page_json(client, "/runs/run.json")
    assert CELL in page["message"]
    assert page["numbers"]["clean"]["interval"] is None
    assert client.get(f"/runs/run/cells/{CELL}.json").status_code == 503


def test_run_without_labels_is_shown_in_part(runs: dict[str, Path], tmp_path: Path, open_viewer: Viewer) -> None:
    folder = shutil.copytree(runs["recognition"], tmp_path / "run")
    (folder / "truth.json").unlink()
    client = open_viewer(folder)
    page = page_json(client, "/runs/run.json")
    assert "truth.json: not there" in page["message"]
    assert page["verdict"] == ""
    assert page["rows"]


def test_cell_page_waits_for_the_analysis(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(record: object, **options: object) -> object:
        time.sleep(0.3)
        return original(record, **options)

    original = runs_module.analyse_run
    monkeypatch.setattr(runs_module, "analyse_run", slow)
    page = client.get(f"/runs/detection/cells/{CELL}.json").json()
    assert (page["page"], page["done"], page["of"]) == ("waiting", 0, 4)
    assert client.get("/runs/detection.json").json()["surveyed"] is False
    assert page_json(client, f"/runs/detection/cells/{CELL}.json")["page"] == "cell"
