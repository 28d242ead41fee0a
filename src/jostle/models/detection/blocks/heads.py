"""Convolutional towers shared by all levels: one for classes, one for boundary distances."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.models.detection.blocks.convolution import ChannelNorm, MaskedConv
from jostle.models.detection.blocks.levels import Row


class Tower(nn.Module):
    """Stack of `layers` times [convolution, norm, ReLU].

    Args:
        eps: of the norms.
        clear: OpenTAD's order. It masks once more after the ReLU and leaves the last convolution unmasked; the
            originals do the reverse, so that ReLU(bias) stays in the padding between two layers.
    """

    def __init__(
        self, inputs: int, dim: int, kernel: int, *, layers: int = 2, eps: float = 1e-5, clear: bool = False
    ) -> None:
        super().__init__()
        widths = [inputs] + [dim] * layers
        self.head = nn.ModuleList(MaskedConv(a, dim, kernel, bias=False) for a in widths[:-1])
        self.norm = nn.ModuleList(ChannelNorm(dim, eps) for _ in range(layers))
        self.clear = clear

    def climb(self, x: Tensor, row: Row) -> Tensor:
        """Return (B, dim, S) after the layers; the gaps between levels are zero again."""
        mask = row.valid if self.clear else row.inside
        for conv, norm in zip(self.head, self.norm, strict=True):
            x = norm(conv(x, row.valid), reuse=True).mul_(mask).relu_()
        return x

    def last(self, conv: MaskedConv, x: Tensor, row: Row) -> Tensor:
        """Return (B, outputs, S) of the last convolution."""
        return conv(x, row.inside if self.clear else row.valid)  # type: ignore[no-any-return]


class ClassTower(Tower):
    """Tower that predicts class logits at every column.

    Args:
        prior: probability that the last bias starts with, so that training begins with few detections.
    """

    def __init__(
        self, inputs: int, dim: int, classes: int, kernel: int, *, prior: float, eps: float, clear: bool
    ) -> None:
        super().__init__(inputs, dim, kernel, eps=eps, clear=clear)
        self.cls_head = MaskedConv(dim, classes, kernel)
        if prior > 0:
            assert self.cls_head.conv.bias is not None
            nn.init.constant_(self.cls_head.conv.bias, -math.log((1 - prior) / prior))

    def forward(self, x: Tensor, row: Row) -> Tensor:
        return self.last(self.cls_head, self.climb(x, row), row)  # (B, classes, S)


class LearnedScale(nn.Module):
    """Learned scalar, stored without dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))


class OffsetTower(Tower):
    """Tower that predicts non-negative values with a scale per level: distances, or TriDet's centre bins."""

    def __init__(
        self, inputs: int, dim: int, outputs: int, kernel: int, *, levels: int, eps: float, clear: bool
    ) -> None:
        super().__init__(inputs, dim, kernel, eps=eps, clear=clear)
        self.scale = nn.ModuleList(LearnedScale() for _ in range(levels))
        self.offset_head = MaskedConv(dim, outputs, kernel)

    def forward(self, x: Tensor, row: Row) -> Tensor:
        scale = row.spread(torch.stack([level.get_parameter("scale") for level in self.scale]))
        return F.relu(self.last(self.offset_head, self.climb(x, row), row) * scale)  # (B, outputs, S)
