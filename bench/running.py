"""Overhead of running a benchmark, apart from the model: `python -m bench.running`.

Three comparisons, each with a check that the results are equal to the bit:

- decoding, corrupting and passing frames to a model without cost, compared with decoding alone;
- two processes, compared with one;
- Ray on the same cores, where it is installed, compared with processes.

Videos are generated and encoded for the benchmark. Wall time says little on a machine that runs other programs, so the
CPU time of the work itself is printed too.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import importlib.util
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.clips import write_texture_video
from bench.timing import finish, make_parser
from jostle.core.types.clip import Frames
from jostle.datasets.class_matching import match_classes
from jostle.evaluation.inference.jobs import VideoJob, WorkerFactory
from jostle.evaluation.inference.recognition import RecognitionPredictor
from jostle.evaluation.recipes.recipe import CLEAN_CELL, Cell
from jostle.evaluation.recipes.sampling import Sampling
from jostle.io.video.decode import Reader
from jostle.parallel.workers import available_cpus, map_unordered

SIZE, FPS = (240, 320), 25
SPECS = ("ucf101-p/gaussian_noise:3", "ucf101-p/defocus_blur:3", "freeze:3")
CELLS = (CLEAN_CELL, *(Cell(spec, (spec,), None, "main", True) for spec in SPECS))
CLASSES = ("still", "moving")
ALONE, ONE, TWO, RAY = "decoding alone", "one process", "two processes", "two processes of Ray"
EFFICIENCY = 0.8  # target of two processes, relative to twice the speed of one


class BrightnessModel:
    """A model that costs next to nothing: two scores from the mean brightness."""

    name, spec = "brightness", None

    def __call__(self, clip_frames: Frames) -> Any:
        light = np.asarray(clip_frames).reshape(len(clip_frames), -1)[:, ::97].mean(1, dtype=np.float64)
        return np.stack([light, 255 - light], 1).astype(np.float32) / 255


def load_predictor() -> RecognitionPredictor:
    """Return the predictor of the brightness model."""
    match = match_classes("brightness", CLASSES, CLASSES, numbered=True)
    return RecognitionPredictor(BrightnessModel(), Sampling(), match)


@dataclass(frozen=True)
class TimedWorkerFactory:
    """Worker start function: processes a short video, to load libraries and kernels, and times every other one."""

    short: VideoJob

    def __call__(self) -> Callable[[VideoJob], tuple[Any, float]]:
        attempt = WorkerFactory(load_predictor)()
        attempt(self.short)

        def timed(job: VideoJob) -> tuple[Any, float]:
            start = time.process_time()
            return attempt(job), time.process_time() - start

        return timed


@dataclass(frozen=True)
class RunTiming:
    """Seconds of a run of the benchmark.

    Attributes:
        wall: wall time without the start of processes.
        cpu: CPU time of the work itself, in all processes together.
        start: wall time of the start of processes.
    """

    wall: float
    cpu: float
    start: float = 0.0


def write_videos(folder: Path, count: int, frames: int) -> list[Path]:
    """Write random videos, and return their paths."""
    paths = [folder / f"{number}-{frames}.mp4" for number in range(count)]
    for number, path in enumerate(paths):
        write_texture_video(path, size=SIZE, fps=FPS, frames=frames, block=(8, 8), seed=number)
    return paths


def decode_videos(paths: Sequence[Path]) -> None:
    """Decode all frames of videos and drop them."""
    for path in paths:
        with Reader(path, threads=1) as reader:
            for lo in range(0, len(reader), 64):
                reader.block(lo, min(lo + 64, len(reader)))


def time_run(
    run: Callable[[Sequence[VideoJob]], Any], jobs: Sequence[VideoJob], turns: int
) -> tuple[RunTiming, dict[str, bytes]]:
    """Return the medians of several turns, and the outputs for each video and cell as bytes."""
    walls, cpus, starts, outputs = [], [], [], {}
    for _ in range(turns):
        start, cpu, ready = time.perf_counter(), 0.0, None
        for job, (result, seconds) in run(jobs):
            cpu += seconds
            if ready is None:  # by then all processes have started, as videos have the same length
                ready = time.perf_counter() - seconds
            for cell, scores in result.outputs.items():
                outputs[f"{job.name} {cell}"] = scores.tobytes()
        walls.append(time.perf_counter() - (ready or start))
        starts.append((ready or start) - start)
        cpus.append(cpu)
    return RunTiming(*(statistics.median(times) for times in (walls, cpus, starts))), outputs


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the timings of all runs, and return the exit code."""
    parser = make_parser(__doc__)
    parser.add_argument("--videos", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=8, help="length of each video")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--no-ray", action="store_true")
    options = parser.parse_args(arguments)
    with_ray = not options.no_ray and importlib.util.find_spec("ray") is not None
    with tempfile.TemporaryDirectory() as folder:
        short = make_jobs(write_videos(Path(folder), 1, 8))[0]
        jobs = make_jobs(write_videos(Path(folder), options.videos, options.seconds * FPS))
        timings = measure(jobs, short, options.turns, with_ray=with_ray)
    frames = options.videos * options.seconds * FPS
    print(f"{options.videos} videos of {options.seconds} s, {SIZE[1]}x{SIZE[0]}, {frames} frames, {len(CELLS)} cells")
    print(f"on {available_cpus()} cores of {platform.processor() or platform.machine()}; results are equal to the bit")
    print(f"{'':24} {'wall, s':>8} {'CPU, s':>8} {'start, s':>9}")
    for name, timing in timings.items():
        print(f"{name:24} {timing.wall:8.2f} {timing.cpu:8.2f} {timing.start:9.2f}")
    alone, one, two = timings[ALONE], timings[ONE], timings[TWO]
    print(f"decoding alone: {frames / alone.cpu:.0f} frames a second of a core; ", end="")
    print(f"decoded once and processed in {len(CELLS)} cells: {frames * len(CELLS) / one.cpu:.0f}")
    gain = one.wall / two.wall
    print(f"two processes are {gain:.2f} times as fast as one (target {2 * EFFICIENCY:g}), ", end="")
    print(f"with {two.cpu / one.cpu:.2f} times its CPU time")
    if RAY in timings:
        ray = timings[RAY]
        print(f"Ray takes {ray.wall / two.wall:.2f} times the wall time of processes, ", end="")
        print(f"and {ray.cpu / two.cpu:.2f} times their CPU time")
    numbers: dict[str, Any] = {name: asdict(timing) for name, timing in timings.items()}
    return finish(options, numbers | {"frames": frames, "cells": len(CELLS)}, missed=gain < 2 * EFFICIENCY)


