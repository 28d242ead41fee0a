"""Compiled kernels of frame descriptors: sums over sample points and patches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import inlined, kernel
from jostle.core.types.clip import Frames
from jostle.mending.descriptor_layout import CELLS, PATCH, POINTS, Descriptors, Indices

SIDE = 2 * CELLS * POINTS  # points along each side of a frame


@kernel
def describe_block(
    frames: Frames,
    rows: Indices,
    columns: Indices,
    top: Indices,
    left: Indices,
    log: npt.NDArray[np.uint8],
    out: Descriptors,
) -> None:
    """Describe frames at least as large as a patch: every loop has a length that the compiler knows."""
    _describe(frames, rows, columns, top, left, log, out, PATCH, PATCH)


@kernel
def describe_small_block(
    frames: Frames,
    rows: Indices,
    columns: Indices,
    top: Indices,
    left: Indices,
    log: npt.NDArray[np.uint8],
    out: Descriptors,
) -> None:
    """Describe frames smaller than a patch.

    They are rare; a separate kernel is compiled only when one occurs.
    """
    down, across = min(PATCH, frames.shape[1]), min(PATCH, frames.shape[2])
    _describe(frames, rows, columns, top, left, log, out, down, across)


@inlined
def _describe(
    frames: Frames,
    rows: Indices,
    columns: Indices,
    top: Indices,
    left: Indices,
    log: npt.NDArray[np.uint8],
    out: Descriptors,
    down: int,
    across: int,
) -> None:
    reds, greens, blues = np.empty(SIDE, np.int32), np.empty(SIDE, np.int32), np.empty(SIDE, np.int32)
    close = np.zeros((PATCH, PATCH), np.int32)
    for n in range(len(frames)):
        for i in range(2 * CELLS):
            reds[:] = 0
            greens[:] = 0
            blues[:] = 0
            for y in rows[POINTS * i : POINTS * (i + 1)]:
                for k in range(SIDE):
                    x = columns[k]
                    reds[k] += frames[n, y, x, 0]
                    greens[k] += frames[n, y, x, 1]
                    blues[k] += frames[n, y, x, 2]
            for j in range(2 * CELLS):
                red, green, blue = np.int64(0), np.int64(0), np.int64(0)
                for k in range(POINTS * j, POINTS * (j + 1)):
                    red += reds[k]
                    green += greens[k]
                    blue += blues[k]
                light = (77 * red + 150 * green + 29 * blue) // (256 * POINTS * POINTS)
                out[n, 2 * (i % 2) + j % 2, i // 2, j // 2] = light
                if i % 2 == 0 and j % 2 == 0:  # colours change slowly: a quarter of the cell is enough
                    out[n, 4, i // 2, j // 2] = (blue // (POINTS * POINTS) - light) // 2 + 128
                    out[n, 5, i // 2, j // 2] = (red // (POINTS * POINTS) - light) // 2 + 128
        for i in range(CELLS):
            for j in range(CELLS):
                total, y0, x0 = np.int32(0), top[i], left[j]
                for y in range(down):
                    for x in range(across):
                        pixel = frames[n, y0 + y, x0 + x, 0], frames[n, y0 + y, x0 + x, 1], frames[n, y0 + y, x0 + x, 2]
                        grey = (77 * np.int32(pixel[0]) + 150 * np.int32(pixel[1]) + 29 * np.int32(pixel[2])) >> 8
                        close[y, x] = grey
                        total += grey
                right, below, bend, apart, span = _detail(close, total, down, across)
                out[n, 6, i, j] = log[64 * right // max(down * (across - 1), 1)]
                out[n, 7, i, j] = log[64 * below // max((down - 1) * across, 1)]
                out[n, 8, i, j] = log[32 * bend // max(down * (across - 2), 1)]
                out[n, 9, i, j] = log[64 * apart // (down * across)]
                out[n, 10, i, j] = log[64 * span]


@inlined
def _detail(close: npt.NDArray[np.int32], total: np.int32, down: int, across: int) -> tuple[np.int32, ...]:
    """Return sums of horizontal and vertical steps, of bends and of deviations from the mean, and the range."""
    mean = np.int32(total // (down * across))
    right, below, bend, apart, low, high = (
        np.int32(0),
        np.int32(0),
        np.int32(0),
        np.int32(0),
        np.int32(255),
        np.int32(0),
    )
    for y in range(down):
        for x in range(across):
            grey = close[y, x]
            apart += abs(grey - mean)
            low, high = min(low, grey), max(high, grey)
        for x in range(across - 1):
            right += abs(close[y, x + 1] - close[y, x])
        for x in range(1, across - 1):
            bend += abs(2 * close[y, x] - close[y, x - 1] - close[y, x + 1])
    for y in range(down - 1):
        for x in range(across):
            below += abs(close[y + 1, x] - close[y, x])
    return right, below, bend, apart, high - low
