"""Scaling of time and memory with the size of the input: `python -m bench.growth`.

One size at a time is increased while all others are constant: the video, the cells, the videos, the predictions, the
classes, the workers. Each point is measured in a process of its own: CPU time without preparation (wall time for
several workers), and peak memory as counted by the kernel, including Python and its libraries. The slope is that of
the logarithms between the last two sizes: 1 for linear growth, 0 for none, and -1 for time that workers share evenly.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import argparse
import json
import math
import platform
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import jostle
from bench.detections import make_predictions, make_truth
from bench.run_memory import list_cells
from bench.running import FPS, BrightnessModel, write_videos
from bench.timing import finish, make_parser, time_call
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.metrics.diagnosis import diagnose, styles
from jostle.metrics.score import score
from jostle.models.input_spec import InputSpec
from jostle.parallel.workers import available_cpus

Work = Callable[[], Any]
SHORT = 4 * FPS  # frames of a video whose length is constant
BRIEF = 12  # frames of each of many videos
CLIP = InputSpec(frames=16, stride=4, resize=128, size=112)


@dataclass(frozen=True)
class Point:
    """CPU seconds and peak memory at one size."""

    what: str
    size: int
    seconds: float
    peak_mb: float


def prepare_corruption(folder: Path, seconds: int) -> Work:
    """Return a function that reads, corrupts and writes a file."""
    (source,) = write_videos(folder, 1, seconds * FPS)
    return lambda: jostle.corrupt_file(source, "gaussian_noise:3", folder / "out.mp4")


def prepare_run(
    folder: Path,
    *,
    videos: int = 4,
    cells: int = 2,
    frames: int = SHORT,
    jobs: int = 1,
    spec: InputSpec | None = None,
) -> Work:
    """Return a function that runs a benchmark on a model without cost, on all frames at once if it has no `spec`."""
    for label in ("still", "moving"):
        (folder / "data" / "test" / label).mkdir(parents=True)
    for number, path in enumerate(write_videos(folder, videos, frames)):
        path.rename(folder / "data" / "test" / ("still", "moving")[number % 2] / f"{number}.mp4")
    head = 'name = "growth"\nversion = 1\ndataset = "folder"\nsubset = "test"\n'
    task = 'task = "recognition"\nmetric = "top_k_accuracy"\nk = 1\n'
    group = f'[[groups]]\nname = "main"\ncells = {json.dumps(list_cells(cells))}\nplacements = ["everywhere"]\n'
    (folder / "growth.toml").write_text(f"{head}{task}\n{group}")
    data, out = folder / "data", folder / "run"
    recipe, model = folder / "growth.toml", BrightnessModel()
    return lambda: jostle.run(recipe, model=model, data=data, out=out, jobs=jobs, spec=spec)


def prepare_scoring(folder: Path, count: int) -> Work:
    """Return a function that computes mean average precision at five thresholds."""
    truth = make_truth()
    predictions = make_predictions(truth, count)
    return lambda: score(predictions, truth, protocol="activitynet", tious=(0.3, 0.4, 0.5, 0.6, 0.7))


def prepare_diagnosis(folder: Path, count: int) -> Work:
    """Return a function that computes DETAD's diagnosis."""
    truth = make_truth()
    predictions = make_predictions(truth, count)
    return lambda: diagnose(predictions, truth, style=styles["thumos14"])


def prepare_classes(folder: Path, classes: int) -> Work:
    """Return a function that scores 100,000 predictions of a number of classes."""
    truth = make_truth()
    predictions = make_predictions(truth, 100_000)
    names = tuple(f"class {number:05d}" for number in range(classes))
    rng = np.random.default_rng(0)
    true_label = rng.integers(0, classes, len(truth)).astype(np.int32)
    truth = Truth(**{**vars(truth), "classes": names, "label": true_label})
    label = rng.integers(0, classes, len(predictions)).astype(np.int32)
    predictions = Predictions(**{**vars(predictions), "classes": names, "label": label})
    return lambda: score(predictions, truth, protocol="activitynet", tious=(0.5,))


EXPERIMENTS: dict[str, tuple[Callable[[Path, int], Work], tuple[int, ...]]] = {  # preparation, and sizes
    "seconds of a video, corrupted": (prepare_corruption, (10, 40, 160)),
    "seconds of two videos, run by clips": (
        lambda folder, size: prepare_run(folder, videos=2, frames=size * FPS, spec=CLIP),
        (10, 40, 160),
    ),
    "seconds of two videos, run whole": (
        lambda folder, size: prepare_run(folder, videos=2, frames=size * FPS),
        (10, 40, 160),
    ),
    "cells of a run": (lambda folder, size: prepare_run(folder, cells=size), (3, 12, 48)),
    "videos of a run": (lambda folder, size: prepare_run(folder, videos=size, frames=BRIEF), (16, 64, 256)),
    "predictions, scored": (prepare_scoring, (10_000, 100_000, 1_000_000)),
    "predictions, diagnosed": (prepare_diagnosis, (10_000, 100_000, 1_000_000)),
    "classes, scored": (prepare_classes, (10, 100, 1000)),
}
WORKERS = "workers of a run, on the wall"


