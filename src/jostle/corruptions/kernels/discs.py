"""The mean over a disc, by what changes from one pixel to the next, in whole numbers."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from jostle.compiled import inlined, kernel
from jostle.corruptions.kernels.filters import HAIR
from jostle.types.clip import Frame

Array = npt.NDArray[Any]


def correlate_disc(frame: Frame, halves: Array, soft: Array, boxes: tuple[Array, Array, Array], out: Frame) -> Frame:
    """The mean over a disc whose rim is softened, with mirrored borders.

    Args:
        halves: half the width of the disc in the rows at distance 0, 1, 2 ... from its centre.
        soft: taps, summing to 1, by which the disc is smoothed along both axes.
        boxes: what the wanted kernel has beyond that, from `boxes_of`.
    """
    border = len(halves) - 1 + len(soft) // 2
    padded = cv2.copyMakeBorder(frame, border, border, border, border, cv2.BORDER_REFLECT_101)
    _disc(np.asarray(padded, np.uint8), out, halves, soft, *boxes)
    return out


def boxes_of(weights: Array) -> tuple[Array, Array, Array]:
    """A kernel, symmetric both ways, as boxes one row high: distance of the row, half width, weight."""
    centre = weights.shape[0] // 2
    rows, halves, parts = [0], [0], [0.0]
    for j in range(centre + 1):
        line = weights[centre + j, centre:]
        steps = line - np.append(line[1:], 0)
        for half in np.flatnonzero(np.abs(steps) > 1e-9):
            rows.append(j)
            halves.append(int(half))
            parts.append(steps[half] / (2 if j == 0 else 1))  # row 0 is added from above and from below
    return np.array(rows), np.array(halves), np.array(parts, np.float32)


@kernel
def _disc(padded: Frame, out: Frame, halves: Array, soft: Array, box_row: Array, box_half: Array, box_weight: Array,
          ) -> None:  # fmt: skip
    height, width, _ = out.shape
    radius, around = len(halves) - 1, len(soft) // 2
    border = radius + around
    span = (width + 2 * border) * 3
    rows = padded.reshape(height + 2 * border, span)
    area = 2 * halves[0] + 1
    for j in range(1, radius + 1):
        area += 2 * (2 * halves[j] + 1)
    scale = np.float32(1) / np.float32(area)
    n = (width + 2 * around) * 3
    change = np.empty(n - 3, np.int16)
    total = np.empty(n, np.int32)
    discs = np.empty((len(soft), n), np.float32)  # the last few rows of means over the disc
    smooth = np.empty(n, np.float32)
    rest = np.empty(width * 3, np.float32)
    result = out.reshape(height, width * 3)
    sums = _running_sums(rows) if len(box_weight) > 1 else np.empty((1, 1), np.int32)
    for y in range(height + 2 * around):
        # From one pixel to the next, every row of the disc gains a pixel on the right and loses one on the left.
        for j in range(radius + 1):
            gained, lost = (radius + halves[j] + 1) * 3, (radius - halves[j]) * 3
            upper, lower = rows[y + radius - j], rows[y + radius + j]
            a, b, c, d = upper[gained:], upper[lost:], lower[gained:], lower[lost:]
            if j == 0:
                for x in range(n - 3):
                    change[x] = np.int16(a[x]) - np.int16(b[x])
            else:
                for x in range(n - 3):
                    change[x] += (np.int16(a[x]) - np.int16(b[x])) + (np.int16(c[x]) - np.int16(d[x]))
        for c in range(3):
            first = np.int32(0)
            for j in range(-radius, radius + 1):
                half = halves[abs(j)]
                for x in range(radius - half, radius + half + 1):
                    first += np.int32(rows[y + radius + j, 3 * x + c])
            total[c] = first
        for x in range(n - 3):
            total[x + 3] = total[x] + change[x]
        line = discs[y % len(soft)]
        for x in range(n):
            line[x] = np.float32(total[x]) * scale
        if y < 2 * around:
            continue
        top = y - 2 * around
        taps = len(soft)
        _three(smooth, discs[top % taps], discs[(top + 1) % taps], discs[(top + 2) % taps], soft)
        for k in range(3, taps):
            line = discs[(top + k) % taps]
            for x in range(n):
                smooth[x] += soft[k] * line[x]
        _three(rest, smooth, smooth[3:], smooth[6:], soft)
        for k in range(3, taps):
            line = smooth[k * 3 :]
            for x in range(width * 3):
                rest[x] += soft[k] * line[x]
        for i in range(1, len(box_weight)):
            first_x, last_x = (border - box_half[i]) * 3, (border + box_half[i] + 1) * 3
            e, f = sums[top + border - box_row[i], first_x:], sums[top + border - box_row[i], last_x:]
            g, h = sums[top + border + box_row[i], first_x:], sums[top + border + box_row[i], last_x:]
            for x in range(width * 3):
                rest[x] += box_weight[i] * np.float32((f[x] - e[x]) + (h[x] - g[x]))
        _drop_fraction(rest, result[top])


@kernel
def _three(out: Array, a: Array, b: Array, c: Array, weight: Array) -> None:
    p, q, r = weight[0], weight[1], weight[2]
    for x in range(len(out)):
        out[x] = (p * a[x] + q * b[x]) + r * c[x]


@kernel
def _running_sums(rows: Frame) -> Array:
    """Sums from the left end of each row, which turn the sum over any stretch of it into one difference."""
    height, width = rows.shape
    sums = np.zeros((height, width + 3), np.int32)
    for y in range(height):
        for x in range(width):
            sums[y, x + 3] = sums[y, x] + np.int32(rows[y, x])
    return sums


@inlined
def _drop_fraction(total: Array, out: Frame) -> None:
    for x in range(len(out)):
        out[x] = np.uint8(np.int32(min(max(total[x] + HAIR, np.float32(0)), np.float32(255))))
