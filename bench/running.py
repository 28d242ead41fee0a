"""What running a benchmark costs besides the model: `python -m bench.running`.

Three questions, each with a check that the answers agree to the bit:

- how many frames a second are decoded, corrupted and handed to a model that does nothing, against decoding alone;
- how much faster two processes are than one;
- what Ray adds to the same work on the same cores, where it is installed.

Videos are drawn and encoded for the purpose. The clock on the wall says little on a machine that does other things as
well, so the CPU time of the work itself stands beside it.
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

from bench.timing import finish, make_parser
from jostle.core.types.clip import Frames
from jostle.datasets.class_matching import match_classes
from jostle.evaluation.inference.jobs import VideoJob, WorkerFactory
from jostle.evaluation.inference.recognition import RecognitionPredictor
from jostle.evaluation.recipes.recipe import CLEAN_CELL, Cell
from jostle.evaluation.recipes.sampling import Sampling
from jostle.io.video.decode import Reader
from jostle.io.video.encode import Writer
from jostle.parallel.workers import available_cpus, map_unordered

SIZE, FPS = (240, 320), 25
SPECS = ("ucf101-p/gaussian_noise:3", "ucf101-p/defocus_blur:3", "freeze:3")
CELLS = (CLEAN_CELL, *(Cell(spec, (spec,), None, "main", True) for spec in SPECS))
CLASSES = ("still", "moving")
ALONE, ONE, TWO, RAY = "decoding alone", "one process", "two processes", "two processes of Ray"
EFFICIENT = 0.8  # of two processes, beside twice the speed of one


class Glance:
    """A model that costs next to nothing: two numbers from every pixel."""

    name, spec = "glance", None

    def __call__(self, clip_frames: Frames) -> Any:
        light = np.asarray(clip_frames).reshape(len(clip_frames), -1)[:, ::97].mean(1, dtype=np.float64)
        return np.stack([light, 255 - light], 1).astype(np.float32) / 255


def load() -> RecognitionPredictor:
    """What looks at a video: in one process as in another."""
    match = match_classes("glance", CLASSES, CLASSES, numbered=True)
    return RecognitionPredictor(Glance(), Sampling(), match)


@dataclass(frozen=True)
class Warm:
    """Starts a process with a short video, which has libraries and kernels loaded; then takes the time of each."""

    short: VideoJob

    def __call__(self) -> Callable[[VideoJob], tuple[Any, float]]:
        attempt = WorkerFactory(load)()
        attempt(self.short)

        def clocked(order: VideoJob) -> tuple[Any, float]:
            begun = time.process_time()
            return attempt(order), time.process_time() - begun

        return clocked


@dataclass(frozen=True)
class Way:
    """Seconds of one way of doing it.

    Attributes:
        wall: on the clock on the wall, without the start of processes.
        cpu: of the work itself, in all processes together; other programs do not disturb it.
        start: of processes, on the wall.
    """

    wall: float
    cpu: float
    start: float = 0.0


def write_videos(folder: Path, count: int, frames: int) -> list[Path]:
    """Textures that drift, which neither coder nor decoder gets for nothing."""
    paths = []
    for number in range(count):
        rng = np.random.default_rng(number)
        ground = rng.integers(0, 256, (SIZE[0] // 8, SIZE[1] // 8, 3)).repeat(8, 0).repeat(8, 1).astype(np.uint8)
        paths.append(folder / f"{number}-{frames}.mp4")
        with Writer(paths[-1], size=SIZE, fps=FPS) as writer:
            for tick in range(frames):
                writer.write(np.roll(ground, (tick, 2 * tick), (0, 1)), tick)
    return paths


def decoded(paths: Sequence[Path]) -> int:
    """Decode all videos and do nothing; how many frames."""
    frames = 0
    for path in paths:
        with Reader(path, threads=1) as reader:
            for lo in range(0, len(reader), 64):
                frames += len(reader.block(lo, min(lo + 64, len(reader))))
    return frames


def way_of(
    do: Callable[[Sequence[VideoJob]], Any], orders: Sequence[VideoJob], turns: int
) -> tuple[Way, dict[str, bytes]]:
    """The medians of some turns, and what was found in each video and cell, as bytes."""
    walls, cpus, starts, found = [], [], [], {}
    for _ in range(turns):
        begun, cpu, since = time.perf_counter(), 0.0, None
        for order, (result, seconds) in do(orders):
            cpu += seconds
            if since is None:  # by then all processes have started, as videos are of one length
                since = time.perf_counter() - seconds
            for cell, scores in result.outputs.items():
                found[f"{order.name} {cell}"] = scores.tobytes()
        walls.append(time.perf_counter() - (since or begun))
        starts.append((since or begun) - begun)
        cpus.append(cpu)
    return Way(*(statistics.median(taken) for taken in (walls, cpus, starts))), found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; exit with 1 under --strict when the target is missed."""
    parser = make_parser(__doc__)
    parser.add_argument("--videos", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=8, help="of each video")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--no-ray", action="store_true")
    options = parser.parse_args(arguments)
    with_ray = not options.no_ray and importlib.util.find_spec("ray") is not None
    with tempfile.TemporaryDirectory() as folder:
        short = orders_of(write_videos(Path(folder), 1, 8))[0]
        orders = orders_of(write_videos(Path(folder), options.videos, options.seconds * FPS))
        found = measured(orders, short, options.turns, with_ray=with_ray)
    frames = options.videos * options.seconds * FPS
    print(f"{options.videos} videos of {options.seconds} s, {SIZE[1]}x{SIZE[0]}, {frames} frames, {len(CELLS)} cells")
    print(
        f"on {available_cpus()} cores of {platform.processor() or platform.machine()}; results are the same to the bit"
    )
    print(f"{'':24} {'wall, s':>8} {'CPU, s':>8} {'start, s':>9}")
    for name, way in found.items():
        print(f"{name:24} {way.wall:8.2f} {way.cpu:8.2f} {way.start:9.2f}")
    alone, one, two = found[ALONE], found[ONE], found[TWO]
    print(
        f"decoding alone gives {frames / alone.cpu:.0f} frames a second of a core; decoded once and shown in ", end=""
    )
    print(f"{len(CELLS)} cells they are {frames * len(CELLS) / one.cpu:.0f}")
    gain = one.wall / two.wall
    print(f"two processes are {gain:.2f} times as fast as one (aim {2 * EFFICIENT:g}), ", end="")
    print(f"for {two.cpu / one.cpu:.2f} of its CPU time")
    if RAY in found:
        ray = found[RAY]
        print(
            f"Ray takes {ray.wall / two.wall:.2f} of the time and {ray.cpu / two.cpu:.2f} of the CPU time of processes"
        )
    numbers = {name: asdict(way) for name, way in found.items()} | {"frames": frames, "cells": len(CELLS)}
    return finish(options, numbers, missed=gain < 2 * EFFICIENT)


