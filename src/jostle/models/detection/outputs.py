"""Raw outputs of detectors, their losses and candidates, and decoding: boundaries, suppression, seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.core.types.segments import Segments
from jostle.errors import BadValue
from jostle.models.detection.blocks.pyramid import Points
from jostle.models.detection.config import DetectorConfig, PointConfig
from jostle.models.detection.nms import soft_nms, vote


@dataclass(frozen=True)
class Outputs:
    """Raw outputs at the points of all levels, one level after the other."""

    points: Points  # where they are; `points.sizes` cuts the columns below into levels
    mask: Tensor  # (B, N) points inside their video
    logits: Tensor  # (B, N, K) before the sigmoid
    # what the regression tower says: (B, N, 2) distances to start and end in strides; of TriDet (B, N, 2, bins + 1)
    # bins, which `offsets_at` turns into distances
    offsets: Tensor
    padded: tuple[int, ...]  # points of each level in the original's padded sequence


@dataclass(frozen=True)
class Losses:
    """Losses of a batch; detectors of points divide each by the running number of positives."""

    total: Tensor  # what to descend: the terms, each by its weight
    classification: Tensor  # of the classes; focal loss over valid points where detectors answer at points
    regression: Tensor  # of the ends; distance-IoU loss over positives there
    positives: Tensor  # how many points answered for an action
    others: Mapping[str, Tensor] = field(default_factory=dict)  # further terms by name, unweighted


@dataclass(frozen=True)
class Candidates:
    """Segments of one video before suppression, on the feature grid, level after level, each by falling score."""

    segments: npt.NDArray[np.float32]  # (n, 2) start and end
    scores: npt.NDArray[np.float32]  # (n,) probabilities
    labels: npt.NDArray[np.int64]  # (n,) class numbers

    def __len__(self) -> int:
        return len(self.scores)

    @classmethod
    def of(cls, *columns: Tensor) -> Candidates:
        """Create them from tensors on any device."""
        return cls(*(column.cpu().numpy() for column in columns))

    @classmethod
    def join(cls, parts: Sequence[Candidates]) -> Candidates:
        """Return those of all parts, one after the other."""
        return cls(*(np.concatenate(column) for column in zip(*(part.columns for part in parts), strict=True)))

    @property
    def columns(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Segments, scores and labels."""
        return self.segments, self.scores, self.labels

    def take(self, rows: npt.NDArray[np.int64] | slice) -> Candidates:
        """Return some of them, in this order."""
        return Candidates(self.segments[rows], self.scores[rows], self.labels[rows])

    def moved(self, by: int) -> Candidates:
        """Return them with segments moved by steps."""
        return Candidates(self.segments + np.float32(by), self.scores, self.labels)


def likely_candidates(segments: Tensor, likely: Tensor, least: float) -> list[Candidates]:
    """Return the segments (B, N, 2) of each video with the classes whose probability (B, N, K) is above `least`."""
    candidates = []
    for own, probability in zip(segments, likely, strict=True):
        row, label = (probability > least).nonzero(as_tuple=True)
        candidates.append(Candidates.of(own[row], probability[row, label], label))
    return candidates


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
        *candidates.columns,
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
