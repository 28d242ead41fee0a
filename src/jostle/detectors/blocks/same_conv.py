"""Convolutions of AFSD: padded as TensorFlow does, under the names of its weights, each with norm and ReLU."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

GROUPS = 32  # of the norms


class SameConv(nn.Module):
    """A convolution over time whose output has a step for every `stride` of the input; an odd zero goes behind."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1d = nn.Conv1d(inputs, outputs, kernel, stride)
        self.kernel, self.stride = kernel, stride

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[-1]
        total = max((-(-length // self.stride) - 1) * self.stride + self.kernel - length, 0)
        made: Tensor = self.conv1d(F.pad(x, (total // 2, total - total // 2)))
        return made


class WholeFrame(nn.Module):
    """A convolution that sees a whole map (B, C, T, size, size) at each step: (B, outputs, T)."""

    def __init__(self, inputs: int, outputs: int, size: int) -> None:
        super().__init__()
        self.conv3d = nn.Conv3d(inputs, outputs, (1, size, size))

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.conv3d(x)[..., 0, 0]
        return made


def normed(conv: nn.Module, outputs: int) -> nn.Sequential:
    """The convolution, a norm over groups of channels, ReLU."""
    return nn.Sequential(conv, nn.GroupNorm(GROUPS, outputs), nn.ReLU(inplace=True))


def same(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    """A padded convolution, a norm, ReLU."""
    return normed(SameConv(inputs, outputs, kernel, stride), outputs)
