"""The two losses of the detectors: focal for the classes, distance-IoU for the ends."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

TINY = 1e-8  # least denominator


def focal(logits: Tensor, targets: Tensor, *, alpha: float = 0.25, gamma: float = 2.0) -> Tensor:
    r"""Sigmoid focal loss, element by element.

    $$ \alpha_t (1 - p_t)^\gamma \cdot (-\ln p_t) $$

    where p_t is the probability of the target and a share between 0 and 1 mixes both cases.
    """
    p = logits.sigmoid()
    entropy = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    p_target = p * targets + (1 - p) * (1 - targets)
    weight = alpha * targets + (1 - alpha) * (1 - targets)
    return weight * (1 - p_target) ** gamma * entropy


def iou(offsets: Tensor, target: Tensor) -> Tensor:
    """Intersection over union of segments given as (left, right) distances from one point they share, (..., 2)."""
    inter = torch.minimum(offsets, target).sum(-1)
    union = offsets.sum(-1) + target.sum(-1) - inter
    return inter / union.clamp(min=TINY)


def distance_iou(offsets: Tensor, target: Tensor) -> Tensor:
    r"""1 - IoU plus the squared distance of the centres over the length that covers both, element by element.

    >>> distance_iou(torch.tensor([1.0, 1.0]), torch.tensor([1.0, 1.0])).item()
    0.0
    """
    cover = torch.maximum(offsets, target).sum(-1)
    apart = 0.5 * ((offsets[..., 1] - offsets[..., 0]) - (target[..., 1] - target[..., 0]))
    return 1 - iou(offsets, target) + (apart / cover.clamp(min=TINY)).square()
