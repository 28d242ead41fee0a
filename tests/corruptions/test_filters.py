"""Compiled filters equal the same sums, in the same order, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from jostle.corruptions.kernels.filters import (
    HAIR,
    channel_sums,
    correlate_plane,
    correlate_taps,
    gaussian,
    gaussian_taps,
    motion_trail,
)

Array = npt.NDArray[Any]

SIZES = [(1, 1), (1, 6), (5, 1), (2, 3), (17, 22), (40, 31)]


def noise(size: tuple[int, int]) -> Array:
    frame = np.random.default_rng(3).integers(0, 256, (*size, 3), dtype=np.uint8)
    frame[0, 0] = 255
    frame.setflags(write=False)
    return frame


def shift(plane: Array, dy: int, dx: int) -> Array:
    height, width = plane.shape[:2]
    rows, columns = np.arange(height) + dy, np.arange(width) + dx
    return plane[np.clip(rows, 0, height - 1)][:, np.clip(columns, 0, width - 1)]


def to_bytes(total: Array) -> Array:
    return np.minimum(total + HAIR, np.float32(255)).astype(np.uint8)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sigma", [0.1, 0.3, 1.0, 1.2, 3.0, 4.0])  # radii of 0 to 16 pixels
def test_gaussian_filter(size: tuple[int, int], sigma: float) -> None:
    frame, taps = noise(size), gaussian_taps(sigma)
    reach = len(taps) // 2

    def along(plane: Array, step: tuple[int, int]) -> Array:
        total = taps[reach] * plane
        for k in range(1, reach + 1, 4):
            pairs = [
                taps[reach + i] * (shift(plane, -i * step[0], -i * step[1]) + shift(plane, i * step[0], i * step[1]))
                if i <= reach
                else np.float32(0)
                for i in range(k, k + 4)
            ]
            total = total + ((pairs[0] + pairs[1]) + (pairs[2] + pairs[3]))
        return np.asarray(total)

    expected = to_bytes(along(along(frame.astype(np.float32), (1, 0)), (0, 1)))
    assert np.array_equal(gaussian(frame, sigma, np.empty_like(frame)), expected)


def weighted_sum(plane: Array, dy: Array, dx: Array, weight: Array) -> Array:
    total = np.zeros(plane.shape, np.float32)
    for i in range(0, len(weight), 8):
        a, b, c, d, e, f, g, h = (weight[k] * shift(plane, dy[k], dx[k]) for k in range(i, i + 8))
        total += ((a + b) + (c + d)) + ((e + f) + (g + h))
    return total


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("radius", [2, 3, 4, 10, 15, 20])  # 5, 7, 9, 21, 31 and 41 taps
@pytest.mark.parametrize("angle", [-45.0, 0.0, 20.0, -100.0])
def test_trail_filter(size: tuple[int, int], radius: int, angle: float) -> None:
    frame = noise(size)
    trail = motion_trail(radius, 8.0, angle)
    expected = to_bytes(weighted_sum(frame.astype(np.float32), *trail))
    assert np.array_equal(correlate_taps(frame, *trail, np.empty_like(frame)), expected)
    plane = np.random.default_rng(1).random(size, np.float32)
    assert np.array_equal(correlate_plane(plane, *trail), weighted_sum(plane, *trail))


@pytest.mark.parametrize("size", [(1, 1), (7, 5), (256, 2), (257, 3), (700, 4)])
def test_channel_sums(size: tuple[int, int]) -> None:
    for frame in (noise(size), np.full((*size, 3), 255, np.uint8)):
        assert channel_sums(frame.reshape(size[0], -1)).tolist() == frame.sum(axis=(0, 1), dtype=np.int64).tolist()
