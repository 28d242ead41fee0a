"""Cost of frame-based detectors under corruption: `python -m bench.corrupted_clips`.

The 15 cells of THUMOS14-C are computed on videos of the embedded data set in two ways: each cell by itself, and all
cells together with the clean video, where only clips that a cell changes are computed again. Segments must be equal to
the bit. CPU time of one thread; weights are random, which does not change the cost.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import jostle
from bench.timing import finish, limit_threads, make_parser, time_call
from jostle.core.types.segments import Segments
from jostle.evaluation.inference.detection import ClipDetectionPredictor
from jostle.evaluation.inference.jobs import VideoJob, VideoResult
from jostle.evaluation.recipes.recipe import CLEAN_CELL, Cell
from jostle.evaluation.recipes.recipe import benchmarks as recipes
from jostle.evaluation.recipes.selection import select_cells
from jostle.models.detection.detector import detectors, make_detector

CELLS = tuple(select_cells(recipes["puppets-c"])[1:])
MAX_RATIO = 4.0  # target: cost of all cells, in clean videos


def time_detection(
    predictor: ClipDetectionPredictor, job: VideoJob, cells: Sequence[Cell]
) -> tuple[VideoResult[Segments], float]:
    """Return the detections in some cells of a video, and the CPU seconds they took."""
    results: list[VideoResult[Segments]] = []
    selection = VideoJob(job.name, job.path, tuple(cells), 0, job.segments)
    seconds = time_call(lambda: results.append(predictor(selection)))
    return results[0], seconds


def measure_video(predictor: ClipDetectionPredictor, job: VideoJob) -> np.ndarray[Any, Any]:
    """Return seconds of the clean video, of all cells in addition and of each cell alone, and clips of the first two.

    Raises:
        AssertionError: if segments of the two ways differ in a bit.
    """
    clean, clean_s = time_detection(predictor, job, [CLEAN_CELL])
    together, together_s = time_detection(predictor, job, [CLEAN_CELL, *CELLS])
    separate_s = 0.0
    for cell in CELLS:
        alone, seconds = time_detection(predictor, job, [cell])
        separate_s += seconds
        one, other = (result.outputs[cell.name] for result in (alone, together))
        for column in ("start", "end", "label", "score"):
            equal = np.array_equal(getattr(one, column), getattr(other, column))
            assert equal, f"{job.name}: {column} of {cell.name} differs"
    return np.array([clean_s, together_s - clean_s, separate_s, clean.clean.joined, together.cells.joined])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the cost of each detector, and return the exit code."""
    parser = make_parser(__doc__)
    parser.add_argument("--videos", type=int, default=1, help="number of test videos")
    parser.add_argument("--detectors", nargs="+", metavar="NAME", help="default: all frame-based ones for puppets")
    options = parser.parse_args(arguments)
    limit_threads()
    data = jostle.load_dataset("puppets", subset="test")
    truth = data.truth
    print(f"{options.videos} videos of puppets, {len(CELLS)} cells, one thread of ", end="")
    print(f"{platform.processor() or platform.machine()}, torch {torch.__version__}; segments are equal to the bit")
    print(f"{'':18}  {'clean s':>8}  {'clips':>6}  {'cells s':>8}  {'clips':>6}  {'alone s':>8}  {'of clean':>8}")
    worst = 0.0
    small = [name for name in detectors if name.endswith("_puppets") and detectors[name].model.looks_at == "frames"]
    for name in options.detectors or small:
        torch.manual_seed(0)
        detector: Any = make_detector(name)
        predictor = ClipDetectionPredictor(detector)
        rows = []
        for number in range(options.videos):
            video, inside = truth.videos[number], truth.video == number
            segments = Segments.from_pairs(np.stack([truth.start[inside], truth.end[inside]], 1))
            job = VideoJob(video, Path(data.videos[video]), (), 0, segments)
            if not number:
                time_detection(predictor, job, [CLEAN_CELL, *CELLS])  # compiles kernels and fills caches
            rows.append(measure_video(predictor, job))
        clean, cells, alone, clips, more = np.sum(rows, 0)
        worst = max(worst, cells / clean)
        print(
            f"{name:18}  {clean:8.2f}  {clips:6.0f}  {cells:8.2f}  {more:6.0f}  {alone:8.2f}  {cells / clean:8.2f}",
            flush=True,
        )
    print(f"{len(CELLS)} cells cost at most {worst:.2f} times the clean videos (target {MAX_RATIO:g})")
    return finish(options, {"cells_over_clean": worst}, missed=worst > MAX_RATIO)


if __name__ == "__main__":
    sys.exit(main())
