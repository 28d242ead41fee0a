"""Building blocks of splashes, compared with those of OpenCV."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from jostle.corruptions.kernels.splashes import _above, _emboss, _product, distances


@pytest.mark.parametrize("size", [(48, 64), (33, 57), (3, 4), (1, 9), (9, 1)])
@pytest.mark.parametrize("share", [0.0, 0.003, 0.05, 1.0])
def test_distance_transform(size: tuple[int, int], share: float) -> None:
    marked = (np.random.default_rng(3).uniform(size=size) < share).astype(np.uint8) * 255
    expected = np.minimum(cv2.distanceTransform(255 - marked, cv2.DIST_L2, 5), 20)
    assert np.abs(distances(marked, 20) - expected).max() < 1e-4  # builds of OpenCV differ in rounding


def test_distances_are_limited() -> None:
    marked = np.zeros((9, 40), np.uint8)
    marked[4, 0] = 1
    assert distances(marked, 7)[4].tolist() == [*range(8), *[7] * 32]


def test_emboss_filter() -> None:
    grey = np.random.default_rng(0).integers(0, 256, (31, 45), dtype=np.uint8)
    out = np.empty_like(grey)
    _emboss(np.asarray(cv2.copyMakeBorder(grey, 1, 1, 1, 1, cv2.BORDER_REFLECT_101)), out)
    weights = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], np.float32)
    assert np.array_equal(out, cv2.filter2D(grey, cv2.CV_8U, weights))


def test_values_below_the_threshold_are_zero() -> None:
    layer = np.array([[-1.0, 0.4999, 0.5, 0.9, 1.5]], np.float32)
    out = np.empty(layer.shape, np.uint8)
    _above(layer, out, np.float32(0.5))
    assert out.tolist() == [[0, 0, 127, 229, 255]]


def test_product_returns_its_maximum() -> None:
    a, b = (np.random.default_rng(seed).integers(0, 256, (7, 21), dtype=np.uint8) for seed in (1, 2))
    out = np.empty(a.shape, np.float32)
    assert _product(a, b, out) == out.max()
    assert np.array_equal(out, a.astype(np.float32) * b)
