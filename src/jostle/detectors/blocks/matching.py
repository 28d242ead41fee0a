"""Which box answers for which action, by how much they overlap."""

from __future__ import annotations

import torch
from torch import Tensor

from jostle.detectors.blocks.assignment import Actions


def overlaps(boxes: Tensor, actions: Actions) -> Tensor:
    """(B, N, M) IoU of boxes and actions, of which the boxes alone count their last step; -1 for absent actions."""
    start, end = (boxes[..., i, None] for i in (0, 1))
    first, last = (actions.segments[:, None, :, i] for i in (0, 1))
    inter = (torch.minimum(end, last) - torch.maximum(start, first)).clamp(min=0)
    iou = inter / ((end - start + 1) + (last - first) - inter)
    return iou.masked_fill(~actions.present[:, None], -1.0)


@torch.no_grad()
def match(boxes: Tensor, actions: Actions, *, threshold: float, released_faults: bool = False) -> tuple[Tensor, Tensor]:
    """(B, N) which boxes answer for an action, and (B, N) the number of the action each overlaps most.

    A box answers if it overlaps by `threshold`, or if no other box overlaps some action more than it does.

    Args:
        released_faults: as the released program, which for an action that no box overlaps takes every box for the one
            that overlaps it most, and labels each by whatever it overlaps otherwise.
    """
    iou = overlaps(boxes, actions)
    best, action = iou.max(-1)
    most = iou.amax(1, keepdim=True)  # (B, 1, M) of each action
    chosen = (iou == most) & actions.present[:, None]
    if not released_faults:
        chosen &= most > 0
    return (best >= threshold) | chosen.any(-1), action
