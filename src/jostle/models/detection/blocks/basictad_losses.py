"""BasicTAD's losses: of anchors, of points with sigmoid, of points with softmax. Each is (classes, ends)."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.blocks.centred_anchors import answering, decoded
from jostle.models.detection.blocks.losses import centre_distance_iou, focal
from jostle.models.detection.blocks.stride_points import PointAnswers

WEIGHT = 0.75  # of every class with softmax, background too
LIKELIER = 1e-6  # added to probabilities there

Counted = Callable[[Tensor], Tensor]  # a number of this batch, over all processes that share it


def anchor_losses(
    logits: Tensor, codes: Tensor, anchors: Tensor, actions: Actions, counted: Counted
) -> tuple[Tensor, Tensor, Tensor]:
    """Both losses over the number of positives, of which each video counts one at least; and that of positives."""
    number, ignored = answering(anchors, actions)
    positive, of = number >= 0, number.clamp(min=0)
    share = counted(positive.sum(-1).clamp(min=1).sum())
    each = focal(logits, _one_hot(actions.labels.gather(-1, of), positive, logits.shape[-1])).sum(-1)
    goal = actions.segments.gather(1, of[..., None].expand(-1, -1, 2))
    apart = centre_distance_iou(decoded(codes, anchors)[positive], goal[positive])
    return torch.where(ignored, 0.0, each).sum() / share, apart.sum() / share, positive.sum()


def sigmoid_losses(logits: Tensor, offsets: Tensor, wanted: PointAnswers, counted: Counted) -> tuple[Tensor, Tensor]:
    """Both losses over the number of positives in the batch."""
    positive = wanted.positive
    share = counted(positive.sum()).clamp(min=1)
    each = focal(logits, _one_hot(wanted.labels, positive, logits.shape[-1])).sum(-1)
    apart = centre_distance_iou(_around(offsets[positive]), _around(wanted.offsets[positive]))
    return torch.where(wanted.ignored, 0.0, each).sum() / share, apart.sum() / share


def softmax_losses(logits: Tensor, offsets: Tensor, wanted: PointAnswers) -> tuple[Tensor, Tensor]:
    """The means over the points of each video, averaged; background comes first among the logits."""
    each = softmax_focal(logits, wanted.labels + 1)
    positive = wanted.positive
    apart = centre_distance_iou(_around(offsets[positive]), _around(wanted.offsets[positive]), slack="cover")
    every = torch.zeros_like(each).masked_scatter(positive, apart)
    return _mean_within(each, ~wanted.ignored).mean(), _mean_within(every, positive).mean()


def softmax_focal(logits: Tensor, labels: Tensor) -> Tensor:
    """Element by element, of classes of which background is 0; labels below it are taken for background."""
    likely = (logits.softmax(-1) + LIKELIER).gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    return -WEIGHT * (1 - likely).square() * likely.log()


def _around(offsets: Tensor) -> Tensor:
    """Segments about 0 from distances to start and end."""
    return torch.stack([-offsets[..., 0], offsets[..., 1]], -1)


def _one_hot(labels: Tensor, positive: Tensor, classes: int) -> Tensor:
    return F.one_hot(labels.clamp(min=0), classes) * positive[..., None].float()


def _mean_within(each: Tensor, within: Tensor) -> Tensor:
    """(B,) the mean over the points of a clip that count, 0 where none does."""
    return torch.where(within, each, 0.0).sum(-1) / within.sum(-1).clamp(min=1)
