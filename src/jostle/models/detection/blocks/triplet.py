"""AFSD's self-supervised triplet loss: background is moved into an action, and the cut must resemble a boundary.

Lin, Xu, Luo, et al.: "Learning Salient Boundary Feature for Anchor-free Temporal Action Localization", CVPR 2021.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch.nn.functional as F
from torch import Tensor

from jostle.models.detection.blocks.boundaries import boundary_max_pool
from jostle.models.detection.blocks.coarse_to_fine import frame_regions


@dataclass(frozen=True)
class Cut:
    """Cut of an action in a clip, and the background moved into it.

    Attributes:
        start: of the action, in frames.
        end: of it.
        at: frame before which the background comes.
        background: its first frame.
        length: frames of background.
    """

    start: float
    end: float
    at: int
    background: int
    length: int

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
