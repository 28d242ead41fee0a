"""`jostle extract`, and `jostle detect` on videos, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import jostle
from helpers.command_line import assert_refused, call, succeed
from helpers.numpy_extractor import write_video
from jostle.models.checkpoints import read_weights, write_weights
from jostle.models.detection.detector import make_detector
from jostle.models.devices import one_thread
from jostle.models.loading.extractors import load_extractor
from jostle.models.loading.recognisers import load_recogniser

LENGTHS = {"one": 60, "two": 41, "three": 9}
SETTINGS = {"input_dim": 128, "dim": 16, "classes": 2, "max_length": 64, "levels": 4, "min_score": 0.0}
NET = ("--extractor", "puppet_net", "--weights", "net.safetensors", "--device", "cpu")
DETECT = ("--detector", "temporalmaxer", "--weights", "detector.safetensors", "--set", "max_segments=3")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of videos, annotations and the weights of untrained, seeded networks."""
    folder = tmp_path_factory.mktemp("extracting")
    (folder / "videos").mkdir()
    database = {}
    for i, (name, frames) in enumerate(LENGTHS.items()):
        write_video(folder / "videos" / f"{name}.mkv", frames, seed=i)
        action = {"label": "Jump", "segment": [0.1, frames / 25], "label_id": 0}
        database[name] = {"subset": "test", "duration": frames / 25, "fps": 25.0, "annotations": [action]}
    (folder / "truth.json").write_text(json.dumps({"database": database}))
    write_weights(load_extractor("puppet_net", weights="random").network.state_dict(), folder / "net.safetensors")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        detector = make_detector("temporalmaxer", **SETTINGS)
        for values in detector.parameters():
            torch.nn.init.normal_(values, std=0.2)
    metadata = {"detector": "temporalmaxer", "extractor": "puppet_net", "settings": json.dumps(SETTINGS)}
    write_weights(detector.state_dict(), folder / "detector.safetensors", metadata=metadata)
    return folder


@pytest.fixture(autouse=True)
def here(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)


def test_from_videos_to_features(tmp_path: Path) -> None:
    words = ("extract", "videos", *NET, "-o", tmp_path, "-j", 1)
    _, out, err = succeed(*words, "--keep-frames")
    assert out.strip() == str(tmp_path)
    assert "3 extracted, 0 there already, 0 set aside; 110 frames decoded, 110 seen, 20 windows" in err
    shapes = {name: np.load(tmp_path / f"{name}.npy").shape for name in LENGTHS}
    assert shapes == {"one": (12, 128), "two": (7, 128), "three": (1, 128)}
    assert np.load(tmp_path / "frames" / "two.npy").shape == (41, 160)
    frames = jostle.read("videos/two.mkv").frames
    network = load_extractor("puppet_net", weights=read_weights("net.safetensors"))
    windows = np.stack([frames[4 * i : 4 * i + 16] for i in range(7)])
    with one_thread():
        assert np.load(tmp_path / "two.npy").tobytes() == network(windows).tobytes()
    again = succeed(*words, "--json").json
    assert (again["made"], again["kept"]) == ([], ["one", "three", "two"])
    assert again["cost"] == {"decoded": 0, "seen": 0, "joined": 0, "flows": 0}


def test_recogniser_as_extractor(tmp_path: Path) -> None:
    """Features are the input of the last layer; with 16 frames at a step of 5 a window has 80 frames."""
    videos = tmp_path / "videos"
    videos.mkdir()
    write_video(videos / "long.mkv", 100, seed=3)
    weights = tmp_path / "c3d.safetensors"
    write_weights(load_recogniser("puppet_c3d", weights="random").network.state_dict(), weights)
    model = ("--extractor", "puppet_c3d", "--weights", weights, "--device", "cpu")
    succeed("extract", videos, *model, "--stride", 10, "-o", tmp_path / "out", "-j", 1)
    metadata = json.loads((tmp_path / "out" / "features.json").read_text())
    facts = {"extractor": "puppet_c3d", "window": 80, "stride": 10, "dim": 80}
    assert facts.items() <= metadata.items()
    assert metadata["weights"].startswith("sha256:")
    frames = jostle.read(videos / "long.mkv").frames
    extractor = jostle.load_extractor("puppet_c3d", weights=weights)
    windows = np.stack([frames[0:80], frames[10:90], frames[20:100]])
    with one_thread():
        assert np.load(tmp_path / "out" / "long.npy").tobytes() == extractor(windows).tobytes()


