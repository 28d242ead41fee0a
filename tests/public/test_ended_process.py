"""A model that ends the process never ends a run with success, and the folder resumes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest

pytest.importorskip("torch")

RECIPE = """
name = "tiny-p"
version = 1
dataset = "folder"
subset = "test"
task = "recognition"
metric = "top_k_accuracy"
k = 1

[[groups]]
name = "main"
cells = ["gaussian_noise:3"]
"""
MODEL = """
import os

import numpy as np

from beside import FACTOR
from jostle.extend import InputSpec, Recogniser


def colours(clips):
    if os.path.exists("end"):
        os._exit(0)
    return np.sin(FACTOR * clips.float().mean((2, 3, 4)).numpy()[:, :2])


net = Recogniser(colours, InputSpec(frames=4, stride=1, resize=20, size=16), classes=("walk", "jump"))
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with a data set of two videos, a benchmark, and a model of one's own."""
    for number, name in enumerate(("jump/a", "walk/b")):
        path = tmp_path / "clips" / "test" / f"{name}.mkv"
        path.parent.mkdir(parents=True)
        with av.open(str(path), "w") as container:
            stream = container.add_stream("ffv1", rate=10)
            stream.width, stream.height, stream.pix_fmt = 48, 32, "bgr0"
            for t in range(12):
                pixels = np.full((32, 48, 3), 20 * t + number, np.uint8)
                container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
            container.mux(stream.encode(None))
    (tmp_path / "tiny-p.toml").write_text(RECIPE)
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
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_model_that_ends_the_process_is_an_error(workspace: Path, jobs: str) -> None:
    (workspace / "end").touch()
    code, messages = run(workspace, "-j", jobs)
    assert code in (3, 4, 5), messages
    assert "os._exit(0)" in messages
    assert "mine.py, line" in messages
    (workspace / "end").unlink()
    code, messages = run(workspace, "-j", jobs, "--retry-failed")
    assert code == 0, messages
    assert [one["videos"] for one in json.loads((workspace / "out" / "scores.json").read_text())["cells"]] == [2]
