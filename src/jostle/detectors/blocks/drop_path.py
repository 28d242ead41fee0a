"""Residual branches that are scaled channel by channel, and in training left out now and then."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ScaledDropPath(nn.Module):
    """A learned scale a channel (LayerScale, 1e-4 at the start) and stochastic depth over the videos of a batch.

    The scale stays at test time. With a rate of 0 the originals leave the module out, parameters and all:
    `drop_path` does.
    """

    def __init__(self, channels: int, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.scale = nn.Parameter(torch.full((1, channels, 1), 1e-4))

    def forward(self, x: Tensor) -> Tensor:
        x = x * self.scale
        if not self.training:
            return x
        kept = torch.empty(x.shape[0], 1, 1, dtype=x.dtype, device=x.device).bernoulli_(1 - self.rate)
        return x * (kept / (1 - self.rate))


def drop_path(channels: int, rate: float) -> nn.Module:
    """The module for a rate: with nothing to drop it has no parameters."""
    return ScaledDropPath(channels, rate) if rate > 0 else nn.Identity()
