"""Peak memory of a run: `python -m bench.run_memory`.

A detector and a recogniser process one video, each in a process of its own: a short video in few cells, one sixteen
times as long, and the short one in sixteen times as many cells. Peak memory is counted by the kernel and includes
Python, torch and the networks.
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
FEW_CELLS = 3
MAX_GROWTH = 1.25  # target, relative to the memory of the short video in few cells
CORRUPTIONS = (
    *("brightness", "contrast", "fog", "gaussian_noise", "defocus_blur", "pixelate", "saturate", "spatter"),
    *("black_frame", "freeze"),
)
DETECTION = 'task = "detection"\nmetric = "mean_ap"\nprotocol = "thumos14"\ntious = [0.5]\n'
RECOGNITION = 'task = "recognition"\nmetric = "top_k_accuracy"\nk = 1\n'
TASKS = {"detection": ("temporalmaxer_puppets", DETECTION), "recognition": ("puppet_r2plus1d", RECOGNITION)}


@dataclass(frozen=True)
class MemoryUse:
    """Peak memory and duration of a run."""

    task: str
    seconds: int
    cells: int
    peak_mb: float
    took_s: float


def list_cells(count: int) -> list[str]:
    """Return the first `count` cells of ten corruptions at five severities."""
    return [f"{name}:{level}" for level in range(1, 6) for name in CORRUPTIONS][:count]


def prepare(folder: Path, task: str, seconds: int, cells: int) -> list[str]:
    """Write a data set of one video and a recipe, and return the command that runs it."""
    root = folder / f"{task}-{seconds}-{cells}"
    if task == "detection":
        videos = root / "data"
        videos.mkdir(parents=True)
        actions = [{"label": label, "segment": [i + 0.2, i + 1.9], "label_id": i} for i, label in enumerate(CLASSES)]
        entry = {"subset": "test", "duration": float(seconds), "fps": FPS, "annotations": actions}
        (videos / "truth.json").write_text(json.dumps({"database": {"one": entry}}))
    else:
        for label in CLASSES:
            (root / "data" / "test" / label).mkdir(parents=True)
        videos = root / "data" / "test" / CLASSES[0]
    write_videos(root, 1, seconds * FPS)[0].rename(videos / "one.mp4")
    model, metric = TASKS[task]
    head = f'name = "memory"\nversion = 1\ndataset = "folder"\nsubset = "test"\n{metric}'
    group = f'[[groups]]\nname = "main"\ncells = {json.dumps(list_cells(cells))}\nplacements = ["everywhere"]\n'
    (root / "memory.toml").write_text(f"{head}\n{group}")
    options = ["--model", model, "--data", str(root / "data"), "-o", str(root / "run"), "-j", "1", "--device", "cpu"]
    return [sys.executable, "-m", "jostle", "run", str(root / "memory.toml"), *options, "-q"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the memory of every run, and return the exit code."""
    parser = make_parser(__doc__, strict="exit with 1 if memory grows")
    parser.add_argument("--seconds", type=int, default=SHORT_S, help="length of the short video")
    options = parser.parse_args(arguments)
    rows: list[MemoryUse] = []
    missed = False
    for task in TASKS:
        for seconds, cells in ((1, 1), (TIMES, 1), (1, TIMES)):
            with tempfile.TemporaryDirectory() as folder:
                command = prepare(Path(folder), task, options.seconds * seconds, FEW_CELLS * cells)
                child = run_child(command)
            row = MemoryUse(task, options.seconds * seconds, FEW_CELLS * cells, child.peak_mb, child.seconds)
            rows.append(row)
            growth = row.peak_mb / next(other for other in rows if other.task == task).peak_mb
            print(
                f"{task}: {row.seconds} s, {row.cells} cells: {row.peak_mb:.0f} MB, {growth:.2f} times the first; "
                f"took {row.took_s:.0f} s",
                flush=True,
            )
            missed |= growth > MAX_GROWTH
    if missed:
        print(f"missed: memory grows to more than {MAX_GROWTH} times", file=sys.stderr)
    return finish(options, [vars(row) for row in rows], missed=missed)


if __name__ == "__main__":
    sys.exit(main())
