"""`run` and `verify`, as a user meets them: weights that come with jostle, on a folder of one's own."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import jostle
from helpers.numpy_extractor import write_video
from jostle.cli.app import _run
from jostle.errors import BadValue
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
cells = ["thumos14-c/black_frame:3", "freeze:3"]
"""
MODEL = ("--model", "temporalmaxer_puppets", "--weights", "clean")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data").mkdir()
    database = {}
    classes = json.loads(read_metadata(trained_weights("temporalmaxer_puppets", "clean"))["classes"])
    for i, name in enumerate(("one", "two")):
        write_video(tmp_path / "data" / f"{name}.mkv", 60, seed=i)
        actions = [{"label": label, "segment": [0.2, 1.9], "label_id": i} for i, label in enumerate(classes)]
        database[name] = {"subset": "test", "duration": 2.4, "fps": 25.0, "annotations": actions}
    (tmp_path / "data" / "truth.json").write_text(json.dumps({"database": database}))
    (tmp_path / "tiny-c.toml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def say(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["jostle", *words])
    return _run()


def test_run_and_verify(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("run", "tiny-c.toml", *MODEL, "--data", "data", "-o", "out", "-j", "1", "--device", "cpu")
    assert say(monkeypatch, *words, "--dry-run", "--json") == 0
    assert json.loads(capsys.readouterr().out)["looks"] == 6
    assert not (here / "out").exists()
    assert say(monkeypatch, *words) == 0
    said, remarks = capsys.readouterr()
    assert "freeze:3" in said
    assert "mean corrupted" in said
    assert re.fullmatch(r"\d+ s with one worker, limited by .* would help", remarks.splitlines()[-1])
    assert say(monkeypatch, "verify", "out") == 0
    assert capsys.readouterr().out == "3 cells, 2 of 2 videos\n"

    usual = [word for word in words if word not in ("--weights", "clean")]
    assert say(monkeypatch, *usual) == 0  # the same run: clean weights are the usual ones
    assert "limited by" not in capsys.readouterr().err  # nothing was left to do
    assert say(monkeypatch, *usual, "--weights", "robust") == 6
    other = [word if word != "temporalmaxer_puppets" else "tridet_thumos_i3d" for word in usual]
    assert say(monkeypatch, *other) == 2
    assert "needs weights, and none come with jostle; give --weights" in capsys.readouterr().err
    assert say(monkeypatch, *words, "--seed", "1") == 6
    (here / "out" / "predictions" / "clean.json").unlink()
    assert say(monkeypatch, "verify", "out") == 4
    capsys.readouterr()
    assert say(monkeypatch, *words, "--json") == 0
    assert json.loads(capsys.readouterr().out) == json.loads((here / "out" / "scores.json").read_text()) | {
        "work": None
    }
    assert say(monkeypatch, "verify", "out") == 0
    (here / "out" / "predictions" / "clean.json").write_text("{}")
    assert say(monkeypatch, "verify", "out") == 6


def test_a_broken_video_is_set_aside(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "data" / "two.mkv").write_bytes(b"not a video at all")
    words = ("run", "tiny-c.toml", *MODEL, "--data", "data", "-o", "out", "--cells", "freeze:3", "-j", "1")
    assert say(monkeypatch, *words, "--json") == 4
    said = capsys.readouterr()
    assert [(cell["videos"], cell["of"]) for cell in json.loads(said.out)["cells"]] == [(1, 2)]
    assert "two: set aside" in said.err


def test_the_windows_of_the_released_programs(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run finds what `detect` finds in the features that `extract` makes with the same words."""
    rule, faults = ("--rule", "released"), ("--reproduce-bug", "skipped-window", "--reproduce-bug", "early-row")
    words = ("run", "tiny-c.toml", *MODEL, "--data", "data", "-o", "out", "-j", "1", "--device", "cpu")
    assert say(monkeypatch, *words, "--dry-run") == 0
    assert "with 24 windows" in capsys.readouterr().out
    assert say(monkeypatch, *words, *rule, *faults, "--dry-run") == 0
    assert "with 22 windows" in capsys.readouterr().out
    assert say(monkeypatch, *words, *rule, *faults) == 0
    about = json.loads((here / "out" / "run.json").read_text())
    assert (about["rule"], about["reproduce_bugs"]) == ("released", ["early-row", "skipped-window"])

    video = ("data", "--extractor", "puppet_net", "--truth", "data/truth.json", "-j", "1", "--device", "cpu")
    for cell, more in (("clean", ()), ("thumos14-c-black_frame-3", ("-c", "thumos14-c/black_frame:3", *faults))):
        assert say(monkeypatch, "extract", *video, *rule, *more, "-o", cell) == 0
        assert say(monkeypatch, "detect", cell, "--detector", *MODEL[1:], "--device", "cpu", "-o", f"{cell}.json") == 0
        found = json.loads((here / f"{cell}.json").read_text())["results"]
        assert [len(one) > 0 for one in found.values()] == [True, True]
        assert json.loads((here / "out" / "predictions" / f"{cell}.json").read_text())["results"] == found
    capsys.readouterr()

    for other, said in ((faults, "rule was 'released', now 'all'"), (rule, "reproduce_bugs was ('early-row', 'sk")):
        assert say(monkeypatch, *words, *other) == 6
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"benchmark": "kinetics-c"}, "recognition"),
        ({"engine": "slurm"}, "engine must be local or ray"),
        ({"jobs": 0}, "jobs"),
    ],
)
def test_what_cannot_be_run_says_so(here: Path, asked: dict, said: str) -> None:
    usual = {"benchmark": "tiny-c.toml", "model": "temporalmaxer_puppets", "weights": "clean", "data": "data"}
    with pytest.raises(BadValue, match=said):
        jostle.run(**(usual | asked), out="out")
    assert not (here / "out").exists()


CLIPS = """
name = "tiny-p"
version = 1
dataset = "folder"
subset = "test"
task = "recognition"
metric = "top_k_accuracy"
k = 1

[[groups]]
name = "main"
cells = ["gaussian_noise:3", "freeze:3"]
"""
OWN = """
import numpy as np

from jostle.extend import InputSpec, Recogniser


def colours(clips):
    return np.sin(clips.float().mean((2, 3, 4)).numpy()[:, :2])


net = Recogniser(colours, InputSpec(frames=4, stride=4, resize=20, size=16), classes=("walk", "jump"))
"""


def test_recognition_with_a_model_of_ones_own(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for i, name in enumerate(("jump/a", "walk/b")):
        path = here / "clips" / "test" / f"{name}.mkv"
        path.parent.mkdir(parents=True)
        write_video(path, 30, seed=i)
    (here / "tiny-p.toml").write_text(CLIPS)
    (here / "mine.py").write_text(OWN)
    words = ("run", "tiny-p.toml", "--model", "mine:net", "--data", "clips", "-o", "out", "-j", "1")
    assert say(monkeypatch, *words, "--input", "frames=6", "--dry-run") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "2 videos, 60 frames; 3 cells, 6 looks; 0 videos failed before"
    assert "if every cell takes as long, with 1 at once" in said[1]
    assert say(monkeypatch, *words, "--input", "frames=6") == 0
    assert "top-1 accuracy" in capsys.readouterr().out
    about = json.loads((here / "out" / "run.json").read_text())
    assert (about["shown"]["input"]["frames"], about["shown"]["classes"]) == (6, "by name")
    assert say(monkeypatch, *words) == 6  # shown otherwise, it is another run
    assert "shown input frames was 6, now 4" in capsys.readouterr().err
    assert say(monkeypatch, "verify", "out") == 0
    assert capsys.readouterr().out == "3 cells, 2 of 2 videos\n"
