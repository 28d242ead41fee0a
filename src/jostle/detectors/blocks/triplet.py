"""AFSD's lesson without labels: background is moved into an action, and where it was cut must look like an end.

Lin, Xu, Luo, et al.: "Learning Salient Boundary Feature for Anchor-free Temporal Action Localization", CVPR 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch.nn.functional as F
from torch import Tensor

from jostle.detectors.blocks.boundary_pooling import boundary_max_pool
from jostle.detectors.blocks.refinement import frame_regions


@dataclass(frozen=True)
class Cut:
    """An action of a clip, where it is cut, and the background that is moved there.

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
        """Which frame of the clip stands at each place after the move."""
        rest = np.delete(np.arange(frames), np.arange(self.background, self.background + self.length))
        moved = np.arange(self.background, self.background + self.length)
        place = self.at if self.background >= self.at else self.at - self.length
        return np.concatenate([rest[:place], moved, rest[place:]])

    def segments(self) -> npt.NDArray[np.float32]:
        """(3, 2) the action before the cut, the action after it, and the background between them."""
        at, length = self.at, self.length
        if self.background >= at:
            made = [(self.start, at), (at + length, self.end + length), (at + 1, at + length - 1)]
        else:
            made = [(self.start - length, at - length), (at, self.end), (at - length + 1, at - 1)]
        return np.array(made, np.float32)


def triplet_loss(features: Tensor, segments: Tensor, *, stride: int = 1, released_faults: bool = False) -> Tensor:
    """The end before the cut must be nearer to the start after it than to the start of the background.

    Args:
        features: (B, C, T) whose first half of channels looks at starts, the second at ends.
        segments: (B, 3, 2) of a `Cut`, in frames.
        stride: frames a step of the features.
    """
    pooled = boundary_max_pool(features, frame_regions(segments) / stride, released_faults=released_faults)
    starts, ends = pooled.chunk(2, 1)  # (B, C / 2, 3)
    return F.triplet_margin_loss(ends[..., 0], starts[..., 1], starts[..., 2])
