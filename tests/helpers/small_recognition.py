"""Benchmarks of recognition and of frames on a few short videos, with models of a few lines."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from helpers import small_run
from jostle.core.types.frame_sets import FrameSets
from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.class_matching import ClassMatch
from jostle.datasets.dataset import Dataset
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.recognition import RecognitionPredictor
from jostle.evaluation.inference.single_frames import FramePredictor
from jostle.evaluation.recipes.recipe import Group, Recipe
from jostle.evaluation.recipes.sampling import Sampling
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.results.run import Run
from jostle.evaluation.runner.runner import run_benchmark

NAMES, write_videos = small_run.NAMES, small_run.write_videos
CLASSES = ("jump", "run", "sit down")
SAMPLING = Sampling(clips=3)
# One of each level: frames, neighbours, order, codec, the file's own stream; and one that affects a few frames only.
CELLS = (
    "ucf101-p/gaussian_noise:2",
    "kinetics-c/motion_blur:1",
    "ucf101-p/reverse_sampling:3",
    "kinetics-c/h265_crf:2",
    "kinetics-c/bit_error:5",
    "thumos14-c/black_frame:1",
)
RECIPE = Recipe(
    name="small-p",
    version=1,
    dataset="folder",
    subset="test",
    task="recognition",
    metric="top_k_accuracy",
    k=1,
    sampling=SAMPLING,
    groups=(
        Group("main", cells=CELLS[:3]),
        Group("coded", cells=CELLS[3:5]),
        Group("more", cells=CELLS[5:], beside=True),
    ),
)
LABELS = VideoLabels(tuple(NAMES), CLASSES, np.arange(4), np.array([0, 1, 2, 0]))
FRAMES = FrameSets(
    {f"{name}/000020": [f"{name}/000019", f"{name}/000022"] for name in NAMES},
    {f"{name}/0000{number}": [i % 3] for i, name in enumerate(NAMES) for number in (19, 20, 22)},
)
FRAME_RECIPE = Recipe(
    name="small-frames",
    version=1,
    dataset="folder",
    subset="test",
    task="frames",
    metric="pm_k",
    k=2,
    labels_of="own",
    groups=(Group("more", cells=("gaussian_noise:2",), beside=True),),
)


@dataclass
class Weigher:
    """Scores that depend on every pixel and on the order of frames, the same for a clip in any company."""

    frames: int = 6
    step: int = 2
    fps: float | None = None
    classes: int = len(CLASSES)
    delay_s: float = 0.0
    given: list[int] = field(default_factory=list)
    name: str = "weigher"

    @property
    def spec(self) -> SimpleNamespace:
        own = {"spread": "step", "clips": None, "starts": "ends"}
        return SimpleNamespace(frames=self.frames, step=self.step, fps=self.fps, **own)

    def __call__(self, clips: np.ndarray) -> np.ndarray:
        assert clips.dtype == np.uint8
        assert clips.shape[1] == self.frames
        time.sleep(self.delay_s)
        self.given.append(len(clips))
        flat = clips.reshape(*clips.shape[:2], -1).astype(np.int64)
        order = np.arange(1, self.frames + 1)[:, None] * (np.arange(flat.shape[2]) * 7919 % 1009 + 1)
        summed = (flat * order).sum((1, 2))
        return np.stack([summed * (k + 3) % 997 for k in range(self.classes)], 1).astype(np.float32) / 997


def recognition_predictor(delay_s: float = 0.0) -> RecognitionPredictor:
    return RecognitionPredictor(Weigher(delay_s=delay_s), SAMPLING, ClassMatch("by number", 3))


def frame_predictor(delay_s: float = 0.0) -> FramePredictor:
    return FramePredictor(Weigher(1, delay_s=delay_s), ClassMatch("by number", None, least=3))


def data_of(videos: dict[str, Path], task: str = "recognition", **facts: Any) -> Dataset:
    annotations = LABELS if task == "recognition" else FRAMES
    return Dataset("folder", "test", Path("data"), (annotations,), videos, **facts)


def run(videos: dict[str, Path], out: Path, *, task: str = "recognition", delay_s: float = 0.0, **options: Any) -> Run:
    recipe, look = (RECIPE, recognition_predictor) if task == "recognition" else (FRAME_RECIPE, frame_predictor)
    data = options.pop("data", None) or data_of(videos, task)
    cells = select_cells(recipe, options.pop("cells", None))
    return run_benchmark(
        recipe, data, BenchmarkModel(partial(look, delay_s), model="weigher"), out, cells=cells, **options
    )
