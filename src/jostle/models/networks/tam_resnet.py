"""2D ResNets of 18 and 50 layers whose blocks mix channels with neighbouring frames (TAM).

Fan et al., "More Is Less: Learning Efficient Video Representations by Big-Little Network and Depthwise Temporal
Aggregation", NeurIPS 2019, whose temporal aggregation module (TAM) this is, on a plain ResNet as in Chen et al., CVPR
2021. Tensors are named as torchvision's ResNets name theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.networks.inflated_resnet import DEPTHS
from jostle.models.networks.pooled_head import DROPPED


@dataclass(frozen=True)
class TamConfig:
    """Settings of a TAM ResNet.

    Attributes:
        layers: 18 or 50.
        time_stride: whether a pool after each of the first three stages takes every second step.
        classes: number of classes.
        width: channels of the stem.
    """

    layers: Literal[18, 50] = 50
    time_stride: bool = False
    classes: int = 400
    width: int = 64


class Weights(nn.Module):
    """Weight per channel, named as the convolution of the public weights."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc1 = nn.Conv2d(channels, channels, 1, groups=channels, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the same shape, (..., C, H, W)."""
        return x * self.fc1.weight[:, 0]


class Aggregation(nn.Module):
    """Channelwise weighted sum of each frame and its neighbours, zero-padded at the ends."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.prev_se, self.next_se, self.curr_se = Weights(channels), Weights(channels), Weights(channels)

    def forward(self, x: Tensor, frames: int) -> Tensor:
        """Return a tensor of the same shape, (B * T, C, H, W)."""
        clips = torch.unflatten(x, 0, (-1, frames))  # (B, T, C, H, W)
        output = self.curr_se(clips)
        output[:, 1:] += self.prev_se(clips[:, :-1])
        output[:, :-1] += self.next_se(clips[:, 1:])
        return F.relu(output, inplace=True).flatten(0, 1)


def _around(channels: int, out: int, stride: int) -> nn.Sequential | None:
    if channels == out and stride == 1:
        return None
    return nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))


class TAMBasicBlock(nn.Module):
    """Residual block of temporal aggregation and two convolutions."""

    expansion = 1

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = _around(channels, width, stride)
        self.tam = Aggregation(channels)

    def forward(self, x: Tensor, frames: int) -> Tensor:
        """Return a tensor of shape (B * T, width, H/stride, W/stride)."""
        around = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(self.tam(x, frames))), inplace=True)
        return F.relu(around + self.bn2(self.conv2(x)), inplace=True)


class TAMBottleneck(nn.Module):
    """Residual bottleneck with temporal aggregation."""

    expansion = 4

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = self.expansion * width
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out)
        self.downsample = _around(channels, out, stride)
        self.tam = Aggregation(channels)

    def forward(self, x: Tensor, frames: int) -> Tensor:
        """Return a tensor of shape (B * T, 4 * width, H/stride, W/stride)."""
        around = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(self.tam(x, frames))), inplace=True)
        x = F.relu(self.bn2(self.conv2(x)), inplace=True)
        return F.relu(around + self.bn3(self.conv3(x)), inplace=True)


class TamResNet(nn.Module):
    """Stem, four stages, global mean and classifier."""

    def __init__(self, config: TamConfig = TamConfig()) -> None:  # noqa: B008
        super().__init__()
        self.config = config
        block = TAMBasicBlock if config.layers == 18 else TAMBottleneck
        self.conv1 = nn.Conv2d(3, config.width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(config.width)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        channels = config.width
        for number, depth in enumerate(DEPTHS[config.layers]):
            width = config.width * 2**number
            first = block(channels, width, 1 if number == 0 else 2)
            channels = block.expansion * width
            self.add_module(
                f"layer{number + 1}", nn.ModuleList([first, *(block(channels, width, 1) for _ in range(depth - 1))])
            )
        self.drop = nn.Dropout(DROPPED)
        self.fc = nn.Linear(channels, config.classes)

    def see(self, clips: Tensor) -> Tensor:
        """Return (B, T, C, h, w), what the last stage makes of (B, 3, T, H, W)."""
        count, _, frames = clips.shape[:3]
        x = clips.transpose(1, 2).flatten(0, 1).contiguous(memory_format=torch.channels_last)
        x = self.maxpool(F.relu(self.bn1(self.conv1(x)), inplace=True))
        for number in range(1, 5):
            for block in self.get_submodule(f"layer{number}").children():
                x = block(x, frames)
            if self.config.time_stride and number < 4:
                x, frames = _fewer(x, frames)
        return torch.unflatten(x, 0, (count, frames))

    def forward(self, clips: Tensor) -> Tensor:
        """Return (B, classes) logits of (B, 3, T, H, W)."""
        output: Tensor = self.fc(self.drop(self.see(clips).mean((3, 4)).mean(1)))
        return output


def _fewer(x: Tensor, frames: int) -> tuple[Tensor, int]:
    """Max-pool frames by two over time; return the frames and their number."""
    clips = torch.unflatten(x, 0, (-1, frames)).transpose(1, 2)
    output = F.max_pool3d(clips, (3, 1, 1), (2, 1, 1), (1, 0, 0)).transpose(1, 2)
    return output.flatten(0, 1), output.shape[1]


CONFIGS = {"tam_resnet18": TamConfig(18), "tam_resnet50": TamConfig(50)}
