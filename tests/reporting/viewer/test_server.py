"""Every address: pages and their twins, hostile paths and labels, media that vanish."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from starlette.testclient import TestClient

from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.run_analysis import DRAWS, survey
from jostle.reporting.analysis.verdict import verdict_of
from jostle.reporting.viewer import runs as shelf_module
from jostle.reporting.viewer.runs import RunCollection
from jostle.reporting.viewer.server import _files, viewer_app
from jostle.reporting.viewer.store import MediaStore

PORT, TOKEN = 8123, "secret-of-the-test"
HOSTILE = "</script><img src=x onerror=alert(1)>\"'&"
CELL = "thumos14-c-black_frame-3"


def twin(client: TestClient, path: str, *, within_s: float = 20.0) -> dict[str, Any]:
    """The JSON twin of a page, once the run has been gone over."""
    end = time.monotonic() + within_s
    while True:
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = json.loads(answer.text, parse_constant=pytest.fail)
        if told["page"] != "waiting" and told.get("surveyed", True) and told.get("rank", 1) is not None:
            return told
        assert time.monotonic() < end
        time.sleep(0.02)


def state(client: TestClient, address: str, *, within_s: float = 20.0) -> dict[str, Any]:
    end = time.monotonic() + within_s
    while (told := client.get(f"{address}.json").json())["state"] in ("waiting", "rendering"):
        assert 0 <= told["share"] <= 1
        assert time.monotonic() < end
        time.sleep(0.02)
    assert isinstance(told, dict)
    return told


def test_every_page_is_the_shell_and_has_a_twin(client: TestClient) -> None:
    shell = _files()["shell.html"].decode()
    for path, page in (
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
        answer = client.get(path)
        assert (answer.status_code, answer.text) == (200, shell)
        assert client.head(path).status_code == 200
        told = twin(client, f"{path}.json")
        assert (told["format"], told["page"]) == (1, page)
    assert [run["key"] for run in twin(client, "/index.json")["runs"]] == [
        "detection",
        "recognition",
        "frames",
        "objects",
        "mended",
        "hostile",
    ]


def test_the_run(client: TestClient, runs: dict[str, Path]) -> None:
    told = twin(client, "/runs/detection.json")
    scores = json.loads((runs["detection"] / "scores.json").read_text())
    assert told["numbers"]["clean"]["value"] == scores["clean"]
    low, high = told["numbers"]["clean"]["interval"]
    assert low <= scores["clean"] <= high
    squares = {square["cell"]: square for row in told["rows"] for square in row["cells"] if square}
    assert {cell: square["value"] for cell, square in squares.items()} == {
        cell["cell"]: cell["value"] for cell in scores["cells"]
    }
    assert told["severities"] == [1, 3]
    record = RunRecord.read(runs["detection"])
    assert told["verdict"] == verdict_of(survey(record, draws=DRAWS), "leaning")


def test_the_videos_of_a_cell_by_damage(client: TestClient) -> None:
    told = twin(client, f"/runs/detection/cells/{CELL}.json")
    losses = [video["loss"] for video in told["videos"]]
    assert losses == sorted(losses, reverse=True)
    assert sorted(video["video"] for video in told["videos"]) == list("abcd")
    assert [one["severity"] for one in told["family"]] == [None, 1, 3]
    for video in told["videos"]:
        assert video["by_severity"][0] == video["clean"]
        assert video["by_severity"][2] == video["corrupted"]
    assert len(twin(client, f"/runs/detection/cells/{CELL}.json?show=2")["videos"]) == 2
    for odd in ("-1", "x", "9" * 40, "²"):
        assert len(twin(client, f"/runs/detection/cells/{CELL}.json?show={odd}")["videos"]) == 4


def test_a_video_of_detection(client: TestClient) -> None:
    order = [video["key"] for video in twin(client, f"/runs/detection/cells/{CELL}.json")["videos"]]
    told = twin(client, f"/runs/detection/cells/{CELL}/videos/{order[1]}.json")
    assert (told["rank"], told["of"], told["before"], told["after"]) == (2, 4, order[0], order[2])
    assert len(told["actions"]) == 1
    assert len(told["clean"]) == len(told["corrupted"]) == 2
    assert {"start", "end", "label", "score", "tiou", "kind", "action"} <= set(told["clean"][0])
    assert told["tiou"] == 0.5
    assert twin(client, f"/runs/detection/cells/{CELL}/videos/a.json?tiou=0.7")["tiou"] == 0.7
    for odd in ("nan", "0", "2", "-1", "x", "inf"):
        assert twin(client, f"/runs/detection/cells/{CELL}/videos/a.json?tiou={odd}")["tiou"] == 0.5
    clean = twin(client, "/runs/detection/cells/clean/videos/a.json")
    assert clean["corrupted"] == []
    assert clean["media"]["corrupted"] is None


def test_a_video_of_recognition(client: TestClient) -> None:
    told = twin(client, "/runs/recognition/cells/ucf101-p-gaussian_noise-2/videos/b.json")["answers"]
    assert [one["label"] for one in told["scores"] if one["true"]] == ["run"]
    scores = [one["clean"] for one in told["scores"]]
    assert scores == sorted(scores, reverse=True)


def test_a_video_of_frames(client: TestClient) -> None:
    told = twin(client, "/runs/frames/cells/gaussian_noise-2/videos/c.json")
    (found,) = told["sets"]
    assert found["anchor"]["number"] == 20
    assert [frame["number"] for frame in found["neighbours"]] == [19, 22]


def test_a_video_is_rendered_when_it_is_asked_for(client: TestClient) -> None:
    address = f"/media/detection/{CELL}/a"
    early = client.get(f"{address}.mp4")
    assert (early.status_code, early.headers["retry-after"]) == (503, "1")
    assert client.get(f"{address}.jpg").status_code == 503
    told = state(client, address)
    assert (told["state"], told["film"]["frames"]) == ("ready", 48)
    assert told["film"]["struck"]
    whole = client.get(f"{address}.mp4")
    assert (whole.status_code, whole.headers["content-type"]) == (200, "video/mp4")
    assert whole.content[4:8] == b"ftyp"
    part = client.get(f"{address}.mp4", headers={"range": "bytes=100-199"})
    assert (part.status_code, part.content) == (206, whole.content[100:200])
    frame = client.get(f"{address}.jpg?frame=3")
    assert (frame.status_code, frame.headers["content-type"], frame.content[:3]) == (200, "image/jpeg", b"\xff\xd8\xff")
    assert frame.content != client.get(f"{address}.jpg?frame=4").content
    assert client.get(f"{address}.jpg?frame=47").content == client.get(f"{address}.jpg?frame=9999").content
    head = client.head(f"{address}.mp4")
    assert (head.headers["content-length"], head.content) == (str(len(whole.content)), b"")


def test_the_page_of_a_probe_leads_to_the_clip_that_breaks_an_item(client: TestClient) -> None:
    told = twin(client, "/runs/detection/probe.json")
    assert told["items"]
    item, (kind,) = told["items"][0], told["kinds"]
    assert len(item["curve"]["positions"]) == len(item["curve"]["scores"]) > 0
    damage = f"{item['position'] or 0}-{item['frames'] or item['length']}"
    for excerpt in (f"{told['clean']}-0-{damage}", f"{kind['key']}-1-{damage}"):
        answer = client.get(f"{told['media']}/{excerpt}/{item['key']}.json")
        assert answer.status_code == 200
        assert answer.json()["state"] != "failed"
    for wrong in ("no_such-1-0-1", f"{kind['key']}-9-0-1", f"{kind['key']}-1-0-0", f"{kind['key']}-1-x-1", kind["key"]):
        assert client.get(f"{told['media']}/{wrong}/{item['key']}.json").status_code == 404


def test_a_run_without_a_probe_says_how_to_make_one(client: TestClient) -> None:
    assert "jostle probe" in client.get("/runs/recognition/probe.json").json()["message"]


def test_the_gallery_shows_every_severity(client: TestClient) -> None:
    told = twin(client, "/runs/detection/gallery.json")
    profiles = {profile["key"]: profile for profile in told["profiles"]}
    assert {"jostle", "imagenet-c", "thumos14-c"} <= set(profiles)
    entry = next(one for one in profiles["thumos14-c"]["corruptions"] if one["spec"] == "thumos14-c/black_frame")
    assert (entry["severities"], entry["placements"][0]) == (3, "centre:1%")
    few = state(client, f"{told['media']}/{entry['key']}-1/a")
    many = state(client, f"{told['media']}/{entry['key']}-3/a")
    length = [sum(end - start for start, end in one["film"]["struck"]) for one in (few, many)]
    assert 0 < length[0] < length[1]
    assert state(client, f"{told['media']}/{told['clean']}/a")["film"]["struck"] == []
    assert client.get(f"{told['media']}/{entry['key']}-4/a.json").status_code == 404


def asked_as_it_is(app: Any, address: str) -> tuple[int, str]:
    """What is answered to an address that no client has tidied up."""
    told: list[Any] = []
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
        told.append(message)

    asyncio.run(app(scope, receive, send))
    return told[0]["status"], b"".join(message.get("body", b"") for message in told[1:]).decode()


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
def test_F80_no_path_leads_out(client: TestClient, form: str) -> None:
    for step in STEPS:
        status, body = asked_as_it_is(client.app, form.replace("{}", step))
        assert status == 404, step
        assert SECRET not in body
        assert "import" not in body


@pytest.mark.fault("F80")
def test_F80_a_link_in_the_run_leads_nowhere(runs: dict[str, Path], tmp_path: Path, store: MediaStore) -> None:
    """Only the ids of the loaded run lead to files: a file that is put beside them does not."""
    folder = shutil.copytree(runs["detection"], tmp_path / "run")
    (folder / "predictions" / "passwd.json").symlink_to("/etc/passwd")
    app = viewer_app(RunCollection([folder]), store, token=TOKEN, port=PORT)
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}") as client:
        client.get("/", params={"token": TOKEN})
        assert client.get("/runs/run/cells/passwd.json").status_code == 404
        assert client.get("/media/run/passwd/a.mp4").status_code == 404


@pytest.mark.fault("F82")
def test_F82_labels_are_data_and_never_part_of_a_page(client: TestClient) -> None:
    run = twin(client, "/runs/hostile.json")
    assert run["run"]["model"] == HOSTILE
    videos = twin(client, f"/runs/hostile/cells/{CELL}.json")["videos"]
    key = next(video["key"] for video in videos if video["video"] == HOSTILE)
    told = client.get(f"/runs/hostile/cells/{CELL}/videos/{key}.json")
    assert told.headers["content-type"] == "application/json"
    assert told.json()["actions"][0]["label"] == HOSTILE
    for path in ("/runs/hostile", f"/runs/hostile/cells/{CELL}", f"/runs/hostile/cells/{CELL}/videos/{key}"):
        page = client.get(path)
        assert page.headers["content-type"].startswith("text/html")
        assert "onerror" not in page.text
    wrong = client.get(f"/runs/{quote(HOSTILE, safe='')}")
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
def test_F84_media_that_vanish_leave_the_page_alone(runs: dict[str, Path], tmp_path: Path, store: MediaStore) -> None:
    folder, films = tmp_path / "run", tmp_path / "films"
    shutil.copytree(runs["detection"], folder)
    shutil.copytree(runs["films"], films)
    journal = folder / "journal.jsonl"
    journal.write_text(journal.read_text().replace(str(runs["films"]), str(films)))
    app = viewer_app(RunCollection([folder]), store, token=TOKEN, port=PORT)
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}") as client:
        client.get("/", params={"token": TOKEN})
        address = f"/media/run/{CELL}/a"
        assert state(client, address)["state"] == "ready"
        (films / "a.mkv").unlink()
        gone = state(client, address)
        assert gone["state"] == "failed"
        assert "no longer there" in gone["message"]
        assert client.get(f"{address}.mp4").status_code == 503
        assert twin(client, f"/runs/run/cells/{CELL}/videos/a.json")["actions"]
        (films / "b.mkv").write_bytes(b"not a video")
        broken = state(client, f"/media/run/{CELL}/b")
        assert (broken["state"], "b.mkv" in broken["message"]) == ("failed", True)
        shutil.copy(runs["films"] / "a.mkv", films / "a.mkv")
        assert state(client, address)["state"] == "ready"


@pytest.mark.fault("F85")
def test_F85_a_run_that_is_still_written(runs: dict[str, Path], tmp_path: Path, store: MediaStore) -> None:
    folder = shutil.copytree(runs["detection"], tmp_path / "run")
    scores = (folder / "scores.json").read_bytes()
    (folder / "scores.json").unlink()
    app = viewer_app(RunCollection([folder]), store, token=TOKEN, port=PORT)
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}") as client:
        client.get("/", params={"token": TOKEN})
        for path in ("", "/gallery", f"/cells/{CELL}", f"/cells/{CELL}/videos/a"):
            assert client.get(f"/runs/run{path}").status_code == 200
            told = client.get(f"/runs/run{path}.json").json()
            assert (told["page"], told["done"], told["of"]) == ("unfinished", 4, 4)
        assert client.get(f"/media/run/{CELL}/a.json").json()["state"] == "failed"
        assert "message" in twin(client, "/index.json")["runs"][0]
        (folder / "scores.json").write_bytes(scores)
        assert twin(client, "/runs/run.json")["page"] == "run"
        shutil.rmtree(folder)
        assert client.get("/runs/run.json").status_code == 503
        assert "no run.json there" in client.get("/runs/run.json").json()["message"]


def test_a_run_with_a_damaged_file_says_so(runs: dict[str, Path], tmp_path: Path, store: MediaStore) -> None:
    folder = shutil.copytree(runs["detection"], tmp_path / "run")
    (folder / "predictions" / f"{CELL}.json").write_text("{")
    app = viewer_app(RunCollection([folder]), store, token=TOKEN, port=PORT)
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}", raise_server_exceptions=False) as client:
        client.get("/", params={"token": TOKEN})
        told = twin(client, "/runs/run.json")
        assert CELL in told["message"]
        assert told["numbers"]["clean"]["interval"] is None
        assert client.get(f"/runs/run/cells/{CELL}.json").status_code == 503


def test_a_run_without_its_labels_shows_what_is_left(runs: dict[str, Path], tmp_path: Path, store: MediaStore) -> None:
    folder = shutil.copytree(runs["recognition"], tmp_path / "run")
    (folder / "truth.json").unlink()
    app = viewer_app(RunCollection([folder]), store, token=TOKEN, port=PORT)
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}") as client:
        client.get("/", params={"token": TOKEN})
        told = twin(client, "/runs/run.json")
        assert "truth.json: not there" in told["message"]
        assert told["verdict"] == ""
        assert told["rows"]


def test_the_survey_is_waited_for(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(record: object, **asked: object) -> object:
        time.sleep(0.3)
        return survey(record, **asked)

    survey = shelf_module.survey
    monkeypatch.setattr(shelf_module, "survey", slow)
    told = client.get(f"/runs/detection/cells/{CELL}.json").json()
    assert (told["page"], told["done"], told["of"]) == ("waiting", 0, 4)
    assert client.get("/runs/detection.json").json()["surveyed"] is False
    assert twin(client, f"/runs/detection/cells/{CELL}.json")["page"] == "cell"
