"""Enlarged planes, against exact sums."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.corruptions.kernels.textures import normal_plane, stretched


@pytest.mark.parametrize("size", [(1, 1), (2, 7), (56, 56), (57, 85)])
@pytest.mark.parametrize("zoom", [2.5, 4.0])
def test_an_enlargement_shares_its_corners(size: tuple[int, int], zoom: float) -> None:
    small = normal_plane(*size, 5, 0.5, 0.3)
    tall, wide = (round(side * zoom) for side in size)
    made = stretched(small, tall, wide, zoom)
    assert made[[0, 0, -1, -1], [0, -1, 0, -1]] == pytest.approx(small[[0, 0, -1, -1], [0, -1, 0, -1]], abs=1e-6)

    def weights(length: int, count: int) -> np.ndarray:
        place = np.arange(length) * ((count - 1) / max(length - 1, 1))
        return np.maximum(1 - np.abs(place[:, None] - np.arange(count)), 0)

    plainly = weights(tall, size[0]) @ small.astype(np.float64) @ weights(wide, size[1]).T
    assert np.abs(made - plainly).max() < 3e-5
