"""Plain rule for a stream that finds blocks in wrong places."""

from __future__ import annotations

from collections import deque

from jostle.mending.block_edges import EDGE
from jostle.mending.frame_facts import FrameFacts
from jostle.mending.stream_rules import Finding

RISE = 0.1  # share of edges on a grid of 16 or 32 pixels, by which it rises above the largest of
OUTSTANDING = 0.7  # times the share on the other lines that it must exceed that by, else it is chance
CALM, MIN_CALM = 16, 3  # clean frames before, and of them at least
STEADY = 3  # frames that it must last, longer than a key frame of low quality
LASTING = 0.5  # share of the rise that a frame must have to belong to it
GONE = 3  # frames without it after which it is over
BLOCK_SECONDS = 60.0  # after which blocks are taken for the picture as it is


Shares = tuple[float, float]  # on grids of 16 and 32 pixels


class BlockRule:
    """Rule for macroblocks in wrong places, as wrong motion vectors put them: `blocky`.

    Every codec leaves edges on its grid of 8 pixels, in bad quality many. Macroblocks that were moved have edges on
    every second or fourth line of it alone. Their share must rise at once by `RISE`, and stay for `STEADY` frames.

    Misses: blocks of a stream that was scaled or cropped after it was decoded; blocks that a decoder smooths, conceals
    or drags along (most of what real H.264 and MPEG-4 decoders show); fewer than one block in ten. False: a cut to a
    mosaic with tiles of 16 or 32 pixels.
    """

    def __init__(self) -> None:
        self._calm: deque[Shares] = deque(maxlen=CALM)
        self._first, self._last, self._since = -1, -1, 0.0  # frames and time of the blocks that go on
        self._grid, self._level = 0, 0.0

    def push(self, index: int, time: float, facts: FrameFacts) -> list[Finding]:
        """Add a frame and return what it shows."""
        excess, others = grid_excess(facts)
        if self._first >= 0:
            there = excess[self._grid] >= self._level
            self._last = index if there else self._last
            if index - self._last < GONE and time - self._since < BLOCK_SECONDS:
                steady = self._last - self._first + 1 >= STEADY
                return [Finding(self._first, self._last, "blocky", 0.95)] if steady and there else []
            self._first, self._last, self._since, self._grid, self._level = -1, -1, 0.0, 0, 0.0
            self._calm.clear()
        if len(self._calm) >= MIN_CALM:
            highest = [max(shares) for shares in zip(*self._calm, strict=True)]
            rises = [
                one - high if one >= OUTSTANDING * other else 0.0
                for one, high, other in zip(excess, highest, others, strict=True)
            ]
            if max(rises) >= RISE:
                self._grid = rises.index(max(rises))
                self._level = highest[self._grid] + LASTING * rises[self._grid]
                self._first, self._last, self._since = index, index, time
                return []
        self._calm.append(excess)
        return []


def grid_excess(facts: FrameFacts) -> tuple[Shares, Shares]:
    """Return by how much the share of edges on grids of 16 and 32 pixels exceeds that on other lines, and the latter.

    The other lines are those of the grid of 8 pixels that the coarser grid leaves out.
    """
    every, second, third, fourth = facts.block_edges[::EDGE].tolist()
    others = (second + fourth) / 2, (second + third + fourth) / 3
    return ((every + third) / 2 - others[0], every - others[1]), others
