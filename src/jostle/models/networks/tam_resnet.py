"""ResNets of 18 and 50 layers over single frames, whose blocks mix each channel with the frames before and after.

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
    """Settings of a network.

    Attributes:
        layers: 18 or 50.
        time_stride: whether a pool after each of the first three stages takes every second step.
        classes: told apart.
        width: channels of the stem.
    """

    layers: Literal[18, 50] = 50
    time_stride: bool = False
    classes: int = 400
    width: int = 64


class Weights(nn.Module):
    """One number for each channel, named as the convolution that it is in the public weights."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc1 = nn.Conv2d(channels, channels, 1, groups=channels, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(..., C, H, W) from the same."""
        return x * self.fc1.weight[:, 0]


class Aggregation(nn.Module):
    """Each frame and its neighbours, weighed channel by channel, added up; beyond the ends there is nothing."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.prev_se, self.next_se, self.curr_se = Weights(channels), Weights(channels), Weights(channels)

    def forward(self, x: Tensor, frames: int) -> Tensor:
        """(B * T, C, H, W) from the same."""
        clips = torch.unflatten(x, 0, (-1, frames))  # (B, T, C, H, W)
        made = self.curr_se(clips)
        made[:, 1:] += self.prev_se(clips[:, :-1])
        made[:, :-1] += self.next_se(clips[:, 1:])
        return F.relu(made, inplace=True).flatten(0, 1)


def _around(channels: int, out: int, stride: int) -> nn.Sequential | None:
    if channels == out and stride == 1:
        return None
    return nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))


class BasicBlock(nn.Module):
    """Frames mixed, then looked at twice; the input passes by all of it."""

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
        """(B * T, width, H/stride, W/stride)."""
        around = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(self.tam(x, frames))), inplace=True)
        return F.relu(around + self.bn2(self.conv2(x)), inplace=True)


class Bottleneck(nn.Module):
    """Frames mixed, then looked at with fewer channels; the input passes by all of it."""

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
        """(B * T, 4 * width, H/stride, W/stride)."""
        around = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(self.tam(x, frames))), inplace=True)
        x = F.relu(self.bn2(self.conv2(x)), inplace=True)
        return F.relu(around + self.bn3(self.conv3(x)), inplace=True)


class TamResNet(nn.Module):
    """Stem, four stages, a mean over all places and frames, and the classifier."""

    def __init__(self, config: TamConfig = TamConfig()) -> None:  # noqa: B008
        super().__init__()
        self.config = config
        block = BasicBlock if config.layers == 18 else Bottleneck
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
        """(B, T, C, h, w), what the last stage makes of (B, 3, T, H, W)."""
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
        """(B, classes) logits of (B, 3, T, H, W)."""
        made: Tensor = self.fc(self.drop(self.see(clips).mean((3, 4)).mean(1)))
        return made


def _fewer(x: Tensor, frames: int) -> tuple[Tensor, int]:
    """Every second frame: the largest of it and its neighbours; and how many there are now."""
    clips = torch.unflatten(x, 0, (-1, frames)).transpose(1, 2)
    made = F.max_pool3d(clips, (3, 1, 1), (2, 1, 1), (1, 0, 0)).transpose(1, 2)
    return made.flatten(0, 1), made.shape[1]


CONFIGS = {"tam_resnet18": TamConfig(18), "tam_resnet50": TamConfig(50)}
