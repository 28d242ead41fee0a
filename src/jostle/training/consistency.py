"""The settings of the consistency loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from jostle.errors import BadValue
from jostle.models.detection.blocks.assignment import Actions, Targets
from jostle.models.detection.blocks.losses import iou
from jostle.models.detection.feature_detector import FeatureDetector
from jostle.models.detection.frame_detector import FrameDetector
from jostle.models.detection.outputs import Outputs

Form = Literal["released", "paper"]
Selection = Literal["centre", "action", "video"]
Divergence = Literal["js", "kl", "mse"]


@dataclass(frozen=True)
class ConsistencyConfig:
    """Which consistency, and how much of it.

    Attributes:
        form: `released` compares 1 - tIoU point by point at the positives; `paper` compares the tIoU of the `nearest`
            predictions of each action, chosen separately on both sides.
        selection: points of the released form: near the `centre` of an action as the detector's own targets,
            anywhere in the `action`, or in the whole `video` wherever the action that a point refers to covers it.
        divergence: `js` as in the paper, or its alternatives `kl` and `mse`.
        weight: of the term in the loss.
        nearest: K of the paper's form, which the paper does not give.
        normalise: how the K values of the paper's form become a distribution: divided by their `sum`, by `softmax`, or
            `none`. The paper does not say.
        epsilon: values are kept above it, so that no logarithm is infinite; the released program has none.
        released_faults: repeat three faults of the released program: TriDet's targets lose their centre radius under
            `centre` and `video`, its `video` reads the offsets of class 0 and counts padding, and the running number
            of positives moves twice a step.
    """

    form: Form = "released"
    selection: Selection = "centre"
    divergence: Divergence = "js"
    weight: float = 1.0
    nearest: int = 10
    normalise: Literal["sum", "softmax", "none"] = "sum"
    epsilon: float = 1e-6
    released_faults: bool = False

    def __post_init__(self) -> None:
        if self.nearest < 1:
            raise BadValue(f"consistency: nearest must be at least 1, got {self.nearest}")
        if not 0 < self.epsilon < 0.1:
            raise BadValue(f"consistency: epsilon lies above 0 and below 0.1, got {self.epsilon}")
        if self.weight < 0:
            raise BadValue(f"consistency: weight must not be below 0, got {self.weight}")


def consistency_loss(
    detector: FeatureDetector[Any], clean: Outputs, corrupted: Outputs, actions: Actions, config: ConsistencyConfig
) -> Tensor:
    """The unweighted term for a batch that the detector saw twice."""
    actions = detector.placed(clean, actions)
    if config.form == "paper":
        return _by_nearest(detector, clean, corrupted, actions, config)
    p, q = (_misses(detector, outputs, actions, config) for outputs in (clean, corrupted))
    return divergence(p, q, config.divergence, epsilon=config.epsilon)


def divergence(p: Tensor, q: Tensor, kind: Divergence = "js", *, epsilon: float = 1e-6) -> Tensor:
    r"""How far apart two lists of numbers are, summed over them (the mean for `mse`).

    $$ js: \sum \tfrac12 [m (\ln m - \ln p) + m (\ln m - \ln q)], m = (p + q) / 2; \quad
       kl: |\sum p (\ln p - \ln q)|; \quad mse: mean (p - q)^2 $$

    >>> round(divergence(torch.tensor([0.2]), torch.tensor([0.5])).item(), 6)
    0.035515
    """
    if kind == "mse":
        return (p - q).square().mean() if p.numel() else (p - q).sum()
    p, q = p.clamp(min=epsilon), q.clamp(min=epsilon)
    if kind == "kl":
        return (p * (p.log() - q.log())).sum().abs()
    middle = (p + q) / 2
    return (0.5 * middle * (2 * middle.log() - p.log() - q.log())).sum()


def selected(
    detector: FeatureDetector[Any], outputs: Outputs, actions: Actions, config: ConsistencyConfig
) -> tuple[tuple[Tensor, Tensor, Tensor], Targets]:
    """(video, point, class) of what the released form compares, and the targets there."""
    radius = detector.config.sampling_radius if config.selection == "centre" else None
    targets = detector.assign(outputs, actions, radius=radius)
    if config.selection != "video":
        answered = targets.positive[..., None] & (targets.classes > 0)
        if outputs.offsets.dim() == 3:  # one pair of offsets a point, whatever its class: each point once
            answered = answered & (answered.cumsum(-1) == 1)
        return answered.nonzero(as_tuple=True), targets  # type: ignore[return-value]
    covered = targets.offsets.amin(-1) >= 0
    present = actions.present.any(-1, keepdim=True)
    if config.released_faults:
        video, point = (covered & present).nonzero(as_tuple=True)
        return (video, point, torch.zeros_like(video)), targets
    video, point = (covered & present & outputs.mask).nonzero(as_tuple=True)
    label = actions.labels.gather(1, targets.action)[video, point]
    return (video, point, label), targets


def _misses(detector: FeatureDetector[Any], outputs: Outputs, actions: Actions, config: ConsistencyConfig) -> Tensor:
    """(n,) 1 - tIoU of what is predicted at the selected points with what should be."""
    (video, point, label), targets = selected(detector, outputs, actions, config)
    found = detector.offsets_at(outputs, video, point, label).float()
    return 1 - iou(found, targets.offsets[video, point])


def _by_nearest(
    detector: FeatureDetector[Any], clean: Outputs, corrupted: Outputs, actions: Actions, config: ConsistencyConfig
) -> Tensor:
    """The paper's form: for each action the tIoU of the predictions whose centres are nearest, by rank; a mean."""
    p, q = (_nearest_overlaps(detector, outputs, actions, config) for outputs in (clean, corrupted))
    return ranks_apart(p, q, config)


