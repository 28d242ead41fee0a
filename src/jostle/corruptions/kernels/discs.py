"""The mean over a disc, by what changes from one pixel to the next, in whole numbers."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from jostle.core.kernels import inlined, kernel
from jostle.core.types.clip import Frame
from jostle.corruptions.kernels.filters import HAIR

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
    plain = len(soft) == 3 and len(box_weight) == 1  # then nothing is added to three taps, and nothing is to be cut off
    first = np.zeros(3, np.int32)
    for y in range(height + 2 * around):
        # From one pixel to the next, every row of the disc gains a pixel on the right and loses one on the left.
        a, b = _ends(rows, y, radius, 0, halves[0])
        for x in range(n - 3):
            change[x] = np.int16(a[x]) - np.int16(b[x])
        for j in range(1, radius, 2):
            (a, b), (c, d) = _ends(rows, y, radius, -j, halves[j]), _ends(rows, y, radius, j, halves[j])
            (e, f), (g, h) = _ends(rows, y, radius, -j - 1, halves[j + 1]), _ends(rows, y, radius, j + 1, halves[j + 1])
            for x in range(n - 3):
                one = (np.int16(a[x]) - np.int16(b[x])) + (np.int16(c[x]) - np.int16(d[x]))
                two = (np.int16(e[x]) - np.int16(f[x])) + (np.int16(g[x]) - np.int16(h[x]))
                change[x] += one + two
        if radius % 2:
            half = halves[radius]
            (a, b), (c, d) = _ends(rows, y, radius, -radius, half), _ends(rows, y, radius, radius, half)
            for x in range(n - 3):
                change[x] += (np.int16(a[x]) - np.int16(b[x])) + (np.int16(c[x]) - np.int16(d[x]))
        # From one row to the next, every column of it gains one below and loses one above.
        for x in range(-radius, radius + 1):
            half, place = halves[abs(x)], 3 * (radius + x)
            for i in range(3):
                if y == 0:
                    for v in range(radius - half, radius + half + 1):
                        first[i] += np.int32(rows[v, place + i])
                else:
                    first[i] += np.int32(rows[y + radius + half, place + i])
                    first[i] -= np.int32(rows[y - 1 + radius - half, place + i])
        for i in range(3):
            total[i] = first[i]
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
        if plain:
            _three_bytes(result[top], smooth, smooth[3:], smooth[6:], soft)
            continue
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
def _three_bytes(out: Frame, a: Array, b: Array, c: Array, weight: Array) -> None:
    p, q, r = weight[0], weight[1], weight[2]
    for x in range(len(out)):
        out[x] = np.uint8(np.int32(((p * a[x] + q * b[x]) + r * c[x]) + HAIR))


@kernel
def _ends(rows: Frame, y: int, radius: int, down: int, half: int) -> tuple[Array, Array]:
    """Compute what one row of the disc gains and loses as it moves along a row of the frame."""
    line = rows[y + radius + down]
    return line[3 * (radius + half + 1) :], line[3 * (radius - half) :]


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
