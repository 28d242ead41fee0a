"""Inception-v1 over video: its convolutions inflated along time (I3D), or over space and then time (S3D).

Carreira and Zisserman, CVPR 2017; Xie et al., ECCV 2018; as compared by Chen et al., CVPR 2021, whose networks differ
from the original I3D in padding and strides. Tensors are named as torchvision's GoogLeNet names its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.networks.layers import DROPPED, ONE, Triple, convolution

EPSILON = 1e-3  # of every norm
Widths = tuple[int, int, int, int, int, int]
# Channels of a block's branches: 1x1x1 | 1x1x1 -> 3x3x3 | 1x1x1 -> 3x3x3 | pool -> 1x1x1
MIXED: dict[str, Widths] = {
    "inception3a": (64, 96, 128, 16, 32, 32),
    "inception3b": (128, 128, 192, 32, 96, 64),
    "inception4a": (192, 96, 208, 16, 48, 64),
    "inception4b": (160, 112, 224, 24, 64, 64),
    "inception4c": (128, 128, 256, 24, 64, 64),
    "inception4d": (112, 144, 288, 32, 64, 64),
    "inception4e": (256, 160, 320, 32, 128, 128),
    "inception5a": (256, 160, 320, 32, 128, 128),
    "inception5b": (384, 192, 384, 48, 128, 128),
}


@dataclass(frozen=True)
class VideoInceptionConfig:
    """Settings of a video Inception network.

    Attributes:
        split: whether a 3x3x3 convolution is one over space and one over time.
        time_stride: whether the pools take every second step, as they do every second place.
        classes: number of classes.
    """

    split: bool = False
    time_stride: bool = False
    classes: int = 400


class InceptionUnit(nn.Module):
    """Convolution, norm, ReLU; factorised, followed by the same over time with a bias."""

    def __init__(self, channels: int, out: int, size: Triple, stride: Triple = ONE, *, split: bool = False) -> None:
        super().__init__()
        self.conv = convolution(channels, out, (1, *size[1:]) if split else size, stride)
        self.bn = nn.BatchNorm3d(out, eps=EPSILON)
        self.split = split
        if split:
            self.conv_t = convolution(out, out, (size[0], 1, 1), bias=True)
            self.bn_t = nn.BatchNorm3d(out, eps=EPSILON)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, out, ...)."""
        x = F.relu(self.bn(self.conv(x)), inplace=True)
        return F.relu(self.bn_t(self.conv_t(x)), inplace=True) if self.split else x


class InceptionMixed(nn.Module):
    """Inception block of four parallel branches."""

    def __init__(self, channels: int, out: Widths, *, split: bool) -> None:
        super().__init__()
        wide: Triple = (3, 3, 3)
        self.branch1 = InceptionUnit(channels, out[0], ONE)
        self.branch2 = nn.Sequential(
            InceptionUnit(channels, out[1], ONE), InceptionUnit(out[1], out[2], wide, split=split)
        )
        self.branch3 = nn.Sequential(
            InceptionUnit(channels, out[3], ONE), InceptionUnit(out[3], out[4], wide, split=split)
        )
        self.branch4 = nn.Sequential(nn.MaxPool3d(3, 1, 1), InceptionUnit(channels, out[5], ONE))
        self.channels = out[0] + out[2] + out[4] + out[5]

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, channels, ...) of all branches."""
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], dim=1)


class VideoInception(nn.Module):
    """Stem, nine blocks, global mean and classifier."""

    def __init__(self, config: VideoInceptionConfig = VideoInceptionConfig()) -> None:  # noqa: B008
        super().__init__()
        self.config = config
        fewer: Triple = (2 if config.time_stride else 1, 2, 2)
        pool = nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1))
        stages: list[tuple[str, nn.Module]] = [
            ("conv1", InceptionUnit(3, 64, (3 if config.split else 7, 7, 7), (1, 2, 2))),
            ("maxpool1", pool),
            ("conv2", InceptionUnit(64, 64, ONE)),
            ("conv3", InceptionUnit(64, 192, (3, 3, 3), split=config.split)),
            ("maxpool2", nn.MaxPool3d(3, fewer, 1)),
        ]
        channels = 192
        for name, out in MIXED.items():
            if name == "inception4a":
                stages.append(("maxpool3", nn.MaxPool3d(3, fewer, 1)))
            if name == "inception5a":
                stages.append(("maxpool4", nn.MaxPool3d(2, fewer) if config.split else nn.MaxPool3d(3, fewer, 1)))
            block = InceptionMixed(channels, out, split=config.split)
            stages.append((name, block))
            channels = block.channels
        for name, stage in stages:
            self.add_module(name, stage)
        self.stages = tuple(name for name, _ in stages)
        self.drop = nn.Dropout(DROPPED)
        self.fc = nn.Linear(channels, config.classes)

    def forward(self, clips: Tensor) -> Tensor:
        """Return (B, classes) logits of (B, 3, T, H, W)."""
        x = clips
        for name in self.stages:
            x = self.get_submodule(name)(x)
        output: Tensor = self.fc(self.drop(x.mean((2, 3, 4))))
        return output
