"""Compiled filters that several corruptions share: 8-bit RGB in and `out`, the fraction dropped as in the originals.

Sums are whole numbers or strict single precision in a fixed order, so the bytes do not depend on the machine. The
inner loops run along a row of interleaved channels and add eight shifted rows at a time: with fewer, storing the
running total costs more than the products.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import inlined, kernel, read_only
from jostle.core.types.clip import Frame

Array = npt.NDArray[Any]

# Added before the fraction is dropped, so that a flat area keeps its value in spite of rounding.
HAIR = np.float32(1e-3)
STRETCH = 4096  # values that are summed at once: their sums stay in the fastest cache


def rows_of(frame: Frame) -> Frame:
    """The frame as (H, W * 3)."""
    return np.ascontiguousarray(frame).reshape(len(frame), -1)


def towards_mean(frame: Frame, factor: float, out: Frame) -> Frame:
    """Each channel drawn towards its mean over the frame, of the distance to which `factor` is left."""
    _towards_mean(rows_of(frame), rows_of(out), np.float32(factor))
    return out


def gaussian(frame: Frame, sigma: float, out: Frame) -> Frame:
    """Gaussian blur with edge replication and support of four sigma."""
    _separable(read_only(np.ascontiguousarray(frame)), out, gaussian_taps(sigma))
    return out


@lru_cache(32)
def gaussian_taps(sigma: float) -> Array:
    """The taps of a Gaussian; they sum to 1."""
    reach = int(4 * sigma + 0.5)
    taps = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    return np.asarray(taps / taps.sum(), np.float32)


def correlate_taps(frame: Frame, dy: Array, dx: Array, weight: Array, out: Frame) -> Frame:
    """The weighted sum of copies of the frame moved by whole pixels, edges replicated; taps come in eights."""
    _taps_of_bytes(read_only(rows_of(frame)), rows_of(out), dy, dx, weight)
    return out


def correlate_plane(plane: Array, dy: Array, dx: Array, weight: Array) -> Array:
    """Sum shifted copies of a plane in single precision."""
    out = np.empty(plane.shape, np.float32)
    _taps_of_plane(plane, out, dy, dx, weight)
    return out


def motion_trail(radius: int, sigma: float, angle: float) -> tuple[Array, Array, Array]:
    """The taps of a motion blur, (dy, dx, weight): one-sided, fading as a Gaussian, on whole pixels along `angle`."""
    offset, weight = _trail(radius, sigma)
    theta = math.radians(angle)
    return _whole_moves(offset, math.sin(theta)), _whole_moves(offset, math.cos(theta)), weight


def motion_trails(radius: int, sigma: float, angles: Sequence[float]) -> tuple[npt.NDArray[np.int32], Array]:
    """Return the taps of motion blur for many angles: (N, 2, K) moves down and right, and (K,) weights."""
    offset, weight = _trail(radius, sigma)
    # Not by NumPy's sines, whose last digit may be another.
    thetas = list(map(math.radians, angles))
    directions = np.stack([list(map(part, thetas)) for part in (math.sin, math.cos)], 1)
    return _whole_moves(offset, directions[..., None]).astype(np.int32), weight


def _whole_moves(offset: Array, direction: Any) -> Array:
    return np.asarray(np.ceil(offset * direction - 0.5), np.int64)


@lru_cache(32)
def _trail(radius: int, sigma: float) -> tuple[Array, Array]:
    """Return the distance and weight of each tap, padded with zero weights to a multiple of eight."""
    offset = np.arange(2 * radius + 1)
    weight = np.exp(-(offset**2) / (2 * sigma**2))
    rest = (0, -len(weight) % 8)
    return np.pad(offset, rest), np.pad(weight / weight.sum(), rest).astype(np.float32)


@kernel
def _taps_of_bytes(frame: Frame, out: Frame, dy: Array, dx: Array, weight: Array) -> None:
    height, n = out.shape
    padded, stride, step = _surrounded(frame, dy, dx, 3)
    block = max(STRETCH // stride, 1)
    total = np.empty(block * stride, np.float32)
    for first in range(0, height, block):
        count = min(block, height - first)
        _sum_taps(total[: (count - 1) * stride + n], padded[first * stride :], step, weight)
        for y in range(count):
            # Weights are shares of 1: nothing is to be cut off.
            sums, blurred = total[y * stride :], out[first + y]
            for x in range(n):
                blurred[x] = np.uint8(np.int32(sums[x] + HAIR))


@kernel
def _taps_of_plane(plane: Array, out: Array, dy: Array, dx: Array, weight: Array) -> None:
    height, n = out.shape
    padded, stride, step = _surrounded(plane, dy, dx, 1)
    block = max(STRETCH // stride, 1)
    total = np.empty(block * stride, np.float32)
    for first in range(0, height, block):
        count = min(block, height - first)
        _sum_taps(total[: (count - 1) * stride + n], padded[first * stride :], step, weight)
        for y in range(count):
            sums, line = total[y * stride :], out[first + y]
            for x in range(n):
                line[x] = sums[x]


@kernel
def _surrounded(rows: Array, dy: Array, dx: Array, channels: int) -> tuple[Array, int, Array]:
    """Rows in single precision, edges repeated as far as taps reach: a move is then a step in memory, whatever its row.

    Also the length of a row, and the step of each tap.
    """
    height, n = rows.shape
    top = bottom = left = right = 0
    for i in range(len(dy)):
        top, bottom, left, right = max(top, -dy[i]), max(bottom, dy[i]), max(left, -dx[i]), max(right, dx[i])
    margin = left * channels
    stride = n + margin + right * channels
    padded = np.empty((height + top + bottom) * stride, np.float32)
    for y in range(height + top + bottom):
        source, line = rows[min(max(y - top, 0), height - 1)], padded[y * stride :]
        inner, after = line[margin:], line[margin + n :]
        for x in range(n):
            inner[x] = np.float32(source[x])
        for c in range(channels):
            first, last = np.float32(source[c]), np.float32(source[n - channels + c])
            for x in range(left):
                line[channels * x + c] = first
            for x in range(right):
                after[channels * x + c] = last
    step = np.empty(len(dy), np.int64)
    for i in range(len(dy)):
        step[i] = (dy[i] + top) * stride + (dx[i] + left) * channels
    return padded, stride, step


@kernel
def _sum_taps(total: Array, padded: Array, step: Array, weight: Array) -> None:
    """Taps come in eights. If only the first of the last eight weighs anything, it is added alone, to the same sum."""
    n, last = len(total), len(weight) - 8
    for i in range(0, len(weight), 8):
        p, q, r, s = weight[i], weight[i + 1], weight[i + 2], weight[i + 3]
        t, u, v, z = weight[i + 4], weight[i + 5], weight[i + 6], weight[i + 7]
        a, b, c, d = padded[step[i] :], padded[step[i + 1] :], padded[step[i + 2] :], padded[step[i + 3] :]
        e, f, g, h = padded[step[i + 4] :], padded[step[i + 5] :], padded[step[i + 6] :], padded[step[i + 7] :]
        if i == 0:
            for x in range(n):
                total[x] = _eight(x, a, b, c, d, e, f, g, h, p, q, r, s, t, u, v, z)
        elif i == last and q == 0:
            for x in range(n):
                total[x] += p * a[x]
        else:
            for x in range(n):
                total[x] += _eight(x, a, b, c, d, e, f, g, h, p, q, r, s, t, u, v, z)


@inlined
def _eight(x: int, a: Array, b: Array, c: Array, d: Array, e: Array, f: Array, g: Array, h: Array,
           p: np.float32, q: np.float32, r: np.float32, s: np.float32,
           t: np.float32, u: np.float32, v: np.float32, z: np.float32) -> Any:  # fmt: skip
    return ((p * a[x] + q * b[x]) + (r * c[x] + s * d[x])) + ((t * e[x] + u * f[x]) + (v * g[x] + z * h[x]))


@inlined
def _fold(x: int, a: Array, b: Array, c: Array, d: Array, e: Array, f: Array, g: Array, h: Array,
          p: np.float32, q: np.float32, r: np.float32, s: np.float32) -> Any:  # fmt: skip
    return (p * (a[x] + b[x]) + q * (c[x] + d[x])) + (r * (e[x] + f[x]) + s * (g[x] + h[x]))


@kernel
def _separable(frame: Frame, out: Frame, taps: Array) -> None:
    height, width, _ = out.shape
    n = width * 3
    reach = len(taps) // 2
    result = out.reshape(height, n)
    corner = np.array([-reach, reach])
    padded, stride, _ = _surrounded(frame.reshape(height, n), corner, corner, 3)
    # Taps come in equal pairs about the centre: pair k is k + 1 away. Four pairs are added at once; pairs beyond the
    # last have weight 0 and point at the centre.
    pairs = max((reach + 3) // 4 * 4, 4)
    weight = np.zeros(pairs, np.float32)
    away = np.zeros(pairs, np.int64)
    for k in range(reach):
        weight[k] = taps[reach + 1 + k]
        away[k] = k + 1
    block = max(STRETCH // stride, 1)
    lines, total = np.empty(block * stride, np.float32), np.empty(block * stride, np.float32)
    margin, pixel = 3 * reach, n // width  # no literal, for which the sums would be compiled once more
    for first in range(0, height, block):
        count = min(block, height - first)
        _fold_pairs(lines[: count * stride], padded, (first + reach) * stride, stride, away, weight, taps[reach])
        _fold_pairs(total[: count * stride - 2 * margin], lines, margin, pixel, away, weight, taps[reach])
        for y in range(count):
            # Weights are shares of 1: nothing is to be cut off.
            sums, blurred = total[y * stride :], result[first + y]
            for x in range(n):
                blurred[x] = np.uint8(np.int32(sums[x] + HAIR))


@kernel
def _fold_pairs(
    total: Array, values: Array, centre: int, step: int, away: Array, weight: Array, middle: np.float32
) -> None:
    """Sum the centre and the pairs of values at equal distance before and after it."""
    n, here = len(total), values[centre:]
    for k in range(0, len(away), 4):
        p, q, r, s = weight[k], weight[k + 1], weight[k + 2], weight[k + 3]
        a, b = values[centre - away[k] * step :], values[centre + away[k] * step :]
        c, d = values[centre - away[k + 1] * step :], values[centre + away[k + 1] * step :]
        e, f = values[centre - away[k + 2] * step :], values[centre + away[k + 2] * step :]
        g, h = values[centre - away[k + 3] * step :], values[centre + away[k + 3] * step :]
        if k == 0:
            for x in range(n):
                total[x] = middle * here[x] + _fold(x, a, b, c, d, e, f, g, h, p, q, r, s)
        else:
            for x in range(n):
                total[x] += _fold(x, a, b, c, d, e, f, g, h, p, q, r, s)


@kernel
def _towards_mean(rows: Frame, out: Frame, factor: np.float32) -> None:
    height, n = rows.shape
    lift = np.empty(3, np.float32)
    sums = channel_sums(rows)
    for c in range(3):
        lift[c] = (1 - np.float64(factor)) * sums[c] / (height * n // 3)
    red, green, blue = lift[0], lift[1], lift[2]
    for y in range(height):
        clean, flat = rows[y], out[y]
        for x in range(n // 3):
            flat[3 * x] = np.uint8(np.int32(np.float32(clean[3 * x]) * factor + red))
            flat[3 * x + 1] = np.uint8(np.int32(np.float32(clean[3 * x + 1]) * factor + green))
            flat[3 * x + 2] = np.uint8(np.int32(np.float32(clean[3 * x + 2]) * factor + blue))


@kernel
def channel_sums(rows: Frame) -> Array:
    """The sum of each channel. 256 rows at a time are summed with 16 bits, which do twice as many columns at once."""
    height, n = rows.shape
    total, part = np.zeros(n, np.int64), np.empty(n, np.uint16)
    for first in range(0, height, 256):
        part[:] = 0
        for y in range(first, min(first + 256, height)):
            line = rows[y]
            for x in range(n):
                part[x] += np.uint16(line[x])
        for x in range(n):
            total[x] += part[x]
    sums = np.zeros(3, np.int64)
    for x in range(n):
        sums[x % 3] += total[x]
    return sums