def make_jobs(paths: Sequence[Path]) -> list[VideoJob]:
    """Return a job for each video, with all cells."""
    return [VideoJob(path.stem, path, CELLS, 0) for path in paths]


def measure(jobs: Sequence[VideoJob], short: VideoJob, turns: int, *, with_ray: bool) -> dict[str, RunTiming]:
    """Time decoding alone and each kind of run, in the order of the table."""
    paths, factory = [job.path for job in jobs], TimedWorkerFactory(short)
    decode_videos(paths[:1])
    start, cpu = time.perf_counter(), time.process_time()
    for _ in range(turns):
        decode_videos(paths)
    timings = {ALONE: RunTiming((time.perf_counter() - start) / turns, (time.process_time() - cpu) / turns)}
    timings[ONE], expected = time_run(lambda some: map_unordered(factory, some, 1), jobs, turns)
    timings[TWO], outputs = time_run(lambda some: map_unordered(factory, some, 2), jobs, turns)
    assert outputs == expected
    if with_ray:
        from jostle.parallel.cluster.connection import Cluster

        start = time.perf_counter()
        with Cluster(jobs=2) as cluster:
            connect_s = time.perf_counter() - start
            timing, outputs = time_run(lambda some: cluster.map_unordered(factory, some, 2), jobs, turns)
        timings[RAY] = replace(timing, start=timing.start + connect_s)
        assert outputs == expected
    return timings


if __name__ == "__main__":
    from bench import running  # so that other processes can import the same module

    sys.exit(running.main())
