"""Anchors on the line, and boxes told as codes beside them.

A box counts its last step: it is end - start + 1 long.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from jostle.detectors.blocks.points import Points

CENTRE_UNIT, LENGTH_UNIT = 10.0, 5.0  # codes are so many times finer than lengths of the anchor, and than its logarithm
MOST_LOG = math.log(62.5)  # an anchor grows by no more than this


def make_anchors(sizes: Sequence[int], scales: Sequence[float], finest: int) -> Tensor:
    """(N, 2) start and end of every anchor, level after level, the finest first; place by place within a level.

    Args:
        sizes: places of each level; neighbours are `finest`, twice as many, ... steps apart.
        scales: lengths of the anchors at a place, in strides of its level.

    >>> make_anchors([2], [1, 1.5], 4).tolist()
    [[0.5, 3.5], [-0.5, 4.5], [4.5, 7.5], [3.5, 8.5]]
    """
    made = []
    for level, size in enumerate(sizes):
        stride = finest * 2**level
        for place, scale in itertools.product(range(size), scales):
            centre, half = place * stride + stride / 2, (stride * scale - 1) / 2
            made.append((centre - half, centre + half))
    return torch.tensor(made)


def anchor_points(sizes: Sequence[int], scales: Sequence[float], finest: int, device: torch.device) -> Points:
    """The centres of the anchors, in the order of `make_anchors`."""
    level = torch.cat([torch.full((size * len(scales),), i, device=device) for i, size in enumerate(sizes)])
    stride = finest * (2**level).float()
    place = torch.cat([torch.arange(size, device=device).repeat_interleave(len(scales)) for size in sizes])
    nothing = torch.zeros_like(stride)
    return Points(
        tuple(size * len(scales) for size in sizes), (place + 0.5) * stride, stride, nothing, nothing + torch.inf, level
    )


def decoded(codes: Tensor, anchors: Tensor) -> Tensor:
    """(..., N, 2) boxes from codes (shift of the centre, growth) beside the anchors."""
    length = anchors[:, 1] - anchors[:, 0] + 1
    centre = (anchors[:, 0] + anchors[:, 1]) / 2 + codes[..., 0] / CENTRE_UNIT * length
    half = (length * (codes[..., 1] / LENGTH_UNIT).clamp(max=MOST_LOG).exp() - 1) / 2
    return torch.stack([centre - half, centre + half], -1)
