"""Losses of the detectors, and the assignment of actions to points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from jostle.errors import BadValue
from jostle.models.detection.blocks.pyramid import Points

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


SAME_LENGTH = 1e-3  # actions whose lengths differ by less than this share a point


@dataclass(frozen=True)
class Actions:
    """Actions of a batch of videos on the feature grid, padded to a table."""

    segments: Tensor  # (B, M, 2) start and end in grid steps; a start may lie a little before 0
    labels: Tensor  # (B, M) class numbers
    present: Tensor  # (B, M) whether the row is an action

    @classmethod
    def of(cls, videos: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]], device: torch.device | str = "cpu") -> Actions:
        """Build the table from (segments, labels) of each video; a video may have none.

        >>> actions = Actions.of([([[0.0, 4.0]], [2]), ([], [])])
        >>> actions.segments.shape, actions.present.tolist()
        (torch.Size([2, 1, 2]), [[True], [False]])
        """
        most = max((len(np.atleast_1d(np.asarray(labels))) for _, labels in videos), default=0)
        segments = np.zeros((len(videos), max(most, 1), 2), np.float32)
        classes = np.zeros(segments.shape[:2], np.int64)
        present = np.zeros(segments.shape[:2], np.bool_)
        for i, (pairs, labels) in enumerate(videos):
            rows = np.asarray(pairs, np.float32).reshape(-1, 2)
            names = np.asarray(labels, np.int64).reshape(-1)
            if len(rows) != len(names):
                raise BadValue(f"video {i} of the batch has {len(rows)} segments and {len(names)} labels")
            segments[i, : len(rows)], classes[i, : len(rows)], present[i, : len(rows)] = rows, names, True
        return cls(*(torch.from_numpy(x).to(device) for x in (segments, classes, present)))


@dataclass(frozen=True)
class Targets:
    """Training targets of the points."""

    classes: Tensor  # (B, N, K) 1 for each class the point answers for
    offsets: Tensor  # (B, N, 2) distances to start and end in strides; meaningful at positives
    positive: Tensor  # (B, N) points that answer for an action
    action: Tensor  # (B, N) the action that `offsets` lead to; the first of the video where a point answers for none


def assign(points: Points, actions: Actions, mask: Tensor, *, classes: int, radius: float | None) -> Targets:
    """Assign targets by centre sampling: each point takes the shortest action it may be assigned to.

    A point may answer for an action if it lies strictly inside it, within `radius` strides of its centre, and the
    distance to its far end belongs to the point's level. Actions as short as the shortest, to 1e-3, add their class.

    Args:
        mask: (B, N) valid points.
        radius: in strides; None for anywhere inside the action.
    """
    distance, inside = _distances(points, actions)  # (B, N, M, 2), (B, N, M)
    if radius is not None:
        inside = inside & _near_centre(points, actions, radius)
    far = distance.amax(-1)
    mine = inside & (far >= points.low[:, None]) & (far <= points.high[:, None])
    length = (actions.segments[..., 1] - actions.segments[..., 0])[:, None]  # (B, 1, M)
    length = torch.where(mine, length, torch.inf)
    shortest = length.argmin(-1, keepdim=True)  # the first of equals
    least = length.gather(-1, shortest)
    chosen = (length <= least + SAME_LENGTH) & length.isfinite()
    labels = F.one_hot(actions.labels, classes).to(length.dtype)  # (B, M, K)
    offsets = _take(distance, shortest) / points.stride[:, None]
    classes_at_points = (chosen.to(length.dtype) @ labels).clamp(max=1.0) * mask[..., None]
    return Targets(classes_at_points, offsets, chosen.any(-1) & mask, shortest[..., 0])


def assign_by_cost(
    points: Points, actions: Actions, mask: Tensor, *, radius: float | None, logits: Tensor, offsets: Tensor
) -> Targets:
    """Assign targets by prediction cost: each point takes the closest of the actions around it.

    TemporalMaxer's assigner, as its published settings leave it: classes and positives are those of `assign`, the
    regression target has the least focal loss plus twice the distance-IoU loss.

    Args:
        logits: (B, N, K) of the network.
        offsets: (B, N, 2) of the network, in strides.
    """
    first = assign(points, actions, mask, classes=logits.shape[-1], radius=radius)
    distance, inside = _distances(points, actions)
    distance = distance / points.stride[:, None, None]
    logits, offsets = logits.detach(), offsets.detach()
    # The focal loss against a one-hot label: all classes as negatives, but one of them as the positive.
    negative = focal(logits, torch.zeros_like(logits))  # (B, N, K)
    change = focal(logits, torch.ones_like(logits)) - negative
    picked = change.gather(-1, actions.labels[:, None].expand(-1, logits.shape[1], -1))  # (B, N, M)
    cost = negative.sum(-1, keepdim=True) + picked + 2 * distance_iou(offsets[:, :, None], distance.clamp(min=0))
    cheapest = torch.where(inside, cost, torch.inf).argmin(-1, keepdim=True)
    return Targets(first.classes, _take(distance, cheapest), first.positive, cheapest[..., 0])


def _distances(points: Points, actions: Actions) -> tuple[Tensor, Tensor]:
    """Return (B, N, M, 2) from each point to start and end of each action, and (B, N, M) where it lies inside."""
    start, end = (actions.segments[:, None, :, i] for i in (0, 1))
    position = points.position[:, None]
    distance = torch.stack([position - start, end - position], -1)
    return distance, (distance.amin(-1) > 0) & actions.present[:, None]


def _near_centre(points: Points, actions: Actions, radius: float) -> Tensor:
    centre = 0.5 * (actions.segments[..., 0] + actions.segments[..., 1])[:, None]  # (B, 1, M)
    reach = (points.stride * radius)[:, None]  # (N, 1)
    position = points.position[:, None]
    return (position > centre - reach) & (position < centre + reach)


def _take(distance: Tensor, which: Tensor) -> Tensor:
    """Return (B, N, 2) the distances to the chosen action."""
    return distance.gather(2, which[..., None].expand(-1, -1, -1, 2))[:, :, 0]


def overlaps(boxes: Tensor, actions: Actions) -> Tensor:
    """(B, N, M) IoU of boxes and actions, of which the boxes alone count their last step; -1 for absent actions."""
    start, end = (boxes[..., i, None] for i in (0, 1))
    first, last = (actions.segments[:, None, :, i] for i in (0, 1))
    inter = (torch.minimum(end, last) - torch.maximum(start, first)).clamp(min=0)
    iou = inter / ((end - start + 1) + (last - first) - inter)
    return iou.masked_fill(~actions.present[:, None], -1.0)


@torch.no_grad()
def match(boxes: Tensor, actions: Actions, *, threshold: float, reproduce_bugs: bool = False) -> tuple[Tensor, Tensor]:
    """Return (B, N) which boxes answer for an action, and (B, N) the number of the action each overlaps most.

    A box answers if it overlaps by `threshold`, or if no other box overlaps some action more than it does.

    Args:
        reproduce_bugs: as the released program, which for an action that no box overlaps takes every box for the one
            that overlaps it most, and labels each by whatever it overlaps otherwise.
    """
    iou = overlaps(boxes, actions)
    best, action = iou.max(-1)
    most = iou.amax(1, keepdim=True)  # (B, 1, M) of each action
    chosen = (iou == most) & actions.present[:, None]
    if not reproduce_bugs:
        chosen &= most > 0
    return (best >= threshold) | chosen.any(-1), action
