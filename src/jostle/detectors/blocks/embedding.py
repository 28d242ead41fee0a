"""The entrance of a backbone: two convolutions from the features' width to the network's, and where in time we are."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.detectors.blocks.levels import Level
from jostle.detectors.blocks.masked_conv import MaskedConv
from jostle.detectors.blocks.norm import ChannelNorm


class Embedding(nn.Module):
    """Base of the backbones: [convolution, norm, ReLU] times `layers`; subclasses add their levels.

    Args:
        clear: mask once more after the ReLU (OpenTAD), where the originals leave ReLU(bias) in the padding.
        table: length of the table of positions, 0 for none.
    """

    positions: Tensor

    def __init__(
        self, inputs: int, dim: int, kernel: int, *, layers: int, eps: float, clear: bool, table: int = 0
    ) -> None:
        super().__init__()
        widths = [inputs] + [dim] * layers
        self.embd = nn.ModuleList(MaskedConv(a, dim, kernel, bias=False) for a in widths[:-1])
        self.embd_norm = nn.ModuleList(ChannelNorm(dim, eps) for _ in range(layers))
        self.clear = clear
        self.register_buffer("positions", sinusoids(table, dim), persistent=False)

    def embed(self, features: Tensor, level: Level) -> Tensor:
        """(B, D, columns) of the finest level from features (B, C, T)."""
        x = features
        for conv, norm in zip(self.embd, self.embd_norm, strict=True):
            x = conv(x, level.mask[..., : x.shape[-1]])
            if x.shape[-1] != level.columns:  # the first time: what it would find in the padding is masked anyway
                x = F.pad(x, (0, level.columns - x.shape[-1]))
            x = norm(x, reuse=True)
            if self.clear:
                x = x.mul_(level.mask)
            x = x.relu_()
        if self.positions.shape[-1]:
            x = x + self._positions(level).to(x.dtype) * level.mask
        return x

    def _positions(self, level: Level) -> Tensor:
        table = self.positions
        if level.padded > table.shape[-1]:  # longer than any video in training: stretch what was learned
            table = F.interpolate(table, level.padded, mode="linear", align_corners=False)
        return table[..., : level.columns]


def sinusoids(length: int, dim: int) -> Tensor:
    """(1, dim, length) sines in even channels and cosines in odd ones, wavelengths up to 10000, over sqrt(dim)."""
    channel = torch.arange(dim, dtype=torch.float64)
    rate = 10000.0 ** (-2 * torch.div(channel, 2, rounding_mode="floor") / dim)
    angle = rate[:, None] * torch.arange(length, dtype=torch.float64)  # (dim, length)
    table = torch.where(channel[:, None] % 2 == 0, angle.sin(), angle.cos())
    return (table / math.sqrt(dim)).float()[None]
