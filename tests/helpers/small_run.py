"""A benchmark of a few cells on a few short videos, with a model of a few lines."""

from __future__ import annotations

import ctypes
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from helpers.numpy_extractor import TwoParts, write_video
from jostle.core import interruption
from jostle.core.types import Segments, Truth
from jostle.datasets.dataset import Dataset
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.detection import FeatureDetectionPredictor
from jostle.evaluation.probing.probe import Probe, parse_kinds, probe_benchmark
from jostle.evaluation.recipes.recipe import Group, Recipe
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.results.run import Run
from jostle.evaluation.runner.runner import run_benchmark
from jostle.io.video import ffmpeg_frames
from jostle.mending.finders.known import KnownDamage

NAMES = "abcd"
RECIPE = Recipe(
    name="small-c",
    version=1,
    dataset="folder",
    subset="test",
    task="detection",
    metric="mean_ap",
    protocol="thumos14",
    groups=(
        Group("main", cells=("thumos14-c/black_frame:1", "thumos14-c/black_frame:3", "freeze:3")),
        Group("more", cells=("thumos14-c/packet_loss:2",), beside=True),
    ),
)
TRUTH = Truth.from_segments({name: Segments.from_pairs([(0.2 + 0.1 * i, 1.4)]) for i, name in enumerate(NAMES)})


class Leaning:
    """Two segments a video that depend on all of its features."""

    def __init__(self, delay_s: float = 0.0) -> None:
        self.delay_s = delay_s

    def detect(self, features: np.ndarray, **facts: Any) -> Segments:
        time.sleep(self.delay_s)
        lean = float(features.astype(np.float64).sum() % 997) / 997
        return Segments([0.2, 1.5 * lean], [1.2 + 0.2 * lean, 1.9], [0, 0], [0.5 + lean / 3, lean / 2], ("action",))


def load_predictor(delay_s: float = 0.0) -> FeatureDetectionPredictor:
    return FeatureDetectionPredictor(TwoParts(8, 2), Leaning(delay_s))


class BrokenDecoder:
    """A decoder that calls a function of C, such as `raise(11)` or `sleep(600)`, behind the 49th frame of a video."""

    def __init__(self, native: str, argument: int, context: Any) -> None:
        self.native, self.argument, self.context = native, argument, context

    def decode(self, packet: Any) -> list[Any]:
        if packet is not None and packet.pts is not None and packet.pts * packet.time_base > 1.95:
            getattr(ctypes.CDLL(None), self.native)(self.argument)
        frames: list[Any] = self.context.decode(packet)
        return frames


def load_predictor_with_broken_decoder(native: str, argument: int) -> FeatureDetectionPredictor:
    """For a worker, whose native calls are limited to one second from here on."""
    decode = ffmpeg_frames.decode_packet
    ffmpeg_frames.decode_packet = lambda context, *rest: decode(BrokenDecoder(native, argument, context), *rest)  # type: ignore[arg-type]
    interruption.limit_native_calls(1)
    return load_predictor()


def load_mending_predictor() -> FeatureDetectionPredictor:
    return FeatureDetectionPredictor(TwoParts(8, 2), Leaning(), mending=KnownDamage())


def benchmark_model(delay_s: float = 0.0, weights: str = "w1") -> BenchmarkModel:
    return BenchmarkModel(
        partial(load_predictor, delay_s), model="leaning", weights=weights, weights_from="file", extractor="two_parts"
    )


def mended_run(videos: dict[str, Path], out: Path, cells: list[str] | None = None, jobs: int = 1) -> Run:
    """Return the same predictor with damaged frames known and repaired."""
    made = replace(benchmark_model(), load=load_mending_predictor, mend="known")
    return run_benchmark(RECIPE, data_of(videos), made, out, cells=select_cells(RECIPE, cells), jobs=jobs)


def write_videos(folder: Path) -> dict[str, Path]:
    return {name: write_video(folder / f"{name}.mkv", 48, seed=seed) for seed, name in enumerate(NAMES)}


def data_of(videos: dict[str, Path], **facts: Any) -> Dataset:
    return Dataset("folder", "test", Path("data"), (TRUTH,), videos, **facts)


def run(videos: dict[str, Path], out: Path, *, delay_s: float = 0.0, weights: str = "w1", **options: Any) -> Run:
    recipe = options.pop("recipe", RECIPE)
    data = options.pop("data", None) or data_of(videos)
    cells = select_cells(recipe, options.pop("cells", None))
    return run_benchmark(recipe, data, benchmark_model(delay_s, weights), out, cells=cells, **options)


def probe(films: dict[str, Path], out: Path, weights: str = "w1", **options: Any) -> Probe:
    """Breaking points by black frames."""
    kinds, model = parse_kinds(options.pop("kinds", ["thumos14-c/black_frame"])), benchmark_model(weights=weights)
    options = {"threshold": 0.6} | options
    return probe_benchmark(RECIPE, data_of(films), model, out, kinds=kinds, **options)
