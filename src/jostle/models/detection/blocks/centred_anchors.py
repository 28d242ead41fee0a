"""Anchors around the steps of a pyramid, their codes, and the assignment of actions to them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from jostle.models.detection.blocks.assignment import Actions

OCTAVE = 2.0  # strides that the shortest anchor of a step is long; the longest falls just short of twice that
AT_A_STEP = 5
POSITIVE, NEGATIVE = 0.6, 0.4  # IoU from which an anchor answers for an action, and below which for none


def make_anchors(sizes: Sequence[int], finest: int) -> Tensor:
    """Return the (N, 2) start and end of every anchor in frames, by level, step and length.

    Args:
        sizes: steps of each level; neighbours are `finest`, twice as many, ... frames apart.

    >>> make_anchors([2], 1)[[0, 5]].tolist()
    [[-1.0, 1.0], [0.0, 2.0]]
    """
    half = OCTAVE / 2 * 2 ** (torch.arange(AT_A_STEP, dtype=torch.float64) / AT_A_STEP)
    anchors = []
    for level, size in enumerate(sizes):
        stride = finest * 2**level
        centre = torch.arange(size, dtype=torch.float64)[:, None] * stride
        anchors.append(torch.stack([centre - half * stride, centre + half * stride], -1).reshape(-1, 2))
    return torch.cat(anchors).float()


def decode_segments(codes: Tensor, anchors: Tensor) -> Tensor:
    """Decode (..., N, 2) segments from codes (shift in anchor lengths, log growth)."""
    length = anchors[:, 1] - anchors[:, 0]
    centre = (anchors[:, 0] + anchors[:, 1]) / 2 + codes[..., 0] * length
    half = length * codes[..., 1].exp() / 2
    return torch.stack([centre - half, centre + half], -1)


def overlaps(anchors: Tensor, actions: Actions) -> Tensor:
    """Return (B, N, M) IoU of anchors and actions; -1 for absent actions."""
    start, end = (anchors[:, i, None] for i in (0, 1))
    first, last = (actions.segments[:, None, :, i] for i in (0, 1))
    inter = (torch.minimum(end, last) - torch.maximum(start, first)).clamp(min=0)
    union = (end - start) + (last - first) - inter
    return (inter / union.clamp(min=1e-6)).masked_fill(~actions.present[:, None], -1.0)


@torch.no_grad()
def match_anchors(anchors: Tensor, actions: Actions) -> tuple[Tensor, Tensor]:
    """Return (B, N) the index of each anchor's action, -1 for none, and (B, N) whether it is ignored.

    An anchor answers for the action that it overlaps most, by `POSITIVE` at least. Then each action in its turn takes
    the anchors that overlap it most of all, by however little.
    """
    iou = overlaps(anchors, actions)
    best, action = iou.max(-1)
    number = torch.where(best >= POSITIVE, action, -1)
    ignored = (best >= NEGATIVE) & (best < POSITIVE)
    most = iou.amax(1, keepdim=True)  # (B, 1, M) of each action
    chosen = (iou == most) & (most > 0)
    later = torch.arange(iou.shape[-1], device=iou.device).expand_as(iou).masked_fill(~chosen, -1).amax(-1)
    claimed = later >= 0
    return torch.where(claimed, later, number), ignored & ~claimed
