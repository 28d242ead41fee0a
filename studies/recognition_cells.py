"""Test clips in every cell of the two studies of action recognition, made once and read by all runs."""

from __future__ import annotations

import json
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Clip
from jostle.corruptions.engine.spec import Spec
from jostle.datasets.puppets.actions import REVERSED
from jostle.datasets.puppets.film import CLASSES, SIZE
from jostle.evaluation.recipes.kinetics_c import SPATIAL, TEMPORAL
from jostle.evaluation.recipes.ucf101_p import FAMILIES
from jostle.io.video.decode import Reader
from jostle.models.recognition.puppets import SPEC
from jostle.training.clips import VideoClip, corrupt_frames, evenly_spaced, list_videos
from jostle.training.recognition_config import ClipsConfig

SEVERITIES = (1, 2, 3, 4, 5)
FAMILY: dict[str, tuple[str, ...]] = {
    "C spatial": tuple(f"kinetics-c/{name}" for name in SPATIAL),
    "C temporal": tuple(f"kinetics-c/{name}" for name in TEMPORAL),
    **{f"P {family}": tuple(f"ucf101-p/{name}" for name in names) for family, names in FAMILIES.items()},
}
CELLS = ("clean", *(f"{name}:{level}" for names in FAMILY.values() for name in names for level in SEVERITIES))
TWIN = {**REVERSED, **{second: first for first, second in REVERSED.items()}}  # told apart by the order alone


@dataclass(frozen=True, eq=False)
class TestClips:
    """Test clips, cell by cell.

    Attributes:
        frames: (cells, N, 16, H, W, 3) uint8, looked at through the page cache.
        label: (N,).
    """

    frames: npt.NDArray[np.uint8]
    label: npt.NDArray[np.int64]


def make_cells(folder: Path, *, jobs: int, clips: int) -> None:
    """Corrupt the first `clips` test clips of each class in every cell, unless it is done."""
    path, noted = folder / "cells.npy", folder / "cells.json"
    if noted.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    _, videos = list_videos(ClipsConfig(jobs=jobs), "test", seeds=(0,))
    chosen = [video for label in range(len(CLASSES)) for video in [v for v in videos if v.label == label][:clips]]
    shape = (len(CELLS), len(chosen), SPEC.frames, *SIZE, 3)
    np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=shape).flush()
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_alone) as pool:
        list(pool.map(_fill, [path] * len(chosen), range(len(chosen)), chosen, chunksize=1))
    part = noted.with_suffix(".part")
    part.write_text(json.dumps({"cells": CELLS, "label": [video.label for video in chosen]}))
    os.replace(part, noted)


def load_cells(folder: Path) -> TestClips:
    """What `make_cells` has made."""
    noted = json.loads((folder / "cells.json").read_text())
    assert tuple(noted["cells"]) == CELLS, f"{folder} holds other cells; remove it"
    return TestClips(np.load(folder / "cells.npy", mmap_mode="r"), np.array(noted["label"], np.int64))


def _alone() -> None:
    import cv2
    import torch

    cv2.setNumThreads(1)
    torch.set_num_threads(1)


def _fill(path: Path, row: int, video: VideoClip) -> None:
    with Reader(video.path) as reader:
        clip = Clip(reader.block(0, len(reader)), reader.pts, reader.fps)
    pixels = np.load(path, mmap_mode="r+")
    places = evenly_spaced(len(clip), SPEC.frames)
    for number, cell in enumerate(CELLS):
        specs = [] if cell == "clean" else [Spec.parse(cell)]
        pixels[number, row] = corrupt_frames(clip, specs, places, seed=0, video=video)
