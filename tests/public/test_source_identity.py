"""A model given by import path is its code: a folder is not resumed with another one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from helpers.tiny_clips import write_clips

pytest.importorskip("torch")

MODEL = """
import numpy as np

from jostle.extend import InputSpec, Recogniser


def colours(clips):
    from parts.factor import FACTOR

    return np.sin(FACTOR * clips.float().mean((2, 3, 4)).numpy()[:, :2])


net = Recogniser(colours, InputSpec(frames=4, stride=1, resize=20, size=16), classes=("walk", "jump"))
"""
RUNS = """
import sys

import jostle

for number in sys.argv[1:]:
    try:
        jostle.run("tiny-p.toml", model="mine:net", data="clips", out="out", jobs=1)
        print("resumed")
    except Exception as error:
        print(str(error)[:200])
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    write_clips(tmp_path)
    (tmp_path / "mine.py").write_text(MODEL)
    (tmp_path / "other.py").write_text("VALUE = 1\n")  # nothing imports it
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "__init__.py").touch()
    (tmp_path / "parts" / "factor.py").write_text("from .base import FACTOR  # twice\n")
    (tmp_path / "parts" / "base.py").write_text("FACTOR = 1.0\n")
    return tmp_path


def run(workspace: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", RUNS, "1"], cwd=workspace, capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout.strip()


@pytest.mark.fault("F202")
def test_a_run_is_not_resumed_with_other_code(workspace: Path) -> None:
    assert run(workspace) == "resumed"
    (workspace / "mine.py").write_text(f"# A comment.\n\n{MODEL}\n# And another.\n")
    (workspace / "other.py").write_text("VALUE = 2\n")
    assert run(workspace) == "resumed"
    (workspace / "parts" / "base.py").write_text("FACTOR = 2.0\n")
    assert "contains another run: parts was (mine:net of mine" in run(workspace)
    (workspace / "parts" / "base.py").write_text("FACTOR = 1.0\n")
    assert run(workspace) == "resumed"
    (workspace / "mine.py").write_text(MODEL.replace("np.sin", "np.cos"))
    assert "contains another run: parts was (mine:net of mine" in run(workspace)
