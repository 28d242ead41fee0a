"""Losses of the detectors: classes, boundaries and curves."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

TINY = 1e-8  # least denominator
MILLIONTH = 1e-6  # added to denominators of the distance-IoU of segments
SLIGHT = 1e-7  # added to denominators of the generalised IoU


def focal(logits: Tensor, targets: Tensor, *, alpha: float = 0.25, gamma: float = 2.0) -> Tensor:
    r"""Compute the elementwise sigmoid focal loss.

    $$ \alpha_t (1 - p_t)^\gamma \cdot (-\ln p_t) $$

    where p_t is the probability of the target and a share between 0 and 1 mixes both cases.
    """
    p = logits.sigmoid()
    entropy = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    p_target = p * targets + (1 - p) * (1 - targets)
    weight = alpha * targets + (1 - alpha) * (1 - targets)
    return weight * (1 - p_target) ** gamma * entropy


def iou(offsets: Tensor, target: Tensor) -> Tensor:
    """Compute the IoU of segments given as (left, right) distances from a common point, (..., 2)."""
    inter = torch.minimum(offsets, target).sum(-1)
    union = offsets.sum(-1) + target.sum(-1) - inter
    return inter / union.clamp(min=TINY)


def distance_iou(offsets: Tensor, target: Tensor) -> Tensor:
    r"""Compute the elementwise distance-IoU loss: 1 - IoU plus the normalised squared centre distance.

    >>> distance_iou(torch.tensor([1.0, 1.0]), torch.tensor([1.0, 1.0])).item()
    0.0
    """
    cover = torch.maximum(offsets, target).sum(-1)
    apart = 0.5 * ((offsets[..., 1] - offsets[..., 0]) - (target[..., 1] - target[..., 0]))
    return 1 - iou(offsets, target) + (apart / cover.clamp(min=TINY)).square()


def centre_distance_iou(segments: Tensor, target: Tensor, *, slack: Literal["square", "cover"] = "square") -> Tensor:
    """Compute `distance_iou` of segments given by start and end (..., 2), with BasicTAD's slack.

    Args:
        slack: what a millionth is added to below the squared distance: the `square` of the length that covers both, or
            that length, the `cover`, itself.

    >>> centre_distance_iou(torch.tensor([0.0, 2.0]), torch.tensor([2.0, 4.0])).item()
    1.25
    """
    start, end = segments[..., 0], segments[..., 1]
    first, last = target[..., 0], target[..., 1]
    inter = (torch.minimum(end, last) - torch.maximum(start, first)).clamp(min=0)
    union = (end - start) + (last - first) - inter
    cover = torch.maximum(end, last) - torch.minimum(start, first)
    below = cover.square() + MILLIONTH if slack == "square" else (cover + MILLIONTH).square()
    apart = (start + end - first - last) / 2
    return 1 - inter / (union + MILLIONTH) + apart.square() / below


def generalised_iou(boxes: Tensor, target: Tensor) -> Tensor:
    """Compute the elementwise generalised-IoU loss; ends (..., 2) may be in any order.

    >>> generalised_iou(torch.tensor([4.0, 0.0]), torch.tensor([0.0, 4.0])).abs().item() < 1e-6
    True
    """
    start, end = boxes.amin(-1), boxes.amax(-1)
    first, last = target[..., 0], target[..., 1]
    inter = (torch.minimum(end, last) - torch.maximum(start, first)).clamp(min=0)
    union = (end - start) + (last - first) - inter
    cover = torch.maximum(end, last) - torch.minimum(start, first)
    return 1 - inter / (union + SLIGHT) + (cover - union) / (cover + SLIGHT)


def mean_of_both(each: Tensor, positive: Tensor, counts: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the mean over positives and the mean over the others, each 0 where there are none.

    Args:
        counts: how many of each there are, in all processes that share the batch.
    """
    yes, no = (count.clamp(min=1) for count in counts)
    return torch.where(positive, each, 0.0).sum() / yes, torch.where(positive, 0.0, each).sum() / no
