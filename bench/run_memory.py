"""What memory a run takes: `python -m bench.run_memory`.

A detector and a recogniser look at one video, each in a process of its own: a short video in few cells, one sixteen
times as long, and the short one in sixteen times as many cells. Peak memory is the kernel's count; Python, torch and
the networks are in it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.running import FPS, write_videos
from bench.timing import finish, make_parser
from bench.video import run_child
from jostle.datasets.puppets.film import CLASSES

SHORT_S, TIMES = 30, 16
FEW = 3
MOST = 1.25  # times the memory of the short video in few cells
CORRUPTIONS = (
    *("brightness", "contrast", "fog", "gaussian_noise", "defocus_blur", "pixelate", "saturate", "spatter"),
    *("black_frame", "freeze"),
)
DETECTION = 'task = "detection"\nmetric = "mean_ap"\nprotocol = "thumos14"\ntious = [0.5]\n'
RECOGNITION = 'task = "recognition"\nmetric = "top_k_accuracy"\nk = 1\n'
TASKS = {"detection": ("temporalmaxer_puppets", DETECTION), "recognition": ("puppet_r2plus1d", RECOGNITION)}


@dataclass(frozen=True)
class Point:
    """One measurement."""

    task: str
    seconds: int
    cells: int
    peak_mb: float
    took_s: float


def cells_of(count: int) -> list[str]:
    """So many cells of ten corruptions at five severities."""
    return [f"{name}:{level}" for level in range(1, 6) for name in CORRUPTIONS][:count]


def prepare(folder: Path, task: str, seconds: int, cells: int) -> list[str]:
    """Lay out a data set of one video and a recipe; gives the command that runs it."""
    root = folder / f"{task}-{seconds}-{cells}"
    if task == "detection":
        home = root / "data"
        home.mkdir(parents=True)
        actions = [{"label": label, "segment": [i + 0.2, i + 1.9], "label_id": i} for i, label in enumerate(CLASSES)]
        entry = {"subset": "test", "duration": float(seconds), "fps": FPS, "annotations": actions}
        (home / "truth.json").write_text(json.dumps({"database": {"one": entry}}))
    else:
        for label in CLASSES:
            (root / "data" / "test" / label).mkdir(parents=True)
        home = root / "data" / "test" / CLASSES[0]
    write_videos(root, 1, seconds * FPS)[0].rename(home / "one.mp4")
    model, scored = TASKS[task]
    listed = json.dumps(cells_of(cells))
    head = f'name = "memory"\nversion = 1\ndataset = "folder"\nsubset = "test"\n{scored}'
    group = f'[[groups]]\nname = "main"\ncells = {listed}\nplacements = ["everywhere"]\n'
    (root / "memory.toml").write_text(f"{head}\n{group}")
    words = ["run", str(root / "memory.toml"), "--model", model, "--data", str(root / "data"), "-o", str(root / "run")]
    return [sys.executable, "-m", "jostle", *words, "-j", "1", "--device", "cpu", "-q"]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser(__doc__, strict="exit with 1 if memory grows")
    parser.add_argument("--seconds", type=int, default=SHORT_S, help="of the short video")
    given = parser.parse_args(arguments)
    points: list[Point] = []
    missed = False
    for task in TASKS:
        for seconds, cells in ((1, 1), (TIMES, 1), (1, TIMES)):
            with tempfile.TemporaryDirectory() as folder:
                command = prepare(Path(folder), task, given.seconds * seconds, FEW * cells)
                child = run_child(command)
            points.append(Point(task, given.seconds * seconds, FEW * cells, child.peak_mb, child.seconds))
            first = next(point for point in points if point.task == task)
            times = points[-1].peak_mb / first.peak_mb
            print(
                f"{task}: {points[-1].seconds} s, {points[-1].cells} cells: {child.peak_mb:.0f} MB, {times:.2f} times; "
                f"{child.seconds:.0f} s",
                flush=True,
            )
            missed |= times > MOST
    if missed:
        print(f"missed: memory grows to more than {MOST} times", file=sys.stderr)
    return finish(given, [vars(point) for point in points], missed=missed)


if __name__ == "__main__":
    sys.exit(main())
