"""A model that ends the process never ends a run with success, and the folder resumes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.tiny_clips import write_clips

pytest.importorskip("torch")

MODEL = """
import os
import posix
from os import _exit

import numpy as np

from beside import FACTOR
from jostle.extend import InputSpec, Recogniser


def colours(clips):
    for name, leave in {"end": os._exit, "end-below": posix._exit, "end-early-name": _exit}.items():
        if os.path.exists(name):
            leave(0)
    return np.sin(FACTOR * clips.float().mean((2, 3, 4)).numpy()[:, :2])


net = Recogniser(colours, InputSpec(frames=4, stride=1, resize=20, size=16), classes=("walk", "jump"))
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with a data set of two videos, a benchmark, and a model of one's own."""
    write_clips(tmp_path)
    (tmp_path / "mine.py").write_text(MODEL)
    (tmp_path / "beside.py").write_text("FACTOR = 1.0\n")
    return tmp_path


def run(workspace: Path, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "jostle", "run", "tiny-p.toml", "--model", "mine:net", "--data", "clips"]
    done = subprocess.run(
        [*command, "-o", "out", *words], cwd=workspace, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.fault("F201")
@pytest.mark.parametrize(("jobs", "way"), [("1", "end"), ("2", "end"), ("1", "end-below"), ("1", "end-early-name")])
def test_a_model_that_ends_the_process_is_an_error(workspace: Path, jobs: str, way: str) -> None:
    (workspace / way).touch()
    code, messages = run(workspace, "-j", jobs)
    assert code in (3, 4, 5), messages
    assert "os._exit(0)" in messages
    assert "mine.py, line" in messages
    (workspace / way).unlink()
    code, messages = run(workspace, "-j", jobs, "--retry-failed")
    assert code == 0, messages
    assert [one["videos"] for one in json.loads((workspace / "out" / "scores.json").read_text())["cells"]] == [2]
