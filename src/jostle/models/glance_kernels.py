"""The compiled part of glances: sums over points and patches of frames."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jostle.compiled import inlined, kernel
from jostle.models.glance_layout import CELLS, PATCH, POINTS, Glances, Places
from jostle.types.clip import Frames

SIDE = 2 * CELLS * POINTS  # points along each side of a frame


@kernel
def look(
    frames: Frames, rows: Places, columns: Places, top: Places, left: Places, log: npt.NDArray[np.uint8], out: Glances
) -> None:
    """Frames that patches fit into: every loop has a length that the compiler knows."""
    _look(frames, rows, columns, top, left, log, out, PATCH, PATCH)


@kernel
def look_at_small(
    frames: Frames, rows: Places, columns: Places, top: Places, left: Places, log: npt.NDArray[np.uint8], out: Glances
) -> None:
    """Frames smaller than a patch. They are rare, and nobody waits for this to be compiled who has none."""
    down, across = min(PATCH, frames.shape[1]), min(PATCH, frames.shape[2])
    _look(frames, rows, columns, top, left, log, out, down, across)


@inlined
def _look(
    frames: Frames,
    rows: Places,
    columns: Places,
    top: Places,
    left: Places,
    log: npt.NDArray[np.uint8],
    out: Glances,
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
                if i % 2 == 0 and j % 2 == 0:  # colours change slowly: a quarter of the cell tells them
                    out[n, 4, i // 2, j // 2] = (blue // (POINTS * POINTS) - light) // 2 + 128
                    out[n, 5, i // 2, j // 2] = (red // (POINTS * POINTS) - light) // 2 + 128
        for i in range(CELLS):
            for j in range(CELLS):
                total, y0, x0 = np.int32(0), top[i], left[j]
                for y in range(down):
                    for x in range(across):
                        seen = frames[n, y0 + y, x0 + x, 0], frames[n, y0 + y, x0 + x, 1], frames[n, y0 + y, x0 + x, 2]
                        grey = (77 * np.int32(seen[0]) + 150 * np.int32(seen[1]) + 29 * np.int32(seen[2])) >> 8
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
    """Sums of steps to the right and down, of bends, of what is apart from the mean; and from darkest to lightest."""
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
