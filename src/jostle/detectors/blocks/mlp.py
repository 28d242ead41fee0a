"""A small network from one vector to another."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class Mlp(nn.Module):
    """Three linear maps with ReLU between, called `layers`."""

    def __init__(self, dim: int, out: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, out)])

    def forward(self, x: Tensor) -> Tensor:
        """(..., out)."""
        first, second, last = self.layers
        made: Tensor = last(F.relu(second(F.relu(first(x)))))
        return made
