"""Streaks of rain over a frame: light, blurred, and the more to be seen the darker the frame is."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel
from jostle.core.types.clip import Frame
from jostle.corruptions.kernels.filters import channel_sums, rows_of

Array = npt.NDArray[Any]

STREAK = 220  # how opaque a streak is, of 255


def pour(frame: Frame, mask: npt.NDArray[np.uint8], left: float, out: Frame) -> Frame:
    """The frame under streaks, which lie where the mask is not 0; of each channel's contrast `left` is left."""
    _pour(rows_of(frame), mask, rows_of(out), np.float32(STREAK / 255), np.float32(left))
    return out


@kernel
def _pour(rows: Frame, mask: Frame, out: Frame, cover: np.float32, left: np.float32) -> None:
    """Lay the blurred streaks on, then draw every channel towards its mean, dropping the fraction only once.

    Few pixels are under a streak. Those are found once and done one by one, all others together.
    """
    height, width = mask.shape
    total = channel_sums(rows).astype(np.float64)
    wet = np.empty(rows.shape, np.uint8)
    for y in range(height):
        clean, line = rows[y], wet[y]
        for x in range(width * 3):
            line[x] = clean[x]
    # The columns of pixels under streaks, row after row, and where each row begins.
    offsets, first = np.empty(mask.size, np.uint32), np.empty(height + 1, np.int64)
    count = 0
    for y in range(height):
        streaks, first[y] = mask[y], count
        for x in range(width):
            offsets[count] = x
            count += streaks[x] > 0
    first[height] = count
    # Streaks brighten what is under them, most where it is dark, and blur it.
    share = 1 / (height * width)
    brighter = _brighter((total[0] * share + total[1] * share + total[2] * share) / (3 * 255))
    for y in range(height):
        line = wet[y]
        for i in range(first[y], first[y + 1]):
            for c in range(3):
                line[3 * offsets[i] + c] = brighter[line[3 * offsets[i] + c]]
    levels = np.empty((count, 3), np.float32)
    inner = np.uint32(width - 1)
    for y in range(height):
        # Borders are mirrored, without the pixels that they run through.
        over = wet[y - 1 if y > 0 else min(height - 1, 1)]
        under = wet[y + 1 if y < height - 1 else max(height - 2, 0)]
        clean, here = rows[y], wet[y]
        for i in range(first[y], first[y + 1]):
            x = offsets[i]
            before = np.uint32(3) * (x - np.uint32(1) if x > 0 else min(inner, np.uint32(1)))
            after = np.uint32(3) * (x + np.uint32(1) if x < inner else max(inner, np.uint32(1)) - np.uint32(1))
            for c in range(3):
                u, v, w = before + np.uint32(c), np.uint32(3) * x + np.uint32(c), after + np.uint32(c)
                around = np.uint32(over[u]) + np.uint32(over[v]) + np.uint32(over[w])
                around += np.uint32(here[u]) + np.uint32(here[v]) + np.uint32(here[w])
                around += np.uint32(under[u]) + np.uint32(under[v]) + np.uint32(under[w])
                mean = np.float32((np.uint32(2) * np.uint32(around) + np.uint32(9)) // np.uint32(18))
                level = mean * cover + np.float32(clean[v]) * (np.float32(1) - cover)
                levels[i, c] = level
                total[c] += np.float64(level) - np.float64(clean[v])
    lift = np.empty(width * 3, np.float32)
    for c in range(3):
        lift[c::3] = (1 - np.float64(left)) * total[c] / (height * width)
    for y in range(height):
        clean, rained = rows[y], out[y]
        for x in range(width * 3):
            rained[x] = np.uint8(np.int32(np.float32(clean[x]) * left + lift[x]))
        for i in range(first[y], first[y + 1]):
            for c in range(3):
                rained[3 * offsets[i] + c] = np.uint8(np.int32(levels[i, c] * left + lift[c]))


@kernel
def _brighter(mean: float) -> Array:
    """Return the table of levels under a streak, for a frame of this mean."""
    table = np.empty(256, np.uint8)
    for value in range(256):
        table[value] = value + np.int64(STREAK * (1 - value / 255) * (1 - mean))
    return table