def orders_of(paths: Sequence[Path]) -> list[VideoJob]:
    """One for each video, in every cell."""
    return [VideoJob(path.stem, path, CELLS, 0) for path in paths]


def measured(orders: Sequence[VideoJob], short: VideoJob, turns: int, *, with_ray: bool) -> dict[str, Way]:
    """Every way of doing it, in the order of the table."""
    paths, start = [order.path for order in orders], Warm(short)
    decoded(paths[:1])
    begun, cpu = time.perf_counter(), time.process_time()
    for _ in range(turns):
        decoded(paths)
    found = {ALONE: Way((time.perf_counter() - begun) / turns, (time.process_time() - cpu) / turns)}
    found[ONE], known = way_of(lambda given: map_unordered(start, given, 1), orders, turns)
    found[TWO], same = way_of(lambda given: map_unordered(start, given, 2), orders, turns)
    assert same == known
    if with_ray:
        from jostle.parallel.cluster.connection import Cluster

        begun = time.perf_counter()
        with Cluster(jobs=2) as cluster:
            up = time.perf_counter() - begun
            way, same = way_of(lambda given: cluster.map_unordered(start, given, 2), orders, turns)
        found[RAY] = replace(way, start=way.start + up)
        assert same == known
    return found


if __name__ == "__main__":
    from bench import running  # so that other processes find the same module

    sys.exit(running.main())
