"""Convolutions over time with a norm behind them and, mostly, ReLU, named as mmcv names their parts."""

from __future__ import annotations

from typing import Self

from torch import Tensor, nn

GROUPS = 32


class BatchNormedConv(nn.Module):
    """A convolution and a batch norm; their tensors are `conv` and `bn`."""

    def __init__(self, inputs: int, outputs: int, kernel: int, *, relu: bool) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
        self.bn = nn.BatchNorm1d(outputs)
        self.relu = nn.ReLU(inplace=True) if relu else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.relu(self.bn(self.conv(x)))
        return made


class GroupNormedConv(nn.Module):
    """A convolution of three steps, a norm over groups of channels and ReLU; the tensors are `conv` and `gn`."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, 3, padding=1, bias=False)
        self.gn = nn.GroupNorm(GROUPS, outputs)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.relu(self.gn(self.conv(x)))
        return made


class HalvingConv(nn.Module):
    """Half as many steps of maps, place by place. Its norm goes by the statistics it has, in training too."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(inputs, outputs, (3, 1, 1), (2, 1, 1), (1, 0, 0), bias=False)
        self.bn = nn.BatchNorm3d(outputs)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        """(B, outputs, T / 2, H, W)."""
        made: Tensor = self.relu(self.bn(self.conv(x)))
        return made

    def train(self, mode: bool = True) -> Self:
        """Training leaves the statistics of the norm as they are."""
        super().train(mode)
        self.bn.eval()
        return self
