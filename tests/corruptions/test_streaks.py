"""Rain streaks equal a plain NumPy implementation."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from jostle.corruptions.kernels.streaks import STREAK, pour


@pytest.mark.parametrize("size", [(1, 1), (1, 6), (5, 1), (2, 2), (9, 14), (40, 31)])
@pytest.mark.parametrize("covered", [0.0, 0.2, 1.0])
def test_rain_equals_a_plain_implementation(size: tuple[int, int], covered: float) -> None:
    rng = np.random.default_rng(5)
    frame = rng.integers(0, 256, (*size, 3), dtype=np.uint8)
    mask = np.where(rng.random(size) < covered, STREAK, 0).astype(np.uint8)
    cover, left = np.float32(STREAK / 255), np.float32(0.7)

    mean = sum(cv2.mean(frame)) / (3 * 255)
    value = np.arange(256)
    brighter = value + (STREAK * (1 - value / 255) * (1 - mean)).astype(np.int64)
    wet = cv2.blur(np.where(mask[..., None] > 0, brighter[frame], frame).astype(np.uint8), (3, 3))
    share = np.where(mask[..., None] > 0, cover, np.float32(0))
    levels = wet.astype(np.float32) * share + frame.astype(np.float32) * (np.float32(1) - share)
    lift = ((1 - np.float64(left)) * levels.sum(axis=(0, 1), dtype=np.float64) / mask.size).astype(np.float32)
    expected = np.clip(levels * left + lift, 0, 255).astype(np.uint8)

    out = np.empty_like(frame)
    frame.setflags(write=False)
    assert np.array_equal(pour(frame, mask, 0.7, out), expected)
