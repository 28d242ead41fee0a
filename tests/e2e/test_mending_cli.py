"""`extract --mend`, `detect --mend` and `run --mend` on the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import jostle
from jostle.cli.app import _run
from jostle.datasets.puppets.film import untrimmed
from jostle.datasets.puppets.parameters import CASTS
from jostle.io.video.encode import Writer
from jostle.models.checkpoints import read_metadata
from jostle.models.weights.shipped import trained_weights

RECIPE = """
name = "tiny-c"
version = 1
dataset = "folder"
subset = "test"
task = "detection"
metric = "mean_ap"
protocol = "thumos14"
tious = [0.5]

[[groups]]
name = "main"
cells = ["thumos14-c/black_frame:3"]
"""
DETECTOR = ("temporalmaxer_puppets", "--weights", "clean")
DAMAGED = slice(60, 66)
Call = Callable[..., int]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of two annotated films, and a copy of one with black frames."""
    folder = tmp_path_factory.mktemp("mending")
    (folder / "data").mkdir()
    classes = json.loads(read_metadata(trained_weights("temporalmaxer_puppets", "clean"))["classes"])
    database = {}
    for i, name in enumerate(("one", "two")):
        frames = untrimmed(11 + i, "mended", cast=tuple(CASTS["validation"])).draw(200, 320)
        write(frames, folder / "data" / f"{name}.mkv")
        actions = [{"label": label, "segment": [0.5, 4.5], "label_id": k} for k, label in enumerate(classes)]
        database[name] = {"subset": "test", "duration": 5.0, "fps": 24.0, "annotations": actions}
        if i == 0:
            black = np.array(frames)
            black[DAMAGED] = 0
            write(black, folder / "black.mkv")
            write(np.array(black[60:66]), folder / "dark.mkv")
    (folder / "data" / "truth.json").write_text(json.dumps({"database": database}))
    (folder / "tiny-c.toml").write_text(RECIPE)
    return folder


def write(frames: np.ndarray, path: Path) -> None:
    with Writer(path, size=(112, 112), fps=24, codec="ffv1") as writer:
        for frame in frames:
            writer.write(frame)


@pytest.fixture
def call(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the command line with these arguments, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str | Path) -> int:
        device = () if words[0] == "diff" else ("--device", "cpu")
        monkeypatch.setattr(sys, "argv", ["jostle", *map(str, words), *device])
        return _run()

    return run


