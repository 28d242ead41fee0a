"""Positions of crops in a frame, and cropping."""

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
    """Return the crops of `size` in a frame; see `InputSpec` for their positions and odd margins.

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
