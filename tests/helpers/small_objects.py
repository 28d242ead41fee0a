"""A benchmark of objects on a few short videos, with a detector of a few lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from helpers.small_recognition import NAMES
from jostle.core.types.boxes import Boxes
from jostle.core.types.clip import Frames
from jostle.core.types.frame_sets import BoxSets
from jostle.datasets.class_matching import match_objects
from jostle.datasets.dataset import Dataset
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.single_frames import NamedObjectModel, ObjectPredictor
from jostle.evaluation.recipes.recipe import Group, Recipe
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.results.run import Run
from jostle.evaluation.runner.runner import run_benchmark

CLASSES = ("light", "dark", "whale")
SETS = {f"{name}/000020": [f"{name}/000019", f"{name}/000022"] for name in NAMES}
TRUE = {
    f"{name}/0000{number}": Boxes([[4, 4, 20, 20], [30, 8, 44, 30]], [i % 2, 1])
    for i, name in enumerate(NAMES)
    for number in (19, 20, 22)
}
RECIPE = Recipe(
    name="small-boxes",
    version=1,
    dataset="folder",
    subset="test",
    task="objects",
    metric="pm_k_map",
    k=2,
    groups=(Group("noise", cells=("gaussian_noise:3",)),),
)


def find(frames: Frames) -> list[Boxes]:
    """Boxes that every pixel moves, surer and better placed where a frame is bright."""
    made = []
    for frame in frames:
        off = int(frame.astype(np.int64).sum() % 7)
        boxes = [[4 + off, 4, 20 + off, 20], [30, 8 + off, 44, 30 + off], [0, 0, 6, 6]]
        made.append(Boxes(boxes, [off % 2, 1, 0], [0.9 - off / 100, 0.5, 0.1 + off / 50]))
    return made


def load_predictor() -> ObjectPredictor:
    return ObjectPredictor(
        NamedObjectModel(find, "finder"), match_objects("finder", ("Light", "dark", "car"), CLASSES), 4
    )


def run(videos: dict[str, Path], out: Path, **options: Any) -> Run:
    data = Dataset("folder", "test", Path("data"), (BoxSets(CLASSES, SETS, TRUE),), videos)
    cells = select_cells(RECIPE, options.pop("cells", None))
    return run_benchmark(RECIPE, data, BenchmarkModel(load_predictor, model="finder"), out, cells=cells, **options)
