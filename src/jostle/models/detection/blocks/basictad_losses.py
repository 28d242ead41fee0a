"""Losses of BasicTAD, each (classes, boundaries): for anchors, sigmoid points and softmax points."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.blocks.centred_anchors import decode_segments, match_anchors
from jostle.models.detection.blocks.losses import centre_distance_iou, focal
from jostle.models.detection.blocks.stride_points import PointAnswers

WEIGHT = 0.75  # of every class with softmax, background too
LIKELIER = 1e-6  # added to probabilities there

Counted = Callable[[Tensor], Tensor]  # a number of this batch, over all processes that share it


def anchor_losses(
    logits: Tensor, codes: Tensor, anchors: Tensor, actions: Actions, counted: Counted
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute both losses over the number of positives (at least one per video), and that number."""
    number, ignored = match_anchors(anchors, actions)
    positive, of = number >= 0, number.clamp(min=0)
    share = counted(positive.sum(-1).clamp(min=1).sum())
    each = focal(logits, _one_hot(actions.labels.gather(-1, of), positive, logits.shape[-1])).sum(-1)
    goal = actions.segments.gather(1, of[..., None].expand(-1, -1, 2))
    apart = centre_distance_iou(decode_segments(codes, anchors)[positive], goal[positive])
    return torch.where(ignored, 0.0, each).sum() / share, apart.sum() / share, positive.sum()


def sigmoid_losses(logits: Tensor, offsets: Tensor, targets: PointAnswers, counted: Counted) -> tuple[Tensor, Tensor]:
    """Compute both losses over the number of positives in the batch."""
    positive = targets.positive
    share = counted(positive.sum()).clamp(min=1)
    each = focal(logits, _one_hot(targets.labels, positive, logits.shape[-1])).sum(-1)
    apart = centre_distance_iou(_around(offsets[positive]), _around(targets.offsets[positive]))
    return torch.where(targets.ignored, 0.0, each).sum() / share, apart.sum() / share


def softmax_losses(logits: Tensor, offsets: Tensor, targets: PointAnswers) -> tuple[Tensor, Tensor]:
    """Compute both losses as means per video, averaged; background is the first logit."""
    each = softmax_focal(logits, targets.labels + 1)
    positive = targets.positive
    apart = centre_distance_iou(_around(offsets[positive]), _around(targets.offsets[positive]), slack="cover")
    every = torch.zeros_like(each).masked_scatter(positive, apart)
    return _mean_within(each, ~targets.ignored).mean(), _mean_within(every, positive).mean()


def softmax_focal(logits: Tensor, labels: Tensor) -> Tensor:
    """Compute the elementwise softmax focal loss; class 0 and labels below it are background."""
    likely = (logits.softmax(-1) + LIKELIER).gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    return -WEIGHT * (1 - likely).square() * likely.log()


def _around(offsets: Tensor) -> Tensor:
    """Convert distances to start and end into segments around 0."""
    return torch.stack([-offsets[..., 0], offsets[..., 1]], -1)


def _one_hot(labels: Tensor, positive: Tensor, classes: int) -> Tensor:
    return F.one_hot(labels.clamp(min=0), classes) * positive[..., None].float()


def _mean_within(each: Tensor, within: Tensor) -> Tensor:
    """Return (B,) the mean over the points of a clip that count, 0 where none does."""
    return torch.where(within, each, 0.0).sum(-1) / within.sum(-1).clamp(min=1)
