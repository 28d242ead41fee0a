"""What detectors of frames cost under corruption: `python -m bench.corrupted_clips`.

The 15 cells of THUMOS14-C on videos of the embedded data set, two ways: each cell looked at whole, and the clean video
once with every cell looked at where it changed something. Both must find the same segments, to the bit. One thread is
used and its time counted; weights mean nothing, and cost what others would.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import jostle
from bench.timing import finish, hold_to_one_thread, make_parser
from jostle.core.types.segments import Segments
from jostle.evaluation.inference.detection import ClipDetectionPredictor
from jostle.evaluation.inference.jobs import VideoJob, VideoResult
from jostle.evaluation.recipes.recipe import CLEAN_CELL, Cell
from jostle.evaluation.recipes.recipe import benchmarks as recipes
from jostle.evaluation.recipes.selection import select_cells
from jostle.models.detection.detector import detectors, load_detector

CELLS = tuple(select_cells(recipes["puppets-c"])[1:])
MOST_OF_CLEAN = 4.0  # all cells shall cost no more than this many times the clean videos


def looked(look: ClipDetectionPredictor, order: VideoJob, cells: Sequence[Cell]) -> tuple[VideoResult[Segments], float]:
    """What is found in some cells, and the seconds it took."""
    begun = time.process_time()
    done = look(VideoJob(order.name, order.path, tuple(cells), 0, order.segments))
    return done, time.process_time() - begun


def by_both_ways(look: ClipDetectionPredictor, order: VideoJob) -> np.ndarray[Any, Any]:
    """Seconds of the clean video, of all cells on top, of each cell whole; clips of the first two.

    Raises:
        AssertionError: if what is found differs in a bit.
    """
    clean, alone = looked(look, order, [CLEAN_CELL])
    every, together = looked(look, order, [CLEAN_CELL, *CELLS])
    apart = 0.0
    for cell in CELLS:
        whole, seconds = looked(look, order, [cell])
        apart += seconds
        one, other = (done.outputs[cell.name] for done in (whole, every))
        for column in ("start", "end", "label", "score"):
            same = np.array_equal(getattr(one, column), getattr(other, column))
            assert same, f"{order.name}: {column} of {cell.name} differs"
    return np.array([alone, together - alone, apart, clean.clean.joined, every.cells.joined])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; exit with 1 under --strict when the target is missed."""
    parser = make_parser(__doc__)
    parser.add_argument("--videos", type=int, default=1, help="of the test set")
    parser.add_argument("--detectors", nargs="+", metavar="NAME", help="instead of all for puppets")
    options = parser.parse_args(arguments)
    hold_to_one_thread()
    torch.set_num_threads(1)
    data = jostle.load_dataset("puppets", subset="test")
    truth = data.truth
    print(f"{options.videos} videos of puppets, {len(CELLS)} cells, one thread of ", end="")
    print(f"{platform.processor() or platform.machine()}, torch {torch.__version__}; segments are the same to the bit")
    print(f"{'':18}  {'clean s':>8}  {'clips':>6}  {'cells s':>8}  {'clips':>6}  {'whole s':>8}  {'of clean':>8}")
    worst = 0.0
    small = [name for name in detectors if name.endswith("_puppets") and detectors[name].model.looks_at == "frames"]
    for name in options.detectors or small:
        torch.manual_seed(0)
        made: Any = load_detector(name)
        look = ClipDetectionPredictor(made)
        rows = []
        for number in range(options.videos):
            video, mine = truth.videos[number], truth.video == number
            segments = Segments.from_pairs(np.stack([truth.start[mine], truth.end[mine]], 1))
            order = VideoJob(video, Path(data.videos[video]), (), 0, segments)
            if not number:
                looked(look, order, [CLEAN_CELL, *CELLS])  # compiles kernels and fills caches
            rows.append(by_both_ways(look, order))
        clean, cells, whole, clips, more = np.sum(rows, 0)
        worst = max(worst, cells / clean)
        print(
            f"{name:18}  {clean:8.2f}  {clips:6.0f}  {cells:8.2f}  {more:6.0f}  {whole:8.2f}  {cells / clean:8.2f}",
            flush=True,
        )
    print(f"{len(CELLS)} cells for at most {worst:.2f} times the clean videos (target {MOST_OF_CLEAN:g})")
    return finish(options, {"cells_over_clean": worst}, missed=worst > MOST_OF_CLEAN)


if __name__ == "__main__":
    sys.exit(main())
