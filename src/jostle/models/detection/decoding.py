"""Decoding of raw outputs: candidates, their boundaries, then suppression."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.core.types.segments import Segments
from jostle.errors import BadValue
from jostle.models.detection.config import DetectorConfig, PointConfig
from jostle.models.detection.nms import soft_nms, vote
from jostle.models.detection.outputs import Candidates, Outputs

OffsetsAt = Callable[[Outputs, Tensor, Tensor, Tensor], Tensor]


def find_candidates(outputs: Outputs, config: PointConfig, offsets_at: OffsetsAt) -> list[Candidates]:
    """Select the likeliest (point, class) pairs of each video, and decode only their boundaries.

    Args:
        offsets_at: (n, 2) distances in strides from the outputs, at videos, points and classes of n each.
    """
    probability = outputs.logits.float().sigmoid() * outputs.mask[..., None]
    video, point, label = (probability > config.min_probability).nonzero(as_tuple=True)  # level after level
    score = probability[video, point, label]
    level = outputs.points.level[point]
    group = video if config.opentad else video * len(outputs.points.sizes) + level
    order = score.argsort(descending=True, stable=True)
    order = order[group[order].argsort(stable=True)]  # by group, and within each by falling score
    group = group[order]
    rank = torch.arange(len(group), device=group.device) - torch.searchsorted(group, group)
    order = order[rank < config.top_candidates]
    video, point, label, score = video[order], point[order], label[order], score[order]

    offsets = offsets_at(outputs, video, point, label).float()
    position, stride = outputs.points.position[point], outputs.points.stride[point]
    segments = torch.stack([position - offsets[:, 0] * stride, position + offsets[:, 1] * stride], -1)
    if not config.opentad:
        long = segments[:, 1] - segments[:, 0] > config.min_duration
        video, label, score, segments = video[long], label[long], score[long], segments[long]
    ends = torch.searchsorted(video, torch.arange(len(outputs.mask), device=video.device), right=True).tolist()
    row = (segments.cpu().numpy(), score.cpu().numpy(), label.cpu().numpy())
    cuts = [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    return [Candidates(*(column[cut] for column in row)) for cut in cuts]


def suppress(candidates: Candidates, config: PointConfig) -> Candidates:
    """Apply soft-NMS and, without class separation, voting; return segments by falling score."""
    segments, scores, labels = soft_nms(
        candidates.segments,
        candidates.scores,
        candidates.labels,
        sigma=config.sigma,
        min_score=config.min_score,
        max_segments=config.max_segments,
        multiclass=config.multiclass,
    )
    if config.vote_threshold > 0 and not config.multiclass and len(segments):
        segments = vote(
            segments, candidates.segments, candidates.scores, threshold=config.vote_threshold, weight=config.vote_weight
        )
    return Candidates(segments, scores, labels)


def in_seconds(
    candidates: Candidates, *, fps: float, duration: float, stride: float, window: float, classes: tuple[str, ...]
) -> Segments:
    """Convert segments to seconds inside the video: step g is at (g stride + window / 2) / fps."""
    seconds = (candidates.segments.astype(np.float64) * stride + 0.5 * window) / fps
    seconds = seconds.clip(0.0, duration)
    valid = seconds[:, 0] < seconds[:, 1]  # what lay outside the video has no length left
    scores = candidates.scores[valid].astype(np.float64)
    return Segments(seconds[valid, 0], seconds[valid, 1], candidates.labels[valid], scores, classes)


def with_video_scores(candidates: Candidates, scores: npt.ArrayLike, config: DetectorConfig) -> Candidates:
    """Assign proposals the likeliest classes of the whole video, by an external classifier.

    Every proposal is copied to each of the best `video_classes`; its score becomes the root of the product (OpenTAD,
    VSGN and AFSD: the product).

    Args:
        scores: (classes,) of the video, in the order of the labels. They need not sum to one.
    """
    values = np.asarray(scores, np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all() or (values < 0).any():
        raise BadValue(
            f"video_scores must be one finite number from 0 for each class, got an array of shape {values.shape}"
        )
    best = np.argsort(-values, kind="stable")[: config.video_classes]
    product = values[best][:, None] * candidates.scores.astype(np.float64)[None]  # (best, n)
    mixed = (product if config.multiplies else np.sqrt(product)).reshape(-1)
    labels = np.repeat(best, len(candidates))
    order = np.argsort(-mixed, kind="stable")
    segments = np.tile(candidates.segments, (len(best), 1))
    return Candidates(segments[order], mixed[order].astype(np.float32), labels[order].astype(np.int64))
