"""How cost and memory grow: `python -m bench.growth`.

One thing is made four times as large, and again, while all others stay: the video, the cells, the videos, the
predictions, the classes, the workers. Each point is a process of its own, which says the time of the work itself
without its preparation, on the clock of the CPU, and of several workers on the wall; peak memory is the kernel's count,
Python and its libraries in it. The slope is that of the logarithms from the second largest to the largest: 1 for what
grows in step, 0 for what does not grow, and -1 for time that workers share out evenly.
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
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jostle
from bench.detections import made_predictions, made_truth
from bench.run_memory import cells_of
from bench.running import FPS, Glance, write_videos
from bench.timing import finish, make_parser
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.metrics.diagnosis import diagnose, styles
from jostle.metrics.score import score
from jostle.models.input_spec import InputSpec
from jostle.parallel.workers import available_cpus

Work = Callable[[], Any]
SHORT = 4 * FPS  # frames of a video that is not the one to grow
BRIEF = 12  # and where there are many
CLIP = InputSpec(frames=16, stride=4, resize=128, size=112)


@dataclass(frozen=True)
class Point:
    """One measurement."""

    what: str
    size: int
    seconds: float
    peak_mb: float


def corrupted(folder: Path, seconds: int) -> Work:
    """A file, read, corrupted and written."""
    (source,) = write_videos(folder, 1, seconds * FPS)
    return lambda: jostle.corrupt_file(source, "gaussian_noise:3", folder / "out.mp4")


def run_of(
    folder: Path,
    *,
    videos: int = 4,
    cells: int = 2,
    frames: int = SHORT,
    jobs: int = 1,
    spec: InputSpec | None = None,
) -> Work:
    """A benchmark on a model that costs nothing; one that does not say what it wants is shown all frames at once."""
    for label in ("still", "moving"):
        (folder / "data" / "test" / label).mkdir(parents=True)
    for number, path in enumerate(write_videos(folder, videos, frames)):
        path.rename(folder / "data" / "test" / ("still", "moving")[number % 2] / f"{number}.mp4")
    head = 'name = "growth"\nversion = 1\ndataset = "folder"\nsubset = "test"\n'
    task = 'task = "recognition"\nmetric = "top_k_accuracy"\nk = 1\n'
    group = f'[[groups]]\nname = "main"\ncells = {json.dumps(cells_of(cells))}\nplacements = ["everywhere"]\n'
    (folder / "growth.toml").write_text(f"{head}{task}\n{group}")
    data, out = folder / "data", folder / "run"
    return lambda: jostle.run(folder / "growth.toml", model=Glance(), data=data, out=out, jobs=jobs, spec=spec)


def scored(folder: Path, predictions: int) -> Work:
    """Mean average precision at five thresholds."""
    truth = made_truth()
    made = made_predictions(truth, predictions)
    return lambda: score(made, truth, protocol="activitynet", tious=(0.3, 0.4, 0.5, 0.6, 0.7))


def diagnosed(folder: Path, predictions: int) -> Work:
    """What DETAD says."""
    truth = made_truth()
    made = made_predictions(truth, predictions)
    return lambda: diagnose(made, truth, style=styles["thumos14"])


def of_classes(folder: Path, classes: int) -> Work:
    """A hundred thousand predictions, of more and more classes."""
    truth = made_truth()
    made = made_predictions(truth, 100_000)
    names = tuple(f"class {number:05d}" for number in range(classes))
    rng = np.random.default_rng(0)
    label = rng.integers(0, classes, len(truth)).astype(np.int32)
    many = Truth(**{**vars(truth), "classes": names, "label": label})
    theirs = rng.integers(0, classes, len(made)).astype(np.int32)
    found = Predictions(**{**vars(made), "classes": names, "label": theirs})
    return lambda: score(found, many, protocol="activitynet", tious=(0.5,))


GROWING: dict[str, tuple[Callable[[Path, int], Work], tuple[int, ...]]] = {
    "seconds of a video, corrupted": (corrupted, (10, 40, 160)),
    "seconds of two videos, run by clips": (
        lambda folder, size: run_of(folder, videos=2, frames=size * FPS, spec=CLIP),
        (10, 40, 160),
    ),
    "seconds of two videos, run whole": (
        lambda folder, size: run_of(folder, videos=2, frames=size * FPS),
        (10, 40, 160),
    ),
    "cells of a run": (lambda folder, size: run_of(folder, cells=size), (3, 12, 48)),
    "videos of a run": (lambda folder, size: run_of(folder, videos=size, frames=BRIEF), (16, 64, 256)),
    "predictions, scored": (scored, (10_000, 100_000, 1_000_000)),
    "predictions, diagnosed": (diagnosed, (10_000, 100_000, 1_000_000)),
    "classes, scored": (of_classes, (10, 100, 1000)),
}
WORKERS = "workers of a run, on the wall"


def measured(what: str, size: int) -> None:
    """Do one piece of work in this process, and print what it took."""
    with tempfile.TemporaryDirectory() as name:
        folder, warm = Path(name) / "own", Path(name) / "warm"
        folder.mkdir()
        warm.mkdir()
        # Libraries and kernels are loaded by a little of the same.
        if "scored" in what or "diagnosed" in what:
            GROWING[what][0](warm, 1000 if "predictions" in what else 10)()
        else:
            (corrupted(warm, 1) if "corrupted" in what else run_of(warm, videos=2, frames=BRIEF, cells=10))()
        if what == WORKERS:
            work, clock = partial(run_of, folder, videos=48)(jobs=size), time.perf_counter
        else:
            work, clock = GROWING[what][0](folder, size), time.process_time
        begun = clock()
        work()
        taken = clock() - begun
    both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peak = max(resource.getrusage(whose).ru_maxrss for whose in both) / 1024
    print(json.dumps(asdict(Point(what, size, taken, peak))))


def slope(points: Sequence[Point], of: str) -> float:
    """Of the logarithms, from the second largest to the largest."""
    before, last = points[-2:]
    return math.log(getattr(last, of) / getattr(before, of)) / math.log(last.size / before.size)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and draw if asked to."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", choices=[*GROWING, WORKERS], action="append")
    parser.add_argument("--figure", type=Path, help="also draw it")
    parser.add_argument("--one", nargs=2, metavar=("WHAT", "SIZE"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one:
        measured(given.one[0], int(given.one[1]))
        return 0
    sizes = {name: found[1] for name, found in GROWING.items()}
    sizes[WORKERS] = tuple(2**power for power in range(available_cpus().bit_length()))
    print(f"{platform.machine()}, {available_cpus()} cores")
    print("| | sizes | seconds | slope | peak memory, MB | slope |")
    print("|---|---|---|---|---|---|")
    every: dict[str, list[Point]] = {}
    for what in given.only or sizes:
        points = every[what] = [_child(what, size) for size in sizes[what]]
        cells = [
            what,
            ", ".join(f"{point.size:,}" for point in points),
            ", ".join(f"{point.seconds:.3g}" for point in points),
            f"{slope(points, 'seconds'):.2f}" if len(points) > 1 else "",
            ", ".join(f"{point.peak_mb:.0f}" for point in points),
            f"{slope(points, 'peak_mb'):.2f}" if len(points) > 1 else "",
        ]
        print("| " + " | ".join(cells) + " |", flush=True)
    finish(given, [asdict(one) for points in every.values() for one in points])
    if given.figure:
        draw(every, given.figure)
    return 0


def _child(what: str, size: int) -> Point:
    command = [sys.executable, "-m", "bench.growth", "--one", what, str(size)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return Point(**json.loads(said.splitlines()[-1]))


def draw(every: dict[str, list[Point]], path: Path) -> None:
    """A small picture for each: time and memory, as multiples of the smallest size's."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    from jostle.reporting.figures.style import BLUE, GREY, ORANGE

    across = 4
    down = -(-len(every) // across)
    figure, axes = pyplot.subplots(down, across, figsize=(11, 2.7 * down), squeeze=False)
    for place, (what, points) in zip(axes.flat, every.items(), strict=False):
        sizes = [point.size for point in points]
        place.loglog(sizes, [size / sizes[0] for size in sizes], color=GREY, linestyle=":", label="in step")
        place.loglog(
            sizes, [point.seconds / points[0].seconds for point in points], color=BLUE, marker="o", label="time"
        )
        memory = [point.peak_mb / points[0].peak_mb for point in points]
        place.loglog(sizes, memory, color=ORANGE, marker="s", label="memory")
        place.set_title(what, fontsize=9)
        place.minorticks_off()
        place.set_xticks(sizes, [f"{size:,}" for size in sizes])
        place.set_yticks([1, 10, 100], ["1", "10", "100"])
        drawn = [value for line in place.lines for value in line.get_ydata()]
        place.set_ylim(0.7 * min(drawn), 1.4 * max(drawn))
        place.tick_params(labelsize=8)
    for place in axes.flat[len(every) :]:
        place.axis("off")
    axes.flat[0].legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(main())
