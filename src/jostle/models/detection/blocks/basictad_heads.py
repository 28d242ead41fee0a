"""Heads of BasicTAD: for anchors, and for points with and without a deformable convolution."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from jostle.models.detection.blocks.centred_anchors import AT_A_STEP
from jostle.models.detection.blocks.convolution import (
    BatchNormedConv,
    DeformableConv,
    GroupNormedConv,
    LearnedScaleVector,
)

LAYERS = 4  # of a tower
PRIOR = 0.01  # probability with which every class starts
SPREAD = 0.01  # of the weights that a head starts with


class AnchorTowers(nn.Module):
    """Head that predicts class logits and a code for every anchor; all levels share towers and norms."""

    def __init__(self, inputs: int, dim: int, classes: int, levels: int) -> None:
        super().__init__()
        widths = [inputs, *([dim] * (LAYERS - 1))]
        self.classes = classes
        self.cls_convs = nn.ModuleList(BatchNormedConv(width, dim, 3, relu=True) for width in widths)
        self.reg_convs = nn.ModuleList(BatchNormedConv(width, dim, 3, relu=True) for width in widths)
        self.retina_cls = nn.Conv1d(dim, AT_A_STEP * classes, 3, padding=1)
        self.retina_reg = nn.Conv1d(dim, AT_A_STEP * 2, 3, padding=1)
        _start(self, self.retina_cls)

    def forward(self, pyramid: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return (B, N, classes) logits and (B, N, 2) codes, step by step within a level."""
        logits, codes = [], []
        for x in pyramid:
            logits.append(self.retina_cls(_through(self.cls_convs, x)))
            codes.append(self.retina_reg(_through(self.reg_convs, x)))
        return _by_row(logits, self.classes), _by_row(codes, 2)


class NormedPointTowers(nn.Module):
    """Head that predicts class logits and distances in strides for every point."""

    def __init__(self, inputs: int, dim: int, classes: int, levels: int) -> None:
        super().__init__()
        widths = [inputs, *([dim] * (LAYERS - 1))]
        self.scales = nn.ModuleList(LearnedScaleVector() for _ in range(levels))
        self.cls_convs = nn.ModuleList(GroupNormedConv(width, dim) for width in widths)
        self.reg_convs = nn.ModuleList(GroupNormedConv(width, dim) for width in widths)
        self.fcos_cls = nn.Conv1d(dim, classes, 3, padding=1)
        self.fcos_reg = nn.Conv1d(dim, 2, 3, padding=1)
        _start(self, self.fcos_cls)

    def forward(self, pyramid: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return (B, N, classes) logits and (B, N, 2) distances."""
        logits = [self.fcos_cls(_through(self.cls_convs, x)) for x in pyramid]
        offsets = [
            scale(self.fcos_reg(_through(self.reg_convs, x))) for scale, x in zip(self.scales, pyramid, strict=True)
        ]
        return _by_row(logits, self.fcos_cls.out_channels), _by_row(offsets, 2).exp()


class DeformablePointTowers(nn.Module):
    """Head that predicts logits, background first, and distances in strides, without norms."""

    def __init__(self, inputs: int, dim: int, classes: int, levels: int) -> None:
        super().__init__()

        def tower() -> nn.Sequential:
            widths = [inputs, *([dim] * (LAYERS - 2))]
            layers = [(nn.Conv1d(width, dim, 3, padding=1), nn.ReLU(inplace=True)) for width in widths]
            return nn.Sequential(*(part for layer in layers for part in layer), DeformableConv(dim, dim), nn.ReLU())

        self.cls_convs = tower()
        self.reg_convs = tower()
        self.cls = nn.Conv1d(dim, classes + 1, 3, padding=1)
        self.reg = nn.Conv1d(dim, 2, 3, padding=1)
        self.scales = nn.ModuleList(LearnedScaleVector() for _ in range(levels))

    def forward(self, pyramid: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return (B, N, 1 + classes) logits and (B, N, 2) distances."""
        logits = [self.cls(self.cls_convs(x)) for x in pyramid]
        offsets = [scale(self.reg(self.reg_convs(x))) for scale, x in zip(self.scales, pyramid, strict=True)]
        return _by_row(logits, self.cls.out_channels), _by_row(offsets, 2).exp()


def _through(layers: nn.ModuleList, x: Tensor) -> Tensor:
    for layer in layers:
        x = layer(x)
    return x


def _by_row(levels: list[Tensor], width: int) -> Tensor:
    """Return (B, N, width) from (B, rows * width, t) of each level."""
    return torch.cat([x.transpose(1, 2).reshape(len(x), -1, width) for x in levels], 1).float()


def _start(head: nn.Module, classes: nn.Conv1d) -> None:
    """Initialise with small weights, no bias, and a low prior for every class."""
    for module in head.modules():
        if isinstance(module, nn.Conv1d):
            nn.init.normal_(module.weight, std=SPREAD)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    assert classes.bias is not None
    nn.init.constant_(classes.bias, -math.log((1 - PRIOR) / PRIOR))
