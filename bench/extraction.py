"""Cost of extracting features under corruption: `python -m bench.extraction`.

The 15 cells of THUMOS14-C are extracted from videos of the embedded data set in two ways: each cell by itself, and the
clean video once and then only what each cell changes. Features must be equal to the bit. CPU time of one thread.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import jostle
from bench.timing import finish, limit_threads, make_parser
from jostle.core.types.segments import Segments
from jostle.evaluation.recipes.recipe import benchmarks as recipes
from jostle.evaluation.recipes.selection import select_cells
from jostle.features.extraction import Cost
from jostle.features.video import VideoFeatures
from jostle.io.video.decode import Reader
from jostle.models.extractors.extractor import Extractor
from jostle.models.loading.extractors import load_extractor

CELLS = {cell.name: (cell.parsed, cell.placement) for cell in select_cells(recipes["puppets-c"])[1:]}
MAX_RATIO = 1.0  # target: cost of all cells, in clean videos
STEPS = ("open", "decode", "see", "join", "corrupt")
WHOLE, CLEAN, CELLS_AFTER_CLEAN = "each cell whole", "clean, once", "then the cells"


@dataclass
class ExtractionCost:
    """Cost of one way of extraction: seconds of each step, and numbers of frames and windows."""

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STEPS, 0.0))
    cost: Cost = field(default_factory=Cost)

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add the CPU time of a block to a step."""
        start = time.process_time()
        try:
            yield
        finally:
            self.seconds[name] += time.process_time() - start


class Profiler:
    """Adds the time of reading frames, computing frame features and joining windows to the current cost."""

    def __init__(self, cost: ExtractionCost) -> None:
        self.cost = cost

    def wrap(self, inner: Any, steps: Mapping[str, str]) -> Any:
        """Return a proxy of an object that times the methods named in `steps`."""
        return TimedProxy(inner, self, steps)

    def run(self, work: Callable[[], Any]) -> Any:
        """Call `work`; its time outside the timed methods counts as corruption."""
        before = self.cost.total
        start = time.process_time()
        result = work()
        self.cost.seconds["corrupt"] += time.process_time() - start - (self.cost.total - before)
        return result


class TimedProxy:
    """Proxy of a reader or an extractor that times some of its methods."""

    def __init__(self, inner: Any, profiler: Profiler, steps: Mapping[str, str]) -> None:
        self._inner, self._profiler, self._steps = inner, profiler, steps

    def __len__(self) -> int:
        return len(self._inner)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._inner, name)
        if name not in self._steps:
            return attribute

        def timed(*arguments: Any) -> Any:
            with self._profiler.cost.step(self._steps[name]):
                return attribute(*arguments)

        return timed


def measure_video(
    path: Path, name: str, segments: Segments, extractor: Extractor, costs: Mapping[str, ExtractionCost]
) -> tuple[int, int]:
    """Extract every cell of a video both ways, add to the costs, and return the video's frames and windows.

    Raises:
        AssertionError: if the features differ in a bit.
    """
    features: dict[str, bytes] = {}
    profiler = Profiler(costs[WHOLE])
    for cell, (specs, placement) in CELLS.items():
        video = open_video(path, name, segments, extractor, profiler)
        extraction = profiler.run(partial(video.whole, specs, placement))
        features[cell] = extraction.features.tobytes()
        profiler.cost.cost += extraction.cost
    profiler = Profiler(costs[CLEAN])
    video = open_video(path, name, segments, extractor, profiler)
    clean = profiler.run(video.clean)
    profiler.cost.cost += clean.cost
    profiler.cost = costs[CELLS_AFTER_CLEAN]
    for cell, extraction in profiler.run(lambda: list(video.sweep(CELLS))):
        profiler.cost.cost += extraction.cost
        assert extraction.features.tobytes() == features[cell], f"{name}: {cell} differs"
    return len(clean.seen), len(clean.features)


def open_video(path: Path, name: str, segments: Segments, extractor: Extractor, profiler: Profiler) -> VideoFeatures:
    """Open a video with an empty cache, and return its features, whose steps are timed."""
    with profiler.cost.step("open"):
        reader = Reader(path, threads=1)
    source = profiler.wrap(reader, {"block": "decode"})
    timed_extractor = profiler.wrap(extractor, {"see": "see", "join": "join"})
    return VideoFeatures(source, timed_extractor, video_id=name, segments=segments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the costs of both ways, and return the exit code."""
    parser = make_parser(__doc__)
    parser.add_argument("--videos", type=int, default=5, help="number of test videos")
    parser.add_argument("--untrained", action="store_true", help="use random weights, where no others are installed")
    options = parser.parse_args(arguments)
    limit_threads()

    extractor = (
        load_extractor("puppet_net", weights="random") if options.untrained else jostle.load_extractor("puppet_net")
    )
    data = jostle.load_dataset("puppets", subset="test")
    truth = data.truth
    costs = {name: ExtractionCost() for name in (WHOLE, CLEAN, CELLS_AFTER_CLEAN)}
    warm_up = {name: ExtractionCost() for name in costs}
    frames = windows = 0
    # The first video is measured twice: the first time compiles kernels and fills caches.
    for turn, number in enumerate((0, *range(options.videos))):
        name, rows = truth.videos[number], truth.video == number
        segments = Segments.from_pairs(np.stack([truth.start[rows], truth.end[rows]], 1))
        sizes = measure_video(data.videos[name], name, segments, extractor, costs if turn else warm_up)
        if turn:
            frames, windows = frames + sizes[0], windows + sizes[1]

    ratio = costs[WHOLE].total / (costs[CLEAN].total + costs[CELLS_AFTER_CLEAN].total)
    print(f"{options.videos} videos of puppets, {frames} frames, {windows} windows, {len(CELLS)} cells, one thread of")
    print(f"{platform.processor() or platform.machine()}, torch {torch.__version__}; features are equal to the bit")
    print(f"{'':15}  {'seconds':>8}  " + "  ".join(f"{step:>8}" for step in STEPS) + "   decoded      seen    joined")
    for name, cost in costs.items():
        parts = "  ".join(f"{cost.seconds[step]:8.2f}" for step in STEPS)
        counts = "  ".join(f"{count:8}" for count in (cost.cost.decoded, cost.cost.seen, cost.cost.joined))
        print(f"{name:15}  {cost.total:8.2f}  {parts}  {counts}")
    share = costs[CELLS_AFTER_CLEAN].total / costs[CLEAN].total
    print(f"{len(CELLS)} cells cost {share:.2f} times the clean videos (target {MAX_RATIO:g}); ", end="")
    print(f"{ratio:.1f} times faster than each cell whole")
    numbers: dict[str, Any] = {"ratio": ratio, "share": share, "frames": frames, "windows": windows}
    numbers |= {name: {"seconds": cost.seconds, "cost": asdict(cost.cost)} for name, cost in costs.items()}
    return finish(options, numbers, missed=share > MAX_RATIO)


if __name__ == "__main__":
    sys.exit(main())
