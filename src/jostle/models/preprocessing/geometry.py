"""Resizing as in OpenCV (bilinear by a factor, with rounded sizes) and Pillow, positions of crops, and cropping."""

from __future__ import annotations

import math
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.errors import BadValue


def resize_by_factor(frames: Tensor, factor: float) -> Tensor:
    """Resize floating-point frames (..., H, W) by a factor; sizes are rounded half to even.

    >>> resize_by_factor(torch.tensor([[0.0, 4.0, 8.0, 12.0]]).expand(2, 4), 0.6).tolist()
    [[1.3333333730697632, 8.0]]
    """
    for axis in (-2, -1):
        frames = _scale_axis(frames, axis, factor)
    return frames


def _scale_axis(frames: Tensor, axis: int, factor: float) -> Tensor:
    size = frames.shape[axis]
    to = max(round(size * factor), 1)
    at = ((torch.arange(to, dtype=torch.float64) + 0.5) / factor - 0.5).clamp(0, size - 1)
    before = at.floor()
    later = (at - before).to(frames.device, frames.dtype)
    later = later if axis == -1 else later[:, None]
    index = before.long().to(frames.device)
    near, far = (frames.index_select(axis, i) for i in (index, (index + 1).clamp(max=size - 1)))
    return near + (far - near) * later


Filter = Literal["bilinear", "bicubic"]
REACH: dict[Filter, float] = {"bilinear": 1.0, "bicubic": 2.0}  # of a filter, in pixels of the smaller picture
CUBIC = -0.5  # Keys' parameter
BITS = 22  # of the fraction of a weight: what 32 leave beside a grey level and two bits for overshoot


def pillow_resize(pictures: Tensor, to: tuple[int, int], how: Filter) -> Tensor:
    """Return (..., *to) uint8 from (..., H, W) uint8.

    The width is done first, unless the height loses more than twice as many pixels. That is the rule of Pillow 13;
    those before it always began with the width.

    >>> picture = torch.tensor([[0, 100, 200, 255]], dtype=torch.uint8)
    >>> pillow_resize(picture, (1, 2), "bilinear").tolist()
    [[71, 209]]
    """
    height, width = pictures.shape[-2:]
    upright = to[0] < height and 2 * (width - to[1]) < height - to[0]
    for axis in (-2, -1) if upright else (-1, -2):
        if pictures.shape[axis] != to[axis]:
            pictures = _along(pictures.transpose(axis, -1), to[axis], how).transpose(axis, -1)
    return pictures


def _along(pictures: Tensor, to: int, how: Filter) -> Tensor:
    """Resize the last axis tap by tap, so that memory does not grow with the filter."""
    first, weights = taps(pictures.shape[-1], to, how)
    last = pictures.shape[-1] - 1
    begin = torch.from_numpy(first).to(pictures.device)
    each = torch.from_numpy(weights).to(pictures.device)
    total = torch.full((*pictures.shape[:-1], to), 1 << (BITS - 1), dtype=torch.int32, device=pictures.device)
    for tap in range(each.shape[1]):
        here = pictures.index_select(-1, (begin + tap).clamp(max=last))  # beyond the edge weights are 0
        total += here.to(torch.int32) * each[:, tap]
    return (total >> BITS).clamp_(0, 255).to(torch.uint8)


@cache
def taps(length: int, to: int, how: Filter) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the first source pixel (to,) and the weights (to, taps) of each output pixel."""
    scale = length / to
    wide = max(scale, 1.0)  # shrinking averages over what a pixel covers
    reach = REACH[how] * wide
    first, rows = np.zeros(to, np.int64), []
    for i in range(to):
        centre = (i + 0.5) * scale
        begin, end = max(0, int(centre - reach + 0.5)), min(length, int(centre + reach + 0.5))
        row = [_weight(how, (x - centre + 0.5) * (1.0 / wide)) for x in range(begin, end)]
        total = _sum(row)
        first[i] = begin
        rows.append([_whole(weight / total * (1 << BITS)) for weight in row])
    weights = np.zeros((to, max(map(len, rows))), np.int32)
    for i, whole in enumerate(rows):
        weights[i, : len(whole)] = whole
    return first, weights


def _weight(how: Filter, x: float) -> float:
    x = abs(x)
    if how == "bilinear":
        return 1.0 - x if x < 1.0 else 0.0
    if x < 1.0:
        return ((CUBIC + 2.0) * x - (CUBIC + 3.0)) * x * x + 1.0
    return (((x - 5.0) * x + 8.0) * x - 4.0) * CUBIC if x < 2.0 else 0.0


def _sum(row: list[float]) -> float:
    total = 0.0  # in this order and without compensation, which Python's own sum has in newer versions
    for weight in row:
        total += weight
    return total


def _whole(value: float) -> int:
    return math.trunc(value + (0.5 if value >= 0 else -0.5))


Crops = Literal["centre", "three", "ten"]
OddMargin = Literal["smaller", "larger", "even"]


class Crop(NamedTuple):
    """A square of a frame, by its upper left corner; `mirrored` swaps its left and right."""

    top: int
    left: int
    mirrored: bool = False


def crops_of(height: int, width: int, size: int, crops: Crops, odd: OddMargin = "smaller") -> list[Crop]:
    """Return the crops of `size` in a frame; see `InputSpec` for their positions and odd margins."""
    down, across = height - size, width - size
    if min(down, across) < 0:
        raise BadValue(f"a crop of {size}x{size} does not fit into frames of {width}x{height}; resize them first")
    centre = Crop(_half(down, odd), _half(across, odd))
    if crops == "centre":
        return [centre]
    if crops == "three":
        if across >= down:
            return [Crop(centre.top, left) for left in (0, centre.left, across)]
        return [Crop(top, centre.left) for top in (0, centre.top, down)]
    five = [Crop(top, left) for top in (0, down) for left in (0, across)] + [centre]
    return five + [crop._replace(mirrored=True) for crop in five]


def cut(video: Tensor, size: int, crops: Crops, odd: OddMargin = "smaller") -> Tensor:
    """Return (crops, ..., size, size) from (..., H, W)."""
    if crops == "centre":
        return centre_crop(video, size, odd)[None]  # which is not copied
    height, width = video.shape[-2:]
    return torch.stack([_cut_out(video, size, crop) for crop in crops_of(height, width, size, crops, odd)])


def centre_crop(video: Tensor, size: int, odd: OddMargin = "smaller") -> Tensor:
    """Return (..., size, size) from the middle."""
    height, width = video.shape[-2:]
    return _cut_out(video, size, crops_of(height, width, size, "centre", odd)[0])


def _cut_out(video: Tensor, size: int, crop: Crop) -> Tensor:
    part = video[..., crop.top : crop.top + size, crop.left : crop.left + size]
    return part.flip(-1) if crop.mirrored else part


def _half(margin: int, odd: OddMargin) -> int:
    """Return the margin before the centre crop."""
    if odd == "even":
        return round(margin / 2)  # Python rounds a half to the even number
    return (margin + (odd == "larger")) // 2
