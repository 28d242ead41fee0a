"""Splashes on a lens: the brightness of water drops, and the cover of mud."""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel
from jostle.corruptions.kernels.distances import distances
from jostle.corruptions.kernels.textures import Plane, normal_plane

Grey = npt.NDArray[np.uint8]  # (H, W)


@lru_cache(4)
def water(
    height: int, width: int, mean: float, sd: float, blur: float, threshold: float, gain: float, *, key: int
) -> Plane:
    """Drops with a dark and a light side, up to `gain`."""
    drops = np.empty((height, width), np.uint8)
    _above(_liquid(height, width, mean, sd, blur, key), drops, np.float32(threshold))
    inwards = distances(np.asarray(cv2.Canny(drops, 50, 150), np.uint8), 20)
    depth = cv2.equalizeHist(cv2.blur(inwards, (3, 3)).astype(np.uint8))
    embossed = np.empty((height, width), np.uint8)
    _emboss(np.asarray(cv2.copyMakeBorder(depth, 1, 1, 1, 1, cv2.BORDER_REFLECT_101), np.uint8), embossed)
    shine = np.empty((height, width), np.float32)
    most = _product(drops, np.asarray(cv2.blur(embossed, (3, 3)), np.uint8), shine)
    shine *= gain / max(float(most), 1.0)
    return shine


@lru_cache(4)
def mud(
    height: int, width: int, mean: float, sd: float, blur: float, threshold: float, gain: float, *, key: int
) -> Plane:
    """Splashes whose rims are softened by `gain` pixels and cut where they are thin."""
    splashes = (_liquid(height, width, mean, sd, blur, key) > threshold).astype(np.float32)
    splashes = _smoothed(splashes, gain)
    splashes[splashes < 0.8] = 0
    return splashes


def _liquid(height: int, width: int, mean: float, sd: float, blur: float, key: int) -> Plane:
    return _smoothed(normal_plane(height, width, key, mean, sd), blur)


def _smoothed(plane: Plane, sigma: float) -> Plane:
    side = 2 * int(4 * sigma + 0.5) + 1
    return np.asarray(cv2.GaussianBlur(plane, (side, side), sigma, borderType=cv2.BORDER_REPLICATE), np.float32)


@kernel
def _above(layer: Plane, out: Grey, threshold: np.float32) -> None:
    """Set values below the threshold to 0, and scale the others so that 1 is 255."""
    for y in range(len(out)):
        level, drop = layer[y], out[y]
        for x in range(len(drop)):
            value = level[x] * np.float32(255) if level[x] >= threshold else np.float32(0)
            drop[x] = np.uint8(np.int32(min(max(value, np.float32(0)), np.float32(255))))


@kernel
def _emboss(padded: Grey, out: Grey) -> None:
    """Light from the lower right: -2 -1 0, -1 1 1, 0 1 2, by a border of one pixel."""
    for y in range(len(out)):
        above, here, below, lit = padded[y], padded[y + 1], padded[y + 2], out[y]
        left, right, under = above[1:], here[2:], below[2:]
        middle, foot = here[1:], below[1:]
        for x in range(len(lit)):
            level = np.int16(np.int16(middle[x]) + np.int16(right[x]) + np.int16(foot[x]) - np.int16(left[x]))
            level = np.int16(level - np.int16(here[x]))
            level = np.int16(level + np.int16(np.int16(2) * np.int16(np.int16(under[x]) - np.int16(above[x]))))
            lit[x] = np.uint8(min(max(level, np.int16(0)), np.int16(255)))


@kernel
def _product(a: Grey, b: Grey, out: Plane) -> np.int32:
    """Fill `out` with the products, and return the largest of them."""
    most = np.int32(0)
    for y in range(len(out)):
        one, other, line = a[y], b[y], out[y]
        for x in range(len(line)):
            product = np.int32(np.int32(one[x]) * np.int32(other[x]))
            line[x] = np.float32(product)
            most = max(most, product)
    return most
