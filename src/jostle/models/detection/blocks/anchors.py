"""Anchors in time, and boxes encoded relative to them.

A box counts its last step: it is end - start + 1 long.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from jostle.models.detection.blocks.pyramid import Points

CENTRE_UNIT, LENGTH_UNIT = 10.0, 5.0  # codes are so many times finer than lengths of the anchor, and than its logarithm
MOST_LOG = math.log(62.5)  # an anchor grows by no more than this


def make_anchors(sizes: Sequence[int], scales: Sequence[float], finest: int) -> Tensor:
    """Return (N, 2) start and end of every anchor, level after level, the finest first; place by place within a level.

    Args:
        sizes: places of each level; neighbours are `finest`, twice as many, ... steps apart.
        scales: lengths of the anchors at a place, in strides of its level.

    >>> make_anchors([2], [1, 1.5], 4).tolist()
    [[0.5, 3.5], [-0.5, 4.5], [4.5, 7.5], [3.5, 8.5]]
    """
    anchors = []
    for level, size in enumerate(sizes):
        stride = finest * 2**level
        for place, scale in itertools.product(range(size), scales):
            centre, half = place * stride + stride / 2, (stride * scale - 1) / 2
            anchors.append((centre - half, centre + half))
    return torch.tensor(anchors)


def anchor_points(sizes: Sequence[int], scales: Sequence[float], finest: int, device: torch.device) -> Points:
    """Return the centres of the anchors, in the order of `make_anchors`."""
    level = torch.cat([torch.full((size * len(scales),), i, device=device) for i, size in enumerate(sizes)])
    stride = finest * (2**level).float()
    place = torch.cat([torch.arange(size, device=device).repeat_interleave(len(scales)) for size in sizes])
    nothing = torch.zeros_like(stride)
    return Points(
        tuple(size * len(scales) for size in sizes), (place + 0.5) * stride, stride, nothing, nothing + torch.inf, level
    )


def decode_boxes(codes: Tensor, anchors: Tensor) -> Tensor:
    """Return (..., N, 2) boxes from codes (shift of the centre, growth) beside the anchors."""
    length = anchors[:, 1] - anchors[:, 0] + 1
    centre = (anchors[:, 0] + anchors[:, 1]) / 2 + codes[..., 0] / CENTRE_UNIT * length
    half = (length * (codes[..., 1] / LENGTH_UNIT).clamp(max=MOST_LOG).exp() - 1) / 2
    return torch.stack([centre - half, centre + half], -1)


GROUPS = 32  # of the norms in the towers
LAYERS = 4  # of a tower


class AnchorHead(nn.Module):
    """Head that predicts class logits and a box for every anchor; all levels share its towers."""

    def __init__(self, dim: int, anchors: int, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs

        def tower() -> nn.Sequential:
            layers = ([nn.Conv1d(dim, dim, 3, padding=1), nn.GroupNorm(GROUPS, dim), nn.ReLU()] for _ in range(LAYERS))
            return nn.Sequential(*(part for layer in layers for part in layer))

        self.cls_tower = tower()
        self.bbox_tower = tower()
        self.cls_logits = nn.Conv1d(dim, anchors * outputs, 3, padding=1)
        self.bbox_pred = nn.Conv1d(dim, anchors * 2, 3, padding=1)

    def forward(self, pyramid: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return (B, N, outputs) logits and (B, N, 2) codes, place by place within a level."""
        logits = [self.cls_logits(self.cls_tower(x)) for x in pyramid]
        codes = [self.bbox_pred(self.bbox_tower(x)) for x in pyramid]
        return _by_anchor(logits, self.outputs), _by_anchor(codes, 2)


def _by_anchor(levels: list[Tensor], width: int) -> Tensor:
    return torch.cat([x.transpose(1, 2).reshape(len(x), -1, width) for x in levels], 1).float()
