"""The median by a sorting network equals that of OpenCV."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from jostle.corruptions.kernels.median import TILE, median_of_seven, merge


@pytest.mark.parametrize("size", [(1, 1), (2, 9), (11, 4), (30, 41), (9, TILE // 3 + 1), (8, TILE)])
def test_median_equals_opencv(size: tuple[int, int]) -> None:
    rng = np.random.default_rng(7)
    many = rng.integers(0, 256, (*size, 3), dtype=np.uint8)
    binary = rng.integers(0, 2, (*size, 3), dtype=np.uint8) * np.uint8(200)  # reveals a wrong network
    for frame in (many, binary):
        assert np.array_equal(median_of_seven(frame, np.empty_like(frame)), cv2.medianBlur(frame, 7))


def test_merge_networks_sort_every_input() -> None:
    """By the 0-1 principle, a network that sorts all zeros and ones sorts everything."""
    for left, right in ((7, 7), (14, 7), (21, 21)):
        a, b = list(range(left)), list(range(left, left + right))
        pairs, order = merge(a, b)
        for ones in range(left + 1):
            for more in range(right + 1):
                value = [i >= left - ones for i in range(left)] + [i >= right - more for i in range(right)]
                for low, high in pairs:
                    value[low], value[high] = min(value[low], value[high]), max(value[low], value[high])
                assert [value[wire] for wire in order] == sorted(value)
