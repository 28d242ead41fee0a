"""Consistency loss between outputs for clean and corrupted inputs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from jostle.models.detection.blocks.assignment import Actions, Targets, iou
from jostle.models.detection.blocks.e2e_tad import overlap
from jostle.models.detection.feature_detector import FeatureDetector
from jostle.models.detection.frame_detector import FrameDetector
from jostle.models.detection.outputs import Outputs
from jostle.training.detection_config import ConsistencyConfig
from jostle.training.loss import divergences


def consistency_loss(
    detector: FeatureDetector[Any], clean: Outputs, corrupted: Outputs, actions: Actions, config: ConsistencyConfig
) -> Tensor:
    """Return the unweighted loss for a batch of clean and corrupted outputs."""
    actions = detector.place_actions(clean, actions)
    if config.form == "paper":
        p, q = (_nearest_overlaps(detector, outputs, actions, config) for outputs in (clean, corrupted))
        return rank_divergence(p, q, config)
    p, q = (_localization_errors(detector, outputs, actions, config) for outputs in (clean, corrupted))
    return divergences[config.divergence](p, q, config.epsilon)


def select_points(
    detector: FeatureDetector[Any], outputs: Outputs, actions: Actions, config: ConsistencyConfig
) -> tuple[tuple[Tensor, Tensor, Tensor], Targets]:
    """Return (video, point, class) of what the released form compares, and the targets there."""
    radius = detector.config.sampling_radius if config.selection == "centre" else None
    targets = detector.assign(outputs, actions, radius=radius)
    if config.selection != "video":
        answered = targets.positive[..., None] & (targets.classes > 0)
        if outputs.offsets.dim() == 3:  # one pair of offsets a point, whatever its class: each point once
            answered = answered & (answered.cumsum(-1) == 1)
        return answered.nonzero(as_tuple=True), targets  # type: ignore[return-value]
    covered = targets.offsets.amin(-1) >= 0
    present = actions.present.any(-1, keepdim=True)
    if config.reproduce_bugs:
        video, point = (covered & present).nonzero(as_tuple=True)
        return (video, point, torch.zeros_like(video)), targets
    video, point = (covered & present & outputs.mask).nonzero(as_tuple=True)
    label = actions.labels.gather(1, targets.action)[video, point]
    return (video, point, label), targets


def _localization_errors(
    detector: FeatureDetector[Any], outputs: Outputs, actions: Actions, config: ConsistencyConfig
) -> Tensor:
    """Return (n,) 1 - tIoU of predictions and targets at the selected points."""
    (video, point, label), targets = select_points(detector, outputs, actions, config)
    offsets = detector.offsets_at(outputs, video, point, label).float()
    return 1 - iou(offsets, targets.offsets[video, point])


def rank_divergence(clean: Tensor, corrupted: Tensor, config: ConsistencyConfig) -> Tensor:
    """Return the mean divergence of the overlaps (actions, K) of the nearest predictions, by rank."""
    p, q = (_distribution(side, config) for side in (clean, corrupted))
    divergence = divergences[config.divergence]
    total = divergence(p, q, config.epsilon)
    return total if divergence.is_mean else total / max(len(clean), 1)


def _distribution(values: Tensor, config: ConsistencyConfig) -> Tensor:
    if config.normalise == "softmax":
        return values.softmax(-1)
    if config.normalise == "sum":
        return (values + config.epsilon) / (values + config.epsilon).sum(-1, keepdim=True)
    return values


def _nearest_overlaps(
    detector: FeatureDetector[Any], outputs: Outputs, actions: Actions, config: ConsistencyConfig
) -> Tensor:
    """Return (actions, K) tIoU of each action with the nearest predictions of its class, by centre."""
    video, number = actions.present.nonzero(as_tuple=True)
    label, truth = actions.labels[video, number], actions.segments[video, number]
    if not len(video):
        return outputs.logits.new_zeros((0, config.nearest))
    valid = outputs.mask[video]  # (actions, points)
    width = min(config.nearest, int(valid.sum(1).min()))  # a video shorter than K has fewer predictions
    with torch.no_grad():  # which are nearest is a choice; gradients go through the chosen ones only
        everywhere = torch.arange(valid.shape[1], device=valid.device).expand(len(video), -1)
        segments = _segments_at(detector, outputs, video, everywhere, label)
        distance = (segments.mean(-1) - truth.mean(-1, keepdim=True)).abs().masked_fill(~valid, torch.inf)
        near = distance.topk(width, largest=False).indices
    return overlap(_segments_at(detector, outputs, video, near, label), truth[:, None])


def _segments_at(
    detector: FeatureDetector[Any], outputs: Outputs, video: Tensor, point: Tensor, label: Tensor
) -> Tensor:
    """Return (n, P, 2) start and end predicted at P points of n videos, each for a class."""
    rows = point.shape[1]
    flat = point.flatten()
    offsets = detector.offsets_at(outputs, video.repeat_interleave(rows), flat, label.repeat_interleave(rows)).float()
    offsets = offsets * outputs.points.stride[flat, None]
    position = outputs.points.position[flat]
    return torch.stack([position - offsets[:, 0], position + offsets[:, 1]], -1).view(*point.shape, 2)


def clip_consistency(
    detector: FrameDetector[Any], clean: Any, corrupted: Any, actions: Actions, config: ConsistencyConfig
) -> Tensor:
    """Return the unweighted loss for clips with clean and corrupted outputs.

    The clean outputs determine which prediction is responsible for an action, as queries are matched anew in each.
    """
    sides = [detector.output_segments(outputs).float() for outputs in (clean, corrupted)]
    if config.form == "paper":
        one, other = (_nearest_prediction_overlaps(segments, actions, config.nearest) for segments in sides)
        return rank_divergence(one, other, config)
    with torch.no_grad():
        positive, action = detector.match_actions(clean, actions)
    truth = actions.segments.gather(1, action[..., None].expand(-1, -1, 2))[positive]
    p, q = (1 - overlap(segments[positive], truth) for segments in sides)
    return divergences[config.divergence](p, q, config.epsilon)


def _nearest_prediction_overlaps(predictions: Tensor, actions: Actions, nearest: int) -> Tensor:
    """Return (actions, K) tIoU of each action with the segments of the nearest centres."""
    video, number = actions.present.nonzero(as_tuple=True)
    truth = actions.segments[video, number][:, None]
    candidates = predictions[video]  # (actions, N, 2)
    with torch.no_grad():  # which are nearest is a choice; gradients go through the chosen ones only
        near = (
            (candidates.mean(-1) - truth.mean(-1)).abs().topk(min(nearest, candidates.shape[1]), largest=False).indices
        )
    return overlap(candidates.gather(1, near[..., None].expand(-1, -1, 2)), truth)
