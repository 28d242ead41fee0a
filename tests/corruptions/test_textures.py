"""Enlarged planes are close to exact sums."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.corruptions.kernels.textures import normal_plane, stretched


@pytest.mark.parametrize("size", [(1, 1), (2, 7), (56, 56), (57, 85)])
@pytest.mark.parametrize("zoom", [2.5, 4.0])
def test_enlargement_keeps_corners_and_interpolates(size: tuple[int, int], zoom: float) -> None:
    small = normal_plane(*size, 5, 0.5, 0.3)
    tall, wide = (round(side * zoom) for side in size)
    enlarged = stretched(small, tall, wide, zoom)
    assert enlarged[[0, 0, -1, -1], [0, -1, 0, -1]] == pytest.approx(small[[0, 0, -1, -1], [0, -1, 0, -1]], abs=1e-6)

    def weights(length: int, count: int) -> np.ndarray:
        position = np.arange(length) * ((count - 1) / max(length - 1, 1))
        return np.maximum(1 - np.abs(position[:, None] - np.arange(count)), 0)

    expected = weights(tall, size[0]) @ small.astype(np.float64) @ weights(wide, size[1]).T
    assert np.abs(enlarged - expected).max() < 3e-5
