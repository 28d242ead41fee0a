"""A learned factor, as AFSD and BasicTAD have one a level."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Scale(nn.Module):
    """One learned number, held as a row of one."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale
