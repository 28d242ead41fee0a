"""The compiled part of a glance: sums over points and patches of a frame."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jostle.compiled import kernel
from jostle.models.glance import CELLS, PATCH, POINTS, Glance, Places
from jostle.types.clip import Frame


@kernel
def look(
    frame: Frame, rows: Places, columns: Places, top: Places, left: Places, log: npt.NDArray[np.uint8], out: Glance
) -> None:
    for i in range(2 * CELLS):
        for j in range(2 * CELLS):
            red, green, blue = np.int64(0), np.int64(0), np.int64(0)
            for y in rows[POINTS * i : POINTS * (i + 1)]:
                for x in columns[POINTS * j : POINTS * (j + 1)]:
                    red += frame[y, x, 0]
                    green += frame[y, x, 1]
                    blue += frame[y, x, 2]
            light = (77 * red + 150 * green + 29 * blue) // (256 * POINTS * POINTS)
            out[2 * (i % 2) + j % 2, i // 2, j // 2] = light
            if i % 2 == 0 and j % 2 == 0:  # colours change slowly: a quarter of the cell tells them
                out[4, i // 2, j // 2] = (blue // (POINTS * POINTS) - light) // 2 + 128
                out[5, i // 2, j // 2] = (red // (POINTS * POINTS) - light) // 2 + 128
    down, across = min(PATCH, frame.shape[0]), min(PATCH, frame.shape[1])
    close = np.empty((down, across), np.int64)
    for i in range(CELLS):
        for j in range(CELLS):
            total, low, high = np.int64(0), np.int64(255), np.int64(0)
            for y in range(down):
                for x in range(across):
                    pixel = frame[top[i] + y, left[j] + x]
                    grey = (77 * np.int64(pixel[0]) + 150 * np.int64(pixel[1]) + 29 * np.int64(pixel[2])) // 256
                    close[y, x] = grey
                    total += grey
                    low, high = min(low, grey), max(high, grey)
            mean = total // (down * across)
            right, below, bend, apart = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
            for y in range(down):
                for x in range(across):
                    apart += abs(close[y, x] - mean)
                    if x + 1 < across:
                        right += abs(close[y, x + 1] - close[y, x])
                    if y + 1 < down:
                        below += abs(close[y + 1, x] - close[y, x])
                    if 0 < x < across - 1:
                        bend += abs(2 * close[y, x] - close[y, x - 1] - close[y, x + 1])
            out[6, i, j] = log[64 * right // max(down * (across - 1), 1)]
            out[7, i, j] = log[64 * below // max((down - 1) * across, 1)]
            out[8, i, j] = log[32 * bend // max(down * (across - 2), 1)]
            out[9, i, j] = log[64 * apart // (down * across)]
            out[10, i, j] = log[64 * (high - low)]