def ranks_apart(clean: Tensor, corrupted: Tensor, config: ConsistencyConfig) -> Tensor:
    """How far the overlaps (actions, K) of the nearest predictions are apart, rank by rank; a mean over actions."""
    p, q = (_distribution(side, config) for side in (clean, corrupted))
    total = divergence(p, q, config.divergence, epsilon=config.epsilon)
    return total if config.divergence == "mse" else total / max(len(clean), 1)


def _distribution(values: Tensor, config: ConsistencyConfig) -> Tensor:
    if config.normalise == "softmax":
        return values.softmax(-1)
    if config.normalise == "sum":
        return (values + config.epsilon) / (values + config.epsilon).sum(-1, keepdim=True)
    return values


def _nearest_overlaps(
    detector: FeatureDetector[Any], outputs: Outputs, actions: Actions, config: ConsistencyConfig
) -> Tensor:
    """(actions, K) tIoU of each action with the predictions of its class whose centres lie nearest to its own."""
    video, number = actions.present.nonzero(as_tuple=True)
    label, truth = actions.labels[video, number], actions.segments[video, number]
    if not len(video):
        return outputs.logits.new_zeros((0, config.nearest))
    valid = outputs.mask[video]  # (actions, points)
    width = min(config.nearest, int(valid.sum(1).min()))  # a video shorter than K has fewer predictions
    with torch.no_grad():  # which are nearest is a choice; gradients go through the chosen ones only
        everywhere = torch.arange(valid.shape[1], device=valid.device).expand(len(video), -1)
        found = _segments_at(detector, outputs, video, everywhere, label)
        distance = (found.mean(-1) - truth.mean(-1, keepdim=True)).abs().masked_fill(~valid, torch.inf)
        near = distance.topk(width, largest=False).indices
    return overlaps(_segments_at(detector, outputs, video, near, label), truth[:, None])


def overlaps(found: Tensor, truth: Tensor) -> Tensor:
    """(...) tIoU of segments (..., 2)."""
    (start, end), (first, last) = found.unbind(-1), truth.unbind(-1)
    inter = (torch.minimum(end, last) - torch.maximum(start, first)).clamp(min=0)
    union = (end - start) + (last - first) - inter
    return inter / union.clamp(min=1e-8)


def _segments_at(
    detector: FeatureDetector[Any], outputs: Outputs, video: Tensor, point: Tensor, label: Tensor
) -> Tensor:
    """(n, P, 2) start and end predicted at P points of n videos, each for a class."""
    rows = point.shape[1]
    flat = point.flatten()
    offsets = detector.offsets_at(outputs, video.repeat_interleave(rows), flat, label.repeat_interleave(rows)).float()
    offsets = offsets * outputs.points.stride[flat, None]
    position = outputs.points.position[flat]
    return torch.stack([position - offsets[:, 0], position + offsets[:, 1]], -1).view(*point.shape, 2)


def clip_consistency(
    detector: FrameDetector[Any], clean: Any, corrupted: Any, actions: Actions, config: ConsistencyConfig
) -> Tensor:
    """The unweighted term for clips that the detector saw twice.

    Who answers for an action is settled by the clean answers, as queries are matched anew in each.
    """
    sides = [detector.said(outputs).float() for outputs in (clean, corrupted)]
    if config.form == "paper":
        one, other = (_nearest_prediction_overlaps(said, actions, config.nearest) for said in sides)
        return ranks_apart(one, other, config)
    with torch.no_grad():
        positive, action = detector.answering(clean, actions)
    truth = actions.segments.gather(1, action[..., None].expand(-1, -1, 2))[positive]
    p, q = (1 - overlaps(said[positive], truth) for said in sides)
    return divergence(p, q, config.divergence, epsilon=config.epsilon)


def _nearest_prediction_overlaps(said: Tensor, actions: Actions, nearest: int) -> Tensor:
    """(actions, K) tIoU of each action with the segments whose centres lie nearest to its own."""
    video, number = actions.present.nonzero(as_tuple=True)
    truth = actions.segments[video, number][:, None]
    found = said[video]  # (actions, N, 2)
    with torch.no_grad():  # which are nearest is a choice; gradients go through the chosen ones only
        near = (found.mean(-1) - truth.mean(-1)).abs().topk(min(nearest, found.shape[1]), largest=False).indices
    return overlaps(found.gather(1, near[..., None].expand(-1, -1, 2)), truth)