def measure_point(what: str, size: int) -> None:
    """Measure one size in this process, and print the point as JSON."""
    with tempfile.TemporaryDirectory() as name:
        folder, warm = Path(name) / "own", Path(name) / "warm"
        folder.mkdir()
        warm.mkdir()
        # A small input loads libraries and kernels.
        if "scored" in what or "diagnosed" in what:
            EXPERIMENTS[what][0](warm, 1000 if "predictions" in what else 10)()
        elif "corrupted" in what:
            prepare_corruption(warm, 1)()
        else:
            prepare_run(warm, videos=2, frames=BRIEF, cells=10)()
        if what == WORKERS:
            seconds = time_call(prepare_run(folder, videos=48, jobs=size), "wall")
        else:
            seconds = time_call(EXPERIMENTS[what][0](folder, size), "cpu")
    processes = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peak_mb = max(resource.getrusage(process).ru_maxrss for process in processes) / 1024
    print(json.dumps(asdict(Point(what, size, seconds, peak_mb))))


def slope(points: Sequence[Point], field: str) -> float:
    """Return the slope of the logarithm of a field over that of the size, between the last two points."""
    before, last = points[-2:]
    return math.log(getattr(last, field) / getattr(before, field)) / math.log(last.size / before.size)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table of all experiments, draw the figure if requested, and return the exit code."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", choices=[*EXPERIMENTS, WORKERS], action="append")
    parser.add_argument("--figure", type=Path, help="also draw a figure to this file")
    parser.add_argument("--one", nargs=2, metavar=("WHAT", "SIZE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        measure_point(options.one[0], int(options.one[1]))
        return 0
    sizes = {what: experiment[1] for what, experiment in EXPERIMENTS.items()}
    sizes[WORKERS] = tuple(2**power for power in range(available_cpus().bit_length()))
    print(f"{platform.machine()}, {available_cpus()} cores")
    print("| | sizes | seconds | slope | peak memory, MB | slope |")
    print("|---|---|---|---|---|---|")
    curves: dict[str, list[Point]] = {}
    for what in options.only or sizes:
        points = curves[what] = [_measure_in_child(what, size) for size in sizes[what]]
        cells = [
            what,
            ", ".join(f"{point.size:,}" for point in points),
            ", ".join(f"{point.seconds:.3g}" for point in points),
            f"{slope(points, 'seconds'):.2f}" if len(points) > 1 else "",
            ", ".join(f"{point.peak_mb:.0f}" for point in points),
            f"{slope(points, 'peak_mb'):.2f}" if len(points) > 1 else "",
        ]
        print("| " + " | ".join(cells) + " |", flush=True)
    code = finish(options, [asdict(point) for points in curves.values() for point in points])
    if options.figure:
        draw_curves(curves, options.figure)
    return code


def _measure_in_child(what: str, size: int) -> Point:
    command = [sys.executable, "-m", "bench.growth", "--one", what, str(size)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return Point(**json.loads(output.splitlines()[-1]))


def draw_curves(curves: dict[str, list[Point]], path: Path) -> None:
    """Draw time and memory of each experiment, as multiples of those of the smallest size."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    from jostle.reporting.charts.palette import SERIES

    blue, orange, grey = (SERIES[name][0] for name in ("clean", "localization", "background"))
    columns = 4
    rows = -(-len(curves) // columns)
    figure, grid = pyplot.subplots(rows, columns, figsize=(11, 2.7 * rows), squeeze=False)
    for axes, (what, points) in zip(grid.flat, curves.items(), strict=False):
        sizes = [point.size for point in points]
        times = [point.seconds / points[0].seconds for point in points]
        memory = [point.peak_mb / points[0].peak_mb for point in points]
        axes.loglog(sizes, [size / sizes[0] for size in sizes], color=grey, linestyle=":", label="linear")
        axes.loglog(sizes, times, color=blue, marker="o", label="time")
        axes.loglog(sizes, memory, color=orange, marker="s", label="memory")
        axes.set_title(what, fontsize=9)
        axes.minorticks_off()
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.set_yticks([1, 10, 100], ["1", "10", "100"])
        values = [value for line in axes.lines for value in line.get_ydata()]
        axes.set_ylim(0.7 * min(values), 1.4 * max(values))
        axes.tick_params(labelsize=8)
    for axes in grid.flat[len(curves) :]:
        axes.axis("off")
    grid.flat[0].legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(main())