def test_detections_in_video_equal_those_in_its_features(tmp_path: Path) -> None:
    """The extractor is stored with the weights, and the frame rate in features.json."""

    def detect(source: object, *more: object) -> dict[str, list[object]]:
        results: dict[str, list[object]] = succeed("detect", source, *DETECT, "--json", *more).json["results"]
        return results

    with_net = ("--extractor-weights", "net.safetensors", "-j", 1)
    found = detect("videos", *with_net)
    assert list(found) == ["one", "three", "two"]
    assert detect("videos/one.mkv", *with_net)["one"] == found["one"] != []
    succeed("extract", "videos", *NET, "-o", tmp_path, "-j", 1)
    assert detect(tmp_path) == found
    assert detect(tmp_path / "two.npy") == {"two": found["two"]}
    corrupted = detect("videos", *with_net, "-c", "black_frame:3", "--placement", "frames:0-9", "--truth", "truth.json")
    assert list(corrupted) == ["one", "two", "three"]  # in the order of the truth
    assert corrupted["one"] != found["one"]


@pytest.mark.processes
def test_model_processes_do_not_change_results(tmp_path: Path) -> None:
    """Features and detections are equal in one process, in workers, and with a model process."""
    workers = {"one": ("-j", 1), "two": ("-j", 2), "fed": ("-j", 2, "--model-processes", 1)}
    corruption = ("-c", "gaussian_noise:2")
    for name in ("one", "fed"):
        succeed("extract", "videos", *NET, *corruption, "-o", tmp_path / name, *workers[name])
    for file in ("one.npy", "two.npy", "three.npy"):
        assert (tmp_path / "fed" / file).read_bytes() == (tmp_path / "one" / file).read_bytes()
    words = ("detect", "videos", *DETECT, "--extractor", "puppet_net", "--extractor-weights", "net.safetensors")
    words += ("--device", "cpu", "--json", *corruption)
    one, two, fed = (succeed(*words, *workers[name]) for name in ("one", "two", "fed"))
    assert one.out == two.out == fed.out
    assert set(one.json["results"]) == set(LENGTHS)


def test_bad_video_is_set_aside(workspace: Path, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    (mixed / "bad.mp4").write_text("no video")
    (mixed / "good.mkv").write_bytes((workspace / "videos" / "two.mkv").read_bytes())
    extracted = call("extract", mixed, *NET, "-o", tmp_path / "out", "-j", 1, "--json")
    assert (extracted.code, list(extracted.json["set_aside"])) == (4, ["bad"])
    assert "bad: set aside: bad.mp4: not a video" in extracted.err
    detected = call("detect", mixed, *DETECT, "--extractor-weights", "net.safetensors", "-j", 1, "--json")
    assert (detected.code, list(detected.json["results"])) == (4, ["good"])
    assert "bad: set aside:" in detected.err


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        (3, "no such file", "extract none.mp4 NET -o x"),
        (2, "did you mean puppet_net", "extract videos --extractor pupet_net -o x"),
        (2, "give its weights: clean or robust", "extract videos --extractor puppet_c3d -o x"),
        (2, "did you mean puppet_c3d", "extract videos --extractor puppet_c4d -o x"),
        (2, "did you mean early-row", "extract videos NET -o x -c fog --reproduce-bug early"),
        (2, "name a corruption as well", "extract videos NET -o x --reproduce-bug early-row"),
        (3, "cannot be created", "extract videos NET -o truth.json"),
        (2, "name one as well, with -c SPEC", "extract videos NET -o x --placement frame:3"),
        (2, "did you mean fog", "extract videos NET -o x -c fogg:3"),
        (2, "belong to a single video", "extract videos NET -o x --video-id a"),
        (2, "reaches frame 500", "extract videos/one.mkv NET -o x -c fog --placement frame:500"),
        (2, "no video in", "extract videos/one.mkv NET -o x --truth truth.json --video-id b"),
        (3, "no features.json; pass the folder", "extract . NET -o x --clean x -c fog"),
        (3, "no videos there", "extract empty NET -o x"),
        (2, "rgb_imagenet.pt", "detect videos DETECT --extractor i3d_rgb"),
        (3, "do not fit", "detect videos/one.mkv --detector temporalmaxer --weights net.safetensors"),
        (3, "no file is called", "detect empty DETECT"),
    ],
)
def test_invalid_input_is_explained(workspace: Path, code: int, message: str, words: str) -> None:
    (workspace / "empty").mkdir(exist_ok=True)
    assert_refused(code, message, *words.replace("NET", " ".join(NET)).replace("DETECT", " ".join(DETECT)).split())


def test_weights_without_an_extractor_need_one(workspace: Path) -> None:
    plain = make_detector("temporalmaxer", **SETTINGS)
    write_weights(plain.state_dict(), workspace / "plain.safetensors")
    sizes = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
    message = "the weights of temporalmaxer record none; name it with --extractor NAME"
    words = ("detect", "videos", "--detector", "temporalmaxer", "--weights", "plain.safetensors", *sizes)
    assert_refused(2, message, *words)
