"""A folder of three short videos, a benchmark of four cells and models of a few lines, for `jostle run` itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from helpers.numpy_extractor import write_video
from helpers.started import NETWORKS, Starter
from jostle.core.types import Segments

NAMES = ("one", "two", "three")
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
cells = ["thumos14-c/black_frame:1", "thumos14-c/black_frame:3", "freeze:3"]
"""
FINAL = ("run.json", "scores.json", "failures.jsonl", "predictions")


def detect_brightness(frames: np.ndarray, fps: float, duration: float) -> Segments:
    """A segment that depends on every pixel; slow enough to be caught in the middle."""
    time.sleep(float(os.environ.get("TINY_DELAY_S", "0")))
    light = float(frames.astype(np.float64).sum() % 9973) / 9973
    return Segments([0.1, light], [1.0, light + 0.6], [0, 1], [0.5 + light / 3, light / 2], ("jump", "run"))


def deadly(frames: np.ndarray, duration: float) -> Segments:
    """Its process is killed at the longest of the videos, as by a system without memory."""
    if len(frames) > 48:
        os.kill(os.getpid(), signal.SIGKILL)
    return Segments([0.1], [duration / 2], [0], [0.5], ("action",))


def write_folder(root: Path) -> Path:
    """Videos and annotations in `root/data`, the benchmark in `root/tiny-c.toml`."""
    data = root / "data"
    data.mkdir(parents=True)
    database = {}
    for seed, name in enumerate(NAMES):
        write_video(data / f"{name}.mkv", 40, seed=seed)
        actions = [
            {"label": "jump", "segment": [0.1, 1.0 + seed / 10], "label_id": 0},
            {"label": "run", "segment": [0.8, 1.5], "label_id": 1},
        ]
        database[name] = {"subset": "test", "duration": 1.6, "fps": 25.0, "annotations": actions}
    (data / "truth.json").write_text(json.dumps({"database": database}))
    (root / "tiny-c.toml").write_text(RECIPE)
    return root


def command(out: Path | str, *more: str, model: str = "helpers.tiny_run:detect_brightness", jobs: int = 2) -> list[str]:
    defaults = ["--model", model, "--data", "data", "-o", str(out), "-j", str(jobs), "--device", "cpu"]
    return [sys.executable, "-m", "jostle", "run", "tiny-c.toml", *defaults, *more]


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "NO_COLOR": "1"} | more


def run_command(root: Path, words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """What a command says, and how it ends."""
    defaults = {"cwd": root, "env": environment(), "capture_output": True, "text": True, "timeout": 120}
    return subprocess.run(words, **(defaults | options))


def content(folder: Path) -> dict[str, bytes]:
    """The bytes of everything that a run is for."""
    files = [file for name in FINAL for file in ([*(folder / name).rglob("*")] or [folder / name])]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def is_gone(group: int) -> bool:
    """Whether no process of a group is left, in a moment."""
    for _ in range(1000):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def starter_in(root: Path) -> Starter:
    """Starts commands in a folder, each slow enough to be caught in the middle."""
    return Starter(environment(TINY_DELAY_S="0.03"), root, ("helpers.tiny_sets", *NETWORKS))
