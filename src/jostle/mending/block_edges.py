"""Straight edges on a codec's block grid: how many a frame has there, and how many elsewhere."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel, read_only
from jostle.core.types.clip import Frame

EDGE = 8  # pixels along an edge, and between the lines of the finest grid
PERIOD = 32  # pixels between the lines of the coarsest grid
EDGE_STEP = 10  # grey levels by which an edge is steeper than the picture on both sides of it
MAX_STRIPS = 40  # strips of edges that are searched in each direction, evenly spread

EdgeShares = npt.NDArray[np.float32]


def block_edges(frame: Frame) -> EdgeShares:
    """Return (PERIOD,) the share of edges among the places for one, at each distance from the lines of the grid.

    Edges are those of the green channel.

    >>> frame = np.zeros((64, 64, 3), np.uint8)
    >>> frame[8:24, 16:48] = 200
    >>> shares = block_edges(frame)
    >>> np.flatnonzero(shares).tolist(), float(shares[16])
    ([8, 16, 24], 0.125)
    """
    height, width = frame.shape[:2]
    steps = [-(-(side // EDGE) // MAX_STRIPS) or 1 for side in (height, width)]
    strips = [-(-(side // EDGE) // step) for side, step in zip((height, width), steps, strict=True)]
    counts = np.zeros(PERIOD, np.int64)
    if min(height, width) >= 2 * EDGE:
        count_block_edges(read_only(frame), steps[0], steps[1], EDGE_STEP, counts)
    places = (strips[0] * width + strips[1] * height) / PERIOD
    shares: EdgeShares = (counts / max(places, 1)).astype(np.float32)
    return shares


@kernel
def count_block_edges(frame: Frame, down: int, across: int, edge_step: int, counts: npt.NDArray[np.int64]) -> None:
    """Count edges by their distance from the grid, in every `down`th strip of rows and `across`th of columns."""
    height, width = frame.shape[:2]
    sums = np.zeros(width, np.int32)
    for strip in range(0, height // EDGE, down):
        sums[:] = 0
        for y in range(EDGE * strip, EDGE * (strip + 1)):
            for x in range(2, width - 1):
                a, b = np.int32(frame[y, x - 2, 1]), np.int32(frame[y, x - 1, 1])
                c, d = np.int32(frame[y, x, 1]), np.int32(frame[y, x + 1, 1])
                sums[x] += 2 * abs(c - b) - abs(b - a) - abs(d - c)
        for x in range(2, width - 1):
            if sums[x] > 2 * EDGE * edge_step:
                counts[x % PERIOD] += 1
    for strip in range(0, width // EDGE, across):
        left = EDGE * strip
        for y in range(2, height - 1):
            total = np.int32(0)
            for x in range(left, left + EDGE):
                a, b = np.int32(frame[y - 2, x, 1]), np.int32(frame[y - 1, x, 1])
                c, d = np.int32(frame[y, x, 1]), np.int32(frame[y + 1, x, 1])
                total += 2 * abs(c - b) - abs(b - a) - abs(d - c)
            if total > 2 * EDGE * edge_step:
                counts[y % PERIOD] += 1
