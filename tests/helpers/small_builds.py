"""Two short videos of two classes, a benchmark of two cells on them, and the copies that `build` makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import jostle
from jostle.io.video.encode import Writer

RECIPE = """
name = "small-c"
version = 2
dataset = "folder"
subset = "test"
task = "recognition"
metric = "top_k_accuracy"
k = 1

[[groups]]
name = "light"
corruptions = ["kinetics-c/contrast"]
severities = [1, 3]
"""
NAMES = ("nod/two", "wave/one.v2")  # one with a dot in its name


def write_film(path: Path, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with Writer(path, size=(32, 48), fps=24) as writer:
        for frame in np.random.default_rng(seed).integers(0, 255, (8, 32, 48, 3), np.uint8):
            writer.write(frame)


def write_films(folder: Path) -> Path:
    """Write the videos, and the recipe beside their folder, which is returned."""
    for number, name in enumerate(NAMES):
        write_film(folder / "films" / "test" / f"{name}.mp4", number)
    (folder / "small.toml").write_text(RECIPE)
    return folder / "films"


def build(video_root: Path, out: Path, **more: Any) -> Any:
    return jostle.build(video_root.parent / "small.toml", data=video_root, out=out, jobs=1, **more)
