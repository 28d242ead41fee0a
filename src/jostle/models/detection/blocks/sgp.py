"""Scalable-granularity perception, TriDet's convolutional replacement of attention."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.models.detection.blocks.convolution import ChannelNorm, SequenceGroupNorm, pointwise
from jostle.models.detection.blocks.levels import Level
from jostle.models.detection.blocks.pyramid import drop_path, halve

GROUPS = 16  # of the norm before the feed-forward part


def wide_kernel(window: int, k: float) -> int:
    """Return the length of the wide convolution beside one of `window`: (window + 1) k, made odd."""
    kernel = round((window + 1) * k)
    return kernel + 1 - kernel % 2


def reach_of(window: int, k: float) -> int:
    """Return the number of columns that a block covers to either side."""
    return max(window, wide_kernel(window, k)) // 2


class Depthwise(nn.Module):
    """Depthwise convolution with one filter and one bias per channel.

    Args:
        spread: standard deviation of the weights at the start.
    """

    def __init__(self, dim: int, kernel: int, spread: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(dim, 1, kernel).normal_(0.0, spread))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> Tensor:
        kernel = self.weight.shape[-1]
        if kernel == 1:  # as a convolution this would be one small call a channel
            return torch.addcmul(self.bias[:, None], x, self.weight[:, 0])
        return F.conv1d(x, self.weight, self.bias, padding=kernel // 2, groups=x.shape[1])


class SGPBlock(nn.Module):
    """An instant branch gated by the mean of the video, and a window branch gated by a convolution.

    None of it is masked but the residual, and both the mean and the group norm run over the padded sequence: the
    padding is part of what the published weights have learned. `Level` accounts for the columns not computed.

    Args:
        halves: pool time by two first.
        spread: standard deviation of the depthwise weights at the start.
        drop: drop-path rate of both residual branches; 0 leaves the scales out.
    """

    def __init__(
        self, dim: int, *, window: int, k: float, mlp_dim: int, halves: bool, spread: float, drop: float
    ) -> None:
        super().__init__()
        self.halves = halves
        self.ln = ChannelNorm(dim)
        self.gn = SequenceGroupNorm(GROUPS, dim)
        self.psi = Depthwise(dim, window, spread)
        self.fc = Depthwise(dim, 1, spread)
        self.convw = Depthwise(dim, window, spread)
        self.convkw = Depthwise(dim, wide_kernel(window, k), spread)
        self.global_fc = Depthwise(dim, 1, spread)
        self.mlp = nn.Sequential(pointwise(dim, mlp_dim), nn.GELU(), pointwise(mlp_dim, dim))
        self.drop_path_out = drop_path(dim, drop)
        self.drop_path_mlp = drop_path(dim, drop)

    def forward(self, x: Tensor, level: Level) -> Tensor:
        """Return (B, D, columns) of `level`; the input is of the level above where the block halves."""
        if self.halves:
            x = level.grow(halve(x))
        y = self.ln(x)
        whole = F.relu(self.global_fc(level.mean(y)))  # (B, D, 1)
        # fc(y) whole + y, with the factors of y put together first
        z = torch.addcmul(self.fc.bias[:, None] * whole, y, self.fc.weight[:, 0] * whole + 1)
        z = torch.addcmul(z, self._windows(y), self.psi(y))
        x = torch.addcmul(self.drop_path_out(z), x, level.mask.to(x.dtype))
        output: Tensor = x + self.drop_path_mlp(self.mlp(self.gn(x, level)))
        return output

    def _windows(self, y: Tensor) -> Tensor:
        """(B, D, T) the narrow and the wide convolution of `y` added up, which is one with the sum of their filters."""
        small, large = sorted((self.convw.weight, self.convkw.weight), key=lambda weight: weight.shape[-1])
        spare = (large.shape[-1] - small.shape[-1]) // 2
        weight, bias = large + F.pad(small, (spare, spare)), self.convw.bias + self.convkw.bias
        return F.conv1d(y, weight, bias, padding=weight.shape[-1] // 2, groups=y.shape[1])
