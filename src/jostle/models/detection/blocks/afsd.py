"""Parts of AFSD: refinement of coarse segments by features around their ends, and the self-supervised triplet loss.

Lin, Xu, Luo, et al.: "Learning Salient Boundary Feature for Anchor-free Temporal Action Localization", CVPR 2021. For
the triplet loss background is moved into an action, and the cut must resemble a boundary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.models.detection.blocks.assignment import Actions, iou
from jostle.models.detection.blocks.boundaries import boundary_max_pool
from jostle.models.detection.blocks.convolution import same


class Refinement(nn.Module):
    """Boundary feature of a coarse segment at every point of a level."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.cur_point_conv = same(dim, dim, 1)
        self.lr_conv = same(dim, 2 * dim, 1)
        self.roi_conv = same(dim, dim, 1)
        self.proposal_conv = same(4 * dim, dim, 1)

    def forward(
        self, x: Tensor, around: Tensor, regions: Tensor, *, reproduce_bugs: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Return (B, D, t) the feature, and (B, 2 D, t) what of the level starts and ends are pooled from.

        Args:
            x: (B, D, t) of the tower.
            around: (B, D, t) what was pooled from the frames.
            regions: (B, t, 4) to pool from the level.
        """
        sides = self.lr_conv(x)
        pooled = boundary_max_pool(sides, regions, reproduce_bugs=reproduce_bugs)
        return self.proposal_conv(torch.cat([self.roi_conv(around), pooled, self.cur_point_conv(x)], 1)), sides


def level_regions(offsets: Tensor, scale: float) -> Tensor:
    """Return (B, t, 4) regions around the ends of segments (B, t, 2), on the grid of the level.

    Args:
        scale: steps of the level in a frame.
    """
    left, right = (offsets.detach() * scale).unbind(-1)
    place = torch.arange(offsets.shape[1], device=offsets.device)
    return _around(place - left, place + right, left + right)


def frame_regions(segments: Tensor) -> Tensor:
    """Return (B, M, 4) around the ends of segments (B, M, 2), in frames."""
    start, end = segments.detach().unbind(-1)
    return _around(start, end, end - start + 1)


def _around(start: Tensor, end: Tensor, length: Tensor) -> Tensor:
    inner, outer = (length / 4).clamp(min=1), (length / 10).clamp(min=1)
    return torch.stack([start - outer, start + inner, end - inner, end + outer], -1).round()


Form = Literal["thumos14", "activitynet"]
# ActivityNet: an action is answered for by levels whose distances, in frames, reach its far end.
RANGES = ((0.0, 30.0), (15.0, 60.0), (30.0, 120.0), (60.0, 240.0), (96.0, 768.0), (256.0, 768.0))
SLIGHT = 1e-6  # added to probabilities within logarithms


@dataclass(frozen=True)
class CoarseToFineTargets:
    """Targets of the points (B, N); label 0 is background."""

    labels: Tensor  # (B, N) of the coarse answer
    offsets: Tensor  # (B, N, 2) distances to start and end in frames; meaningful at positives
    refined: Tensor  # (B, N) of the refined answer: background where the coarse segment is too far off
    action: Tensor  # (B, N) the row of the action that `offsets` lead to; likewise


def answers(points: Tensor, level: Tensor, coarse: Tensor, actions: Actions, form: Form) -> CoarseToFineTargets:
    """Assign each point (N,) the shortest action around it; for ActivityNet, of those its level covers.

    Args:
        points: in frames.
        coarse: (B, N, 2) distances that the network says.
    """
    start, end = (actions.segments[:, None, :, i] for i in (0, 1))  # (B, 1, M)
    distance = torch.stack([points[:, None] - start, end - points[:, None]], -1)  # (B, N, M, 2)
    mine = (distance.amin(-1) >= 0) & actions.present[:, None]
    if form == "activitynet":
        low, high = torch.tensor(RANGES, device=points.device)[level].unbind(-1)
        far = distance.amax(-1)
        mine &= (far > low[:, None]) & (far <= high[:, None])
    length = torch.where(mine, end - start, torch.inf)
    shortest = length.argmin(-1, keepdim=True)  # the first of equals
    offsets = distance.gather(2, shortest[..., None].expand(-1, -1, -1, 2))[:, :, 0]
    action = actions.labels.gather(1, shortest[..., 0]) + 1
    labels = torch.where(mine.any(-1), action, 0)
    overlap = iou(coarse.detach(), offsets)
    least: Tensor | float = 0.5
    if form == "activitynet":
        best = torch.where(labels > 0, overlap, 0.0).amax(1, keepdim=True)
        least = best.clamp(max=0.6)
    return CoarseToFineTargets(labels, offsets, torch.where(overlap >= least, labels, 0), shortest[..., 0])


def softmax_focal(logits: Tensor, labels: Tensor) -> Tensor:
    """Return (B, N) focal loss of softmax probabilities, background weighed by a quarter and classes by three."""
    likely = logits.softmax(-1).gather(-1, labels[..., None])[..., 0] + SLIGHT
    weight = torch.where(labels > 0, 0.75, 0.25)
    return weight * (1 - likely).square() * -likely.log()


def quality_loss(logit: Tensor, overlap: Tensor) -> Tensor:
    """Compute the cross-entropy of a logit and an overlap; gradients flow into both, as published."""
    return F.softplus(logit) - logit * overlap.clamp(min=0)


def average_losses(each: Tensor, chosen: Tensor, counted: Tensor, form: Form) -> Tensor:
    """Return the sum over chosen points by how many are counted: in the batch, or on ActivityNet in each video."""
    selected = torch.where(chosen, each, 0.0)
    if form == "thumos14":
        return selected.sum() / counted.sum().clamp(min=1)
    return (selected.sum(1) / counted.sum(1).clamp(min=1)).mean()


def end_maps(actions: Actions, length: int) -> Tensor:
    """Return (B, 2, length) masks of frames around starts and ends: a tenth of the action, or two frames."""
    steps = torch.arange(length, device=actions.segments.device)
    start, end = (actions.segments[..., i, None] for i in (0, 1))  # (B, M, 1)
    half = ((end - start) / 10).clamp(min=2) / 2
    maps = []
    for at in (start, end):
        first, last = ((at + side * half).round().clamp(0, length - 1) for side in (-1, 1))
        maps.append(((steps >= first) & (steps <= last) & actions.present[..., None]).any(1))
    return torch.stack(maps, 1).float()


def side_loss(features: Tensor, maps: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the loss of the mean of each half of the channels (B, C, T) and its map (B, 2, T)."""
    batch, channels, length = features.shape
    means = features.float().tanh().view(batch, 2, channels // 2, length).mean(2)  # (B, 2, T)
    each = F.binary_cross_entropy(means, maps, reduction="none").mean((0, 2))
    return each[0], each[1]


@dataclass(frozen=True)
class Cut:
    """Cut of an action in a clip, and the background moved into it."""

    start: float  # of the action, in frames
    end: float  # of it
    at: int  # frame before which the background comes
    background: int  # its first frame
    length: int  # frames of background

    def order(self, frames: int) -> npt.NDArray[np.int64]:
        """Return the index of the frame at each position after the move."""
        rest = np.delete(np.arange(frames), np.arange(self.background, self.background + self.length))
        moved = np.arange(self.background, self.background + self.length)
        place = self.at if self.background >= self.at else self.at - self.length
        return np.concatenate([rest[:place], moved, rest[place:]])

    def segments(self) -> npt.NDArray[np.float32]:
        """Return (3, 2) the action before the cut, the action after it, and the background between them."""
        at, length = self.at, self.length
        if self.background >= at:
            segments = [(self.start, at), (at + length, self.end + length), (at + 1, at + length - 1)]
        else:
            segments = [(self.start - length, at - length), (at, self.end), (at - length + 1, at - 1)]
        return np.array(segments, np.float32)


def triplet_loss(features: Tensor, segments: Tensor, *, stride: int = 1, reproduce_bugs: bool = False) -> Tensor:
    """Compute the triplet loss: the end before the cut is closer to the start after it than to background.

    Args:
        features: (B, C, T) whose first half of channels looks at starts, the second at ends.
        segments: (B, 3, 2) of a `Cut`, in frames.
        stride: frames a step of the features.
    """
    pooled = boundary_max_pool(features, frame_regions(segments) / stride, reproduce_bugs=reproduce_bugs)
    starts, ends = pooled.chunk(2, 1)  # (B, C / 2, 3)
    return F.triplet_margin_loss(ends[..., 0], starts[..., 1], starts[..., 2])


def draw_cut(
    segments: npt.NDArray[np.float32], frames: int, rng: np.random.Generator, *, activitynet: bool = False
) -> Cut | None:
    """Draw an action of a clip, a position in it, and background as long as its shortest action.

    On ActivityNet, where actions are long, it is a quarter of that.

    Args:
        segments: (M, 2) actions in frames of the clip.

    Returns:
        None if no action is long enough to be cut, or no background to be moved.
    """
    lengths = segments[:, 1] - segments[:, 0]
    shortest = float(lengths.min())
    moved = int(shortest) // 4 if activitynet else math.ceil(shortest)
    long = np.flatnonzero(lengths >= 2 * moved if activitynet else lengths > 2 * moved)
    gaps = [(a, b) for a, b in between(segments, frames) if b - a > moved]
    if moved < 2 or not len(long) or not gaps:  # of less than two frames there is no inside
        return None
    start, end = segments[rng.choice(long)].tolist()
    low, high = math.ceil(start + moved), math.floor(end - moved)
    first, last = gaps[int(rng.integers(len(gaps)))]
    if high < low:
        return None
    at = int(rng.integers(low, high + 1))
    return Cut(start, end, at, int(rng.integers(first, last - moved + 1)), moved)


def between(segments: npt.NDArray[np.float32], frames: int) -> list[tuple[int, int]]:
    """Return the ranges of whole frames without an action, as (first, end).

    >>> between(np.array([[8.0, 12.5], [3.2, 5.0], [4.0, 6.0]]), 20)
    [(0, 3), (6, 8), (13, 20)]
    """
    ranges, reached = [], 0
    for start, end in sorted(segments.tolist()):
        if math.floor(start) > reached:
            ranges.append((reached, math.floor(start)))
        reached = max(reached, math.ceil(end))
    return [*ranges, (reached, frames)] if reached < frames else ranges
