"""Splashes on a lens: the brightness of water drops, and the cover of mud.

The distance transform is in integers, the same as OpenCV's `distanceTransform` with a mask of five. Some of its builds
take other code where the processor offers it; this is the same everywhere, and takes little more than half as long.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel
from jostle.corruptions.kernels.textures import Plane, normal_plane

Array = npt.NDArray[Any]

# A step along an axis, a diagonal one and a knight's move, after Borgefors (1986), with 16 binary places.
_STRAIGHT, _DIAGONAL, _KNIGHT = np.int32(65536), np.int32(91750), np.int32(143976)


def distances(marked: npt.NDArray[np.uint8], most: int) -> npt.NDArray[np.float32]:
    """Return the distance of each pixel to the nearest that is not 0, at most `most`."""
    out = np.empty(marked.shape, np.float32)
    _measure(marked, out, np.int32(most << 16))
    return out


@kernel
def _measure(marked: Array, out: Array, most: np.int32) -> None:
    """Down the rows, then up: a distance is that of a neighbour and a step from there.

    Steps from the row before, and from the one before that, are taken for many pixels at once; those along the row wait
    for each other.
    """
    height, width = marked.shape
    far = np.full((height + 4, width + 4), most, np.int32)
    for y in range(height):
        here = far[y + 2, 2:]
        _step_from(here, far[y + 1], far[y], width)
        last = most
        for x in range(width):
            last = np.int32(0) if marked[y, x] else min(here[x], np.int32(last + _STRAIGHT))
            here[x] = last
    scale = np.float32(1 / 65536)
    for y in range(height - 1, -1, -1):
        here, line = far[y + 2, 2:], out[y]
        _step_from(here, far[y + 3], far[y + 4], width)
        last = most
        for x in range(width - 1, -1, -1):
            last = min(here[x], np.int32(last + _STRAIGHT))
            here[x] = last
        for x in range(width):
            line[x] = np.float32(here[x]) * scale


@kernel
def _step_from(here: Array, first: Array, second: Array, width: int) -> None:
    a, b, c, d = first[1:], first[2:], first[3:], first[4:]
    e, f = second[1:], second[3:]
    for x in range(width):
        knight = np.int32(min(min(first[x], d[x]), min(e[x], f[x])) + _KNIGHT)
        near = min(np.int32(b[x] + _STRAIGHT), np.int32(min(a[x], c[x]) + _DIAGONAL))
        here[x] = min(here[x], min(knight, near))


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
