"""`jostle run` and `jostle check` on the command line: bundled weights on one's own videos."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import jostle
from helpers.benchmark_files import write_benchmark
from helpers.command_line import assert_refused, call, succeed
from helpers.numpy_extractor import write_video
from jostle.errors import BadValue
from jostle.models.checkpoints import read_metadata
from jostle.models.weights.packaged import trained_weights

MODEL = ("--model", "temporalmaxer_puppets", "--weights", "clean")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data").mkdir()
    database = {}
    classes = json.loads(read_metadata(trained_weights("temporalmaxer_puppets", "clean"))["classes"])
    for i, name in enumerate(("one", "two")):
        write_video(tmp_path / "data" / f"{name}.mkv", 60, seed=i)
        actions = [{"label": label, "segment": [0.2, 1.9], "label_id": i} for i, label in enumerate(classes)]
        database[name] = {"subset": "test", "duration": 2.4, "fps": 25.0, "annotations": actions}
    (tmp_path / "data" / "truth.json").write_text(json.dumps({"database": database}))
    write_benchmark(tmp_path, "detection", "thumos14-c/black_frame:3", "freeze:3")
    monkeypatch.chdir(tmp_path)
    return tmp_path


WORDS = ("run", "tiny-c.toml", *MODEL, "--data", "data", "-o", "out", "-j", 1, "--device", "cpu")


def test_run_and_check(workspace: Path) -> None:
    assert succeed(*WORDS, "--dry-run", "--json").json["looks"] == 6
    assert not (workspace / "out").exists()
    _, out, err = succeed(*WORDS)
    assert "freeze:3" in out
    assert "mean corrupted" in out
    assert re.fullmatch(r"\d+ s with one worker, limited by .* would help", err.splitlines()[-1])
    assert call("check", "out").out == "3 cells, 2 of 2 videos\n"

    by_default = [word for word in WORDS if word not in ("--weights", "clean")]
    assert "limited by" not in succeed(*by_default).err  # the same run: nothing was left to do
    assert call(*by_default, "--weights", "robust").code == 6
    other = [word if word != "temporalmaxer_puppets" else "tridet_thumos_i3d" for word in by_default]
    assert_refused(2, "needs weights, and none come with jostle; give --weights", *other)
    assert call(*WORDS, "--seed", 1).code == 6
    (workspace / "out" / "predictions" / "clean.json").unlink()
    assert call("check", "out").code == 4
    assert succeed(*WORDS, "--json").json == json.loads(Path("out/scores.json").read_text()) | {"work": None}
    succeed("check", "out")
    (workspace / "out" / "predictions" / "clean.json").write_text("{}")
    assert call("check", "out").code == 6


def test_broken_video_is_set_aside(workspace: Path) -> None:
    (workspace / "data" / "two.mkv").write_bytes(b"not a video at all")
    done = call(*WORDS, "--cells", "freeze:3", "--json")
    assert done.code == 4
    assert [(cell["videos"], cell["of"]) for cell in done.json["cells"]] == [(1, 2)]
    assert "two: set aside" in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"benchmark": "kinetics-c"}, "recognition"),
        ({"engine": "slurm"}, "engine must be local or ray"),
        ({"jobs": 0}, "jobs"),
    ],
)
def test_invalid_options_are_refused(workspace: Path, options: dict, message: str) -> None:
    defaults = {"benchmark": "tiny-c.toml", "model": "temporalmaxer_puppets", "weights": "clean", "data": "data"}
    with pytest.raises(BadValue, match=message):
        jostle.run(**(defaults | options), out="out")
    assert not (workspace / "out").exists()


OWN = """
import numpy as np

from jostle.extend import InputSpec, Recogniser


def colours(clips):
    return np.sin(clips.float().mean((2, 3, 4)).numpy()[:, :2])


net = Recogniser(colours, InputSpec(frames=4, stride=4, resize=20, size=16), classes=("walk", "jump"))
"""


def test_recognition_with_an_own_model(workspace: Path) -> None:
    for i, name in enumerate(("jump/a", "walk/b")):
        path = workspace / "clips" / "test" / f"{name}.mkv"
        path.parent.mkdir(parents=True)
        write_video(path, 30, seed=i)
    write_benchmark(workspace, "recognition", "gaussian_noise:3", "freeze:3")
    (workspace / "mine.py").write_text(OWN)
    words = ("run", "tiny-p.toml", "--model", "mine:net", "--data", "clips", "-o", "out", "-j", 1)
    lines = succeed(*words, "--input", "frames=6", "--dry-run").out.splitlines()
    assert lines[0].split() == ["videos", "frames", "cells", "looks", "failed", "before"]
    assert lines[1].split() == ["2", "60", "3", "6", "0"]
    assert "if every cell takes as long, with 1 at once" in lines[2]
    assert "top-1 accuracy" in succeed(*words, "--input", "frames=6").out
    metadata = json.loads((workspace / "out" / "run.json").read_text())
    assert (metadata["shown"]["input"]["frames"], metadata["shown"]["classes"]) == (6, "by name")
    assert_refused(6, "shown input frames was 6, now 4", *words)  # another model input is another run
    assert succeed("check", "out").out == "3 cells, 2 of 2 videos\n"
