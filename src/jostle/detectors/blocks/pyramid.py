"""The step from one level of the pyramid to the next, and the norm that each level ends with."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from jostle.detectors.blocks.levels import Level
from jostle.detectors.blocks.norm import SequenceGroupNorm


def halve(x: Tensor) -> Tensor:
    """(B, C, ceil(T / 2)) the greatest of three neighbours around every second column."""
    return F.max_pool1d(x, 3, 2, 1)


class Neck(nn.Module):
    """One norm a level and nothing else: the "identity" pyramid, which every published configuration uses."""

    def __init__(self, norms: Sequence[nn.Module]) -> None:
        super().__init__()
        self.fpn_norms = nn.ModuleList(norms)

    def forward(self, pyramid: Sequence[Tensor], levels: Sequence[Level]) -> list[Tensor]:
        made = []
        for x, level, norm in zip(pyramid, levels, self.fpn_norms, strict=True):
            made.append(norm(x, level) if isinstance(norm, SequenceGroupNorm) else norm(x))
        return made
