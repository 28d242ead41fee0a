"""`extract`, and `detect` on video, as a user meets them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import jostle
from helpers.numpy_extractor import write_video
from jostle.cli.app import _run
from jostle.models.checkpoints import read_weights, write_weights
from jostle.models.detection.detector import load_detector
from jostle.models.devices import one_thread
from jostle.models.extractors.extractor import load_extractor
from jostle.models.recognition.recogniser import load_recogniser

LENGTHS = {"one": 60, "two": 41, "three": 9}
SETTINGS = {"input_dim": 128, "dim": 16, "classes": 2, "max_length": 64, "levels": 4, "min_score": 0.0}
NET = ("--extractor", "puppet_net", "--weights", "net.safetensors", "--device", "cpu")
DETECT = ("--detector", "temporalmaxer", "--weights", "detector.safetensors", "--set", "max_segments=3")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Videos, their truth, and networks that learned nothing but always say the same."""
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
        detector = load_detector("temporalmaxer", **SETTINGS)
        for values in detector.parameters():
            torch.nn.init.normal_(values, std=0.2)
    known = {"detector": "temporalmaxer", "extractor": "puppet_net", "settings": json.dumps(SETTINGS)}
    write_weights(detector.state_dict(), folder / "detector.safetensors", metadata=known)
    return folder


class Answer:
    """What a command said."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def jostled(world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs a command in the folder of the videos, in this process."""
    monkeypatch.chdir(world)

    def run(*words: str | Path) -> Answer:
        monkeypatch.setattr(sys, "argv", ["jostle", *map(str, words)])
        code = _run()
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return Answer(code, said.out, said.err)

    return run


def test_from_videos_to_features(jostled, tmp_path: Path) -> None:
    done = jostled("extract", "videos", *NET, "-o", tmp_path, "-j", 1, "--keep-frames")
    assert done.code == 0, done.err
    assert done.out.strip() == str(tmp_path)
    assert "3 extracted, 0 there already, 0 set aside; 110 frames decoded, 110 seen, 20 windows" in done.err
    assert {name: np.load(tmp_path / f"{name}.npy").shape for name in LENGTHS} == {
        "one": (12, 128),
        "two": (7, 128),
        "three": (1, 128),
    }
    assert np.load(tmp_path / "frames" / "two.npy").shape == (41, 160)
    frames = jostle.read("videos/two.mkv").frames
    network = load_extractor("puppet_net", weights=read_weights("net.safetensors"))
    windows = np.stack([frames[4 * i : 4 * i + 16] for i in range(7)])
    with one_thread():
        assert np.load(tmp_path / "two.npy").tobytes() == network(windows).tobytes()
    again = json.loads(jostled("extract", "videos", *NET, "-o", tmp_path, "-j", 1, "--json").out)
    assert (again["made"], again["kept"]) == ([], ["one", "three", "two"])
    assert again["cost"] == {"decoded": 0, "seen": 0, "joined": 0, "flows": 0}


