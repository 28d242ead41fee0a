"""A second look at a coarse segment: what is seen around its ends, pooled from the frames and from its level.

Lin, Xu, Luo, et al.: "Learning Salient Boundary Feature for Anchor-free Temporal Action Localization", CVPR 2021.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jostle.detectors.blocks.boundary_pooling import boundary_max_pool
from jostle.detectors.blocks.same_conv import same


class Refinement(nn.Module):
    """The feature of a refined segment, at every point of a level."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.cur_point_conv = same(dim, dim, 1)
        self.lr_conv = same(dim, 2 * dim, 1)
        self.roi_conv = same(dim, dim, 1)
        self.proposal_conv = same(4 * dim, dim, 1)

    def forward(
        self, x: Tensor, around: Tensor, regions: Tensor, *, released_faults: bool = False
    ) -> tuple[Tensor, Tensor]:
        """(B, D, t) the feature, and (B, 2 D, t) what of the level starts and ends are pooled from.

        Args:
            x: (B, D, t) of the tower.
            around: (B, D, t) what was pooled from the frames.
            regions: (B, t, 4) to pool from the level.
        """
        sides = self.lr_conv(x)
        pooled = boundary_max_pool(sides, regions, released_faults=released_faults)
        return self.proposal_conv(torch.cat([self.roi_conv(around), pooled, self.cur_point_conv(x)], 1)), sides


def level_regions(offsets: Tensor, scale: float) -> Tensor:
    """(B, t, 4) around the ends of segments (B, t, 2) that are told as distances in frames, on the grid of the level.

    Args:
        scale: steps of the level in a frame.
    """
    left, right = (offsets.detach() * scale).unbind(-1)
    place = torch.arange(offsets.shape[1], device=offsets.device)
    return _around(place - left, place + right, left + right)


def frame_regions(segments: Tensor) -> Tensor:
    """(B, M, 4) around the ends of segments (B, M, 2), in frames."""
    start, end = segments.detach().unbind(-1)
    return _around(start, end, end - start + 1)


def _around(start: Tensor, end: Tensor, length: Tensor) -> Tensor:
    inner, outer = (length / 4).clamp(min=1), (length / 10).clamp(min=1)
    return torch.stack([start - outer, start + inner, end - inner, end + outer], -1).round()