def test_extracted_features_are_mended_with_a_warning(
    workspace: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("extract", workspace / "black.mkv", "--extractor", "puppet_net")
    assert call(*words, "-o", "plain") == 0
    capsys.readouterr()
    assert call(*words, "-o", "mended", "--mend", "jostle", "--json") == 0
    payload = json.loads(capsys.readouterr().out)
    count = int(payload["warnings"][0].split(":")[1].split()[0])
    assert payload["warnings"] == [f"black: {count} of 120 frames are damaged"]
    inspector = jostle.load_inspector()
    metadata = json.loads(Path("mended/features.json").read_text())
    assert (metadata["mend"], metadata["mend_weights"]) == ("jostle", inspector.fingerprint)
    plain, mended = (np.load(f"{name}/black.npy") for name in ("plain", "mended"))
    clean = jostle.load_extractor("puppet_net")
    assert plain.shape == mended.shape == (27, clean.dim)
    assert not np.array_equal(plain, mended)
    assert call(*words, "-o", "mended") == 6
    assert "mend was 'jostle', now None" in capsys.readouterr().err
    assert (
        call("extract", workspace / "data" / "one.mkv", "--extractor", "puppet_net", "-o", "clean", "--keep-frames")
        == 0
    )
    original = np.load("clean/one.npy")
    assert np.abs(mended - original).mean() < np.abs(plain - original).mean() / 2

    corruption = ("-c", "black_frame:3", "--placement", "frames:60-66", "--mend", "jostle")
    words = ("extract", workspace / "data" / "one.mkv", "--extractor", "puppet_net")
    assert call(*words, "-o", "a", *corruption) == 0
    assert call(*words, "-o", "b", *corruption, "--clean", "clean") == 0
    assert np.load("a/one.npy").tobytes() == mended.tobytes() == np.load("b/one.npy").tobytes()
    assert call(*words, "-o", "c", *corruption, "--clean", "mended") == 2
    assert "clean features do not match: mend is 'jostle'" in capsys.readouterr().err


def test_video_without_intact_frames_is_left_with_a_warning(
    workspace: Path, call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inspector = jostle.load_inspector()
    inspector._thresholds["both"] = 0.0  # every frame is classified as damaged
    plain = jostle.extract(workspace / "dark.mkv", "puppet_net", tmp_path / "plain", device="cpu")
    mended = jostle.extract(workspace / "dark.mkv", "puppet_net", tmp_path / "mended", device="cpu", mend=inspector)
    assert (plain.folder / "dark.npy").read_bytes() == (mended.folder / "dark.npy").read_bytes()
    assert mended.warnings == ("dark: 6 of 6 frames are damaged: too many to interpolate, so nothing was mended",)


def test_detections_in_mended_video(workspace: Path, call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("detect", workspace / "black.mkv", "--detector", *DETECTOR)
    assert call(*words, "--json") == 0
    plain = json.loads(capsys.readouterr().out)
    assert call(*words, "--json", "--mend", "jostle") == 0
    captured = capsys.readouterr()
    mended = json.loads(captured.out)
    damaged = mended["external_data"]["mended"]["struck_of_frames"]["black"]
    assert mended["external_data"]["mended"]["by"] == "jostle"
    assert f"black: {damaged[0]} of 120 frames are damaged" in captured.err
    assert plain["external_data"] == {}
    assert mended["results"] != plain["results"]
    assert call("extract", workspace / "black.mkv", "--extractor", "puppet_net", "-o", "features") == 0
    assert call("detect", "features", "--detector", *DETECTOR, "--mend", "jostle") == 2
    assert "damaged frames are found in video" in capsys.readouterr().err
    assert call(*words, "--mend", "known") == 2
    assert "`known` works only with `run`" in capsys.readouterr().err
    assert call(*words, "--mend", "none.safetensors") == 3
    assert "none.safetensors: no such file" in capsys.readouterr().err


def test_run_is_mended_and_compared(workspace: Path, call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("run", workspace / "tiny-c.toml", "--model", *DETECTOR, "--data", workspace / "data", "-j", "1")
    assert call(*words, "-o", "plain") == 0
    assert "mended" not in capsys.readouterr().err
    assert call(*words, "-o", "mended", "--mend", "jostle") == 0
    assert "mended: what damaged frames touch was replaced; frames found by jostle" in capsys.readouterr().err
    assert call(*words, "-o", "known", "--mend", "known", "--json") == 0
    assert json.loads(capsys.readouterr().out)["mend"] == "known"
    metadata = json.loads(Path("mended/run.json").read_text())
    assert (metadata["mend"], metadata["mend_weights"]) == ("jostle", jostle.load_inspector().fingerprint)
    assert json.loads(Path("known/run.json").read_text())["mend_weights"] is None
    assert call(*words, "-o", "mended") == 6
    assert "mend was 'jostle', now None" in capsys.readouterr().err
    assert call(*words, "-o", "mended", "--mend", "known") == 6
    assert call(*words, "-o", "mended", "--mend", "jostle") == 0  # resumes, with nothing left to do
    capsys.readouterr()
    assert call("diff", "plain", "mended", "--bootstrap", "0") == 0
    out = capsys.readouterr().out
    assert "temporalmaxer_puppets, mended" in out
    diff = jostle.diff("plain", "known", draws=0)
    assert diff.second.name == "temporalmaxer_puppets, mended (known)"


def test_single_frames_cannot_be_mended(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("run", "puppets-frames", "--model", "puppet_frames", "-o", "out", "--mend", "known", "-j", "1") == 2
    assert "uses single frames, and mending needs the frames around them" in capsys.readouterr().err