def test_what_a_knock_changes_is_what_is_computed(jostled, tmp_path: Path) -> None:
    """With and without the clean features, the same bytes; and those of a video that was corrupted before."""
    knock = ("-c", "thumos14-c/packet_loss:3", "--truth", "truth.json", "--seed", 3, "-j", 1)
    assert jostled("extract", "videos", *NET, "-o", tmp_path / "clean", "--keep-frames", "-j", 1).code == 0
    whole = jostled("extract", "videos", *NET, *knock, "-o", tmp_path / "whole", "--json")
    part = jostled("extract", "videos", *NET, *knock, "-o", tmp_path / "part", "--clean", tmp_path / "clean", "--json")
    assert (whole.code, part.code) == (0, 0), whole.err + part.err
    assert json.loads(part.out)["cost"]["seen"] < 20 < json.loads(whole.out)["cost"]["seen"] == 110
    for name in ("features.json", *(f"{video}.npy" for video in LENGTHS)):
        assert (tmp_path / "part" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    clean, hit = (np.load(tmp_path / state / "one.npy") for state in ("clean", "whole"))
    assert 0 < (clean != hit).any(1).sum() < len(clean)
    struck = tmp_path / "one.mkv"
    corrupt = ("corrupt", "videos/one.mkv", "-c", "thumos14-c/packet_loss:3", "--truth", "truth.json", "--seed", 3)
    assert jostled(*corrupt, "--lossless", "-o", struck).code == 0
    assert jostled("extract", struck, *NET, "-o", tmp_path / "file").code == 0
    assert np.load(tmp_path / "file" / "one.npy").tobytes() == hit.tobytes()


def test_faults_of_the_released_program_are_repeated_by_name(jostled, tmp_path: Path) -> None:
    """A struck frame 20 touches windows 2 to 5; the program computes 1 to 4, and writes them into rows 0 to 3."""
    knock = ("videos/one.mkv", *NET, "-c", "black_frame:3", "--placement", "frame:20", "--rule", "released")
    both = ("--reproduce-bug", "skipped-window", "--reproduce-bug", "early-row")
    assert jostled("extract", "videos/one.mkv", *NET, "--rule", "released", "-o", tmp_path / "clean").code == 0
    assert jostled("extract", *knock, "-o", tmp_path / "right").code == 0
    done = jostled("extract", *knock, *both, "-o", tmp_path / "wrong")
    assert done.code == 0, done.err
    clean, right, wrong = (np.load(tmp_path / state / "one.npy") for state in ("clean", "right", "wrong"))
    assert len(clean) == len(right) == len(wrong) == 11
    assert (right != clean).any(1).nonzero()[0].tolist() == [2, 3, 4, 5]
    expected = clean.copy()
    expected[0:4] = clean[1], right[2], right[3], right[4]
    assert wrong.tobytes() == expected.tobytes()
    noted = json.loads((tmp_path / "wrong" / "features.json").read_text())
    assert (noted["rule"], noted["reproduce_bugs"]) == ("released", ["early-row", "skipped-window"])
    refused = jostled("extract", *knock, "-o", tmp_path / "wrong")
    assert refused.code == 6
    assert "reproduce_bugs is" in refused.err


def test_any_model_makes_features(jostled, tmp_path: Path) -> None:
    """What its last layer makes scores of; of 16 frames at a step of 5 a window is 80 frames."""
    videos = tmp_path / "videos"
    videos.mkdir()
    write_video(videos / "long.mkv", 100, seed=3)
    weights = tmp_path / "c3d.safetensors"
    write_weights(load_recogniser("puppet_c3d", weights="random").network.state_dict(), weights)
    model = ("--extractor", "puppet_c3d", "--weights", weights, "--device", "cpu")
    done = jostled("extract", videos, *model, "--stride", 10, "-o", tmp_path / "out", "-j", 1)
    assert done.code == 0, done.err
    noted = json.loads((tmp_path / "out" / "features.json").read_text())
    assert (noted["extractor"], noted["window"], noted["stride"], noted["dim"]) == ("puppet_c3d", 80, 10, 80)
    assert noted["weights"].startswith("sha256:")
    frames = jostle.read(videos / "long.mkv").frames
    extractor = jostle.load_extractor("puppet_c3d", weights=weights)
    windows = np.stack([frames[0:80], frames[10:90], frames[20:100]])
    with one_thread():
        assert np.load(tmp_path / "out" / "long.npy").tobytes() == extractor(windows).tobytes()


def test_detections_in_a_video_are_those_in_its_features(jostled, tmp_path: Path) -> None:
    """The weights name their extractor, and features.json their rate."""
    with_net = ("--extractor-weights", "net.safetensors", "--json", "-j", 1)
    one = jostled("detect", "videos/one.mkv", *DETECT, *with_net)
    assert one.code == 0, one.err
    every = json.loads(jostled("detect", "videos", *DETECT, *with_net).out)["results"]
    assert list(every) == ["one", "three", "two"]
    assert json.loads(one.out)["results"]["one"] == every["one"] != []
    assert jostled("extract", "videos", *NET, "-o", tmp_path, "-j", 1).code == 0
    assert json.loads(jostled("detect", tmp_path, *DETECT, "--json").out)["results"] == every
    single = json.loads(jostled("detect", tmp_path / "two.npy", *DETECT, "--json").out)["results"]
    assert single == {"two": every["two"]}
    knock = ("-c", "black_frame:3", "--placement", "frames:0-9", "--truth", "truth.json")
    struck = json.loads(jostled("detect", "videos", *DETECT, *with_net, *knock).out)["results"]
    assert list(struck) == ["one", "two", "three"]  # in the order of the truth
    assert struck["one"] != every["one"]


@pytest.mark.processes
def test_models_in_processes_of_their_own_change_nothing(jostled, tmp_path: Path) -> None:
    """Features and detections of a folder: in one process, in workers with a model each, and asked for elsewhere."""
    ways = {"one": ("-j", 1), "fed": ("-j", 2, "--model-processes", 1)}
    knock = ("-c", "gaussian_noise:2")
    for name, way in ways.items():
        assert jostled("extract", "videos", *NET, *knock, "-o", tmp_path / name, *way).code == 0
    for file in ("one.npy", "two.npy", "three.npy"):
        assert (tmp_path / "fed" / file).read_bytes() == (tmp_path / "one" / file).read_bytes()
    found = ("--extractor", "puppet_net", "--extractor-weights", "net.safetensors", "--device", "cpu", "--json", *knock)
    told = [
        jostled("detect", "videos", *DETECT, *found, *way)
        for way in (("-j", 1), ("-j", 2), ("-j", 2, "--model-processes", 1))
    ]
    assert [one.code for one in told] == [0, 0, 0], told[2].err
    assert told[0].out == told[1].out == told[2].out
    assert set(json.loads(told[0].out)["results"]) == set(LENGTHS)


def test_a_bad_video_of_a_folder_is_set_aside(jostled, world: Path, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    (mixed / "bad.mp4").write_text("no video")
    (mixed / "good.mkv").write_bytes((world / "videos" / "two.mkv").read_bytes())
    done = jostled("extract", mixed, *NET, "-o", tmp_path / "out", "-j", 1, "--json")
    assert done.code == 4
    assert list(json.loads(done.out)["set_aside"]) == ["bad"]
    assert "bad: set aside: bad.mp4: not a video" in done.err
    found = jostled("detect", mixed, *DETECT, "--extractor-weights", "net.safetensors", "-j", 1, "--json")
    assert found.code == 4
    assert list(json.loads(found.out)["results"]) == ["good"]
    assert "bad: set aside:" in found.err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["extract", "none.mp4", *NET, "-o", "x"], 3, "no such file"),
        (["extract", "videos", "--extractor", "pupet_net", "-o", "x"], 2, "did you mean puppet_net"),
        (["extract", "videos", "--extractor", "puppet_c3d", "-o", "x"], 2, "give its weights: clean or robust"),
        (["extract", "videos", "--extractor", "puppet_c4d", "-o", "x"], 2, "did you mean puppet_c3d"),
        (["extract", "videos", *NET, "-o", "x", "-c", "fog", "--reproduce-bug", "early"], 2, "did you mean early-row"),
        (["extract", "videos", *NET, "-o", "x", "--reproduce-bug", "early-row"], 2, "name a corruption as well"),
        (["extract", "videos", *NET, "-o", "truth.json"], 3, "cannot be created"),
        (["extract", "videos", *NET, "-o", "x", "--placement", "frame:3"], 2, "name one as well, with -c SPEC"),
        (["extract", "videos", *NET, "-o", "x", "-c", "fogg:3"], 2, "did you mean fog"),
        (["extract", "videos", *NET, "-o", "x", "--video-id", "a"], 2, "belong to a single video"),
        (
            ["extract", "videos/one.mkv", *NET, "-o", "x", "-c", "fog", "--placement", "frame:500"],
            2,
            "reaches frame 500",
        ),
        (["extract", "videos/one.mkv", *NET, "-o", "x", "--truth", "truth.json", "--video-id", "b"], 2, "no video in"),
        (["extract", ".", *NET, "-o", "x", "--clean", "x", "-c", "fog"], 3, "no features.json; pass the folder"),
        (["extract", "empty", *NET, "-o", "x"], 3, "no videos there"),
        (["detect", "videos", *DETECT, "--extractor", "i3d_rgb"], 2, "rgb_imagenet.pt"),
        (["detect", "videos/one.mkv", *DETECT[:2], "--weights", "net.safetensors"], 3, "do not fit"),
        (["detect", "empty", *DETECT], 3, "no file is called"),
    ],
)
def test_bad_input_is_answered_with_what_to_do(jostled, world: Path, words: list[str], code: int, message: str) -> None:
    (world / "empty").mkdir(exist_ok=True)
    done = jostled(*words)
    assert (done.code, message in done.err) == (code, True), done.err


def test_weights_that_name_no_extractor(jostled, world: Path) -> None:
    plain = load_detector("temporalmaxer", **SETTINGS)
    write_weights(plain.state_dict(), world / "plain.safetensors")
    sizes = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
    done = jostled("detect", "videos", "--detector", "temporalmaxer", "--weights", "plain.safetensors", *sizes)
    assert done.code == 2
    assert "compute features: --extractor NAME" in done.err
