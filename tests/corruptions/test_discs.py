"""The mean over a softened disc equals the same sums, in the same order, in NumPy."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from jostle.corruptions.blur import _disc
from jostle.corruptions.kernels.discs import correlate_disc
from jostle.corruptions.kernels.filters import HAIR


@pytest.mark.parametrize("radius", [1, 2, 3, 4, 6, 8, 10])
@pytest.mark.parametrize("size", [(12, 13), (40, 31)])
def test_mean_over_a_softened_disc(radius: int, size: tuple[int, int]) -> None:
    frame = np.random.default_rng(4).integers(0, 256, (*size, 3), dtype=np.uint8)
    halves, soft, boxes = _disc(radius, 0.5, True)
    border = radius + len(soft) // 2
    padded = cv2.copyMakeBorder(frame, border, border, border, border, cv2.BORDER_REFLECT_101).astype(np.int64)
    axis = np.arange(-radius, radius + 1)
    disc = axis[:, None] ** 2 + axis**2 <= radius**2
    windows = np.lib.stride_tricks.sliding_window_view(padded, disc.shape, axis=(0, 1))
    means = (windows * disc).sum(axis=(-2, -1)).astype(np.float32) * (np.float32(1) / np.float32(disc.sum()))

    def along(plane: np.ndarray) -> np.ndarray:
        length = len(plane) - len(soft) + 1
        parts = [weight * plane[k : k + length] for k, weight in enumerate(soft)]
        total = (parts[0] + parts[1]) + parts[2]
        for part in parts[3:]:
            total = total + part
        return np.asarray(total)

    smooth = along(along(means).swapaxes(0, 1)).swapaxes(0, 1)
    expected = np.minimum(smooth + HAIR, np.float32(255)).astype(np.uint8)
    assert np.array_equal(correlate_disc(frame, halves, soft, boxes, np.empty_like(frame)), expected)
