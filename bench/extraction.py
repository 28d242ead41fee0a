"""What features under corruption cost: `python -m bench.extraction`.

The 15 cells of THUMOS14-C on videos of the embedded data set, two ways: each cell extracted whole, as a program does
that knows nothing of the clean video, and the clean video once with every cell computed where it changed something.
Both must give the same features, to the bit. One thread is used and its time counted.
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
from bench.timing import finish, hold_to_one_thread, make_parser
from jostle.core.types.segments import Segments
from jostle.evaluation.recipes.recipe import benchmarks as recipes
from jostle.evaluation.recipes.selection import select_cells
from jostle.features.engine import VideoFeatures
from jostle.features.extraction import Cost
from jostle.io.video.decode import Reader
from jostle.models.extractors.extractor import Extractor, load_extractor

CELLS = {cell.name: cell.parsed for cell in select_cells(recipes["puppets-c"])[1:]}
MOST_OF_CLEAN = 1.0  # all cells shall cost no more than the clean videos did
STEPS = ("open", "decode", "see", "join", "corrupt")
WHOLE, CLEAN, THEN = "each cell whole", "clean, once", "then the cells"


@dataclass
class Way:
    """What one way of doing it took: seconds of each step, and what was computed."""

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STEPS, 0.0))
    cost: Cost = field(default_factory=Cost)

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        begun = time.process_time()
        try:
            yield
        finally:
            self.seconds[name] += time.process_time() - begun


class Watch:
    """Takes the time of reading, seeing and joining, and writes it down for the way at hand."""

    def __init__(self, way: Way) -> None:
        self.way = way

    def over(self, inner: Any, steps: Mapping[str, str]) -> Any:
        """The same thing with the time of these methods of it taken."""
        return Timed(inner, self, steps)

    def work(self, do: Callable[[], Any]) -> Any:
        """Do some work; what is not decoding, seeing or joining in it is corruption and bookkeeping."""
        known = self.way.total
        begun = time.process_time()
        done = do()
        self.way.seconds["corrupt"] += time.process_time() - begun - (self.way.total - known)
        return done


class Timed:
    """Stands before a reader or an extractor."""

    def __init__(self, inner: Any, watch: Watch, steps: Mapping[str, str]) -> None:
        self._inner, self._watch, self._steps = inner, watch, steps

    def __len__(self) -> int:
        return len(self._inner)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in self._steps:
            return found

        def timed(*arguments: Any) -> Any:
            with self._watch.way.step(self._steps[name]):
                return found(*arguments)

        return timed


def by_both_ways(
    path: Path, name: str, segments: Segments, extractor: Extractor, ways: Mapping[str, Way]
) -> tuple[int, int]:
    """Extract every cell of a video both ways; frames and windows of the video.

    Raises:
        AssertionError: if the features differ in a bit.
    """
    whole: dict[str, bytes] = {}
    watch = Watch(ways[WHOLE])
    for cell, specs in CELLS.items():
        video = opened(path, name, segments, extractor, watch)
        done = watch.work(partial(video.whole, specs))
        whole[cell] = done.features.tobytes()
        watch.way.cost += done.cost
    watch = Watch(ways[CLEAN])
    video = opened(path, name, segments, extractor, watch)
    clean = watch.work(video.clean)
    watch.way.cost += clean.cost
    watch.way = ways[THEN]
    for cell, done in watch.work(partial(video.sweep, CELLS)).items():
        watch.way.cost += done.cost
        assert done.features.tobytes() == whole[cell], f"{name}: {cell} differs"
    return len(clean.seen), len(clean.features)


def opened(path: Path, name: str, segments: Segments, extractor: Extractor, watch: Watch) -> VideoFeatures:
    """A video as it is first met, with the time of its parts taken."""
    with watch.way.step("open"):
        reader = Reader(path, threads=1)
    source = watch.over(reader, {"block": "decode"})
    eyes = watch.over(extractor, {"see": "see", "join": "join"})
    return VideoFeatures(source, eyes, video_id=name, segments=segments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; exit with 1 under --strict when the target is missed."""
    parser = make_parser(__doc__)
    parser.add_argument("--videos", type=int, default=5, help="of the test set")
    parser.add_argument("--untrained", action="store_true", help="weights that mean nothing, where none are installed")
    options = parser.parse_args(arguments)
    hold_to_one_thread()
    torch.set_num_threads(1)

    extractor = (
        load_extractor("puppet_net", weights="random") if options.untrained else jostle.load_extractor("puppet_net")
    )
    data = jostle.load_dataset("puppets", subset="test")
    truth = data.truth
    ways = {name: Way() for name in (WHOLE, CLEAN, THEN)}
    frames = windows = 0
    # The first video is done twice: the first time compiles kernels and fills caches.
    for turn, number in enumerate((0, *range(options.videos))):
        name, rows = truth.videos[number], truth.video == number
        segments = Segments.from_pairs(np.stack([truth.start[rows], truth.end[rows]], 1))
        counted = by_both_ways(data.videos[name], name, segments, extractor, ways if turn else {k: Way() for k in ways})
        if turn:
            frames, windows = frames + counted[0], windows + counted[1]

    ratio = ways[WHOLE].total / (ways[CLEAN].total + ways[THEN].total)
    print(f"{options.videos} videos of puppets, {frames} frames, {windows} windows, {len(CELLS)} cells, one thread of")
    print(f"{platform.processor() or platform.machine()}, torch {torch.__version__}; features are the same to the bit")
    print(f"{'':15}  {'seconds':>8}  " + "  ".join(f"{step:>8}" for step in STEPS) + "   decoded      seen    joined")
    for name, way in ways.items():
        parts = "  ".join(f"{way.seconds[step]:8.2f}" for step in STEPS)
        print(f"{name:15}  {way.total:8.2f}  {parts}  {way.cost.decoded:8}  {way.cost.seen:8}  {way.cost.joined:8}")
    share = ways[THEN].total / ways[CLEAN].total
    print(f"{len(CELLS)} cells for {share:.2f} of the price of the clean videos (target {MOST_OF_CLEAN:g}); ", end="")
    print(f"{ratio:.1f} times faster than each cell whole")
    numbers = {"ratio": ratio, "share": share, "frames": frames, "windows": windows}
    numbers |= {name: {"seconds": way.seconds, "cost": asdict(way.cost)} for name, way in ways.items()}
    return finish(options, numbers, missed=share > MOST_OF_CLEAN)


if __name__ == "__main__":
    sys.exit(main())
