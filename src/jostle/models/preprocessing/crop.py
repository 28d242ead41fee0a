"""Where crops lie in a frame, and how they are cut out."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from jostle.errors import BadValue

Crops = Literal["centre", "three", "ten"]
OddMargin = Literal["smaller", "larger", "even"]


class Crop(NamedTuple):
    """A square of a frame, by its upper left corner; `mirrored` swaps its left and right."""

    top: int
    left: int
    mirrored: bool = False


def crops_of(height: int, width: int, size: int, crops: Crops, odd: OddMargin = "smaller") -> list[Crop]:
    """Squares of `size` of a frame; see `InputSpec` for which, and for a margin that cannot be halved.

    Raises:
        BadValue: if they do not fit.
    """
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
    """(crops, ..., size, size) from (..., H, W)."""
    if crops == "centre":
        return centre_crop(video, size, odd)[None]  # which is not copied
    height, width = video.shape[-2:]
    return torch.stack([_cut_out(video, size, crop) for crop in crops_of(height, width, size, crops, odd)])


def centre_crop(video: Tensor, size: int, odd: OddMargin = "smaller") -> Tensor:
    """(..., size, size) from the middle."""
    height, width = video.shape[-2:]
    return _cut_out(video, size, crops_of(height, width, size, "centre", odd)[0])


def _cut_out(video: Tensor, size: int, crop: Crop) -> Tensor:
    seen = video[..., crop.top : crop.top + size, crop.left : crop.left + size]
    return seen.flip(-1) if crop.mirrored else seen


def _half(margin: int, odd: OddMargin) -> int:
    """What is cut off before the centre."""
    if odd == "even":
        return round(margin / 2)  # Python rounds a half to the even number
    return (margin + (odd == "larger")) // 2
