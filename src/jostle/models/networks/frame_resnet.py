"""2D ResNets of 18 and 50 layers whose blocks mix channels with neighbouring frames, and the TAM network.

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

from jostle.models.networks.layers import DROPPED

Layers = Literal[18, 50]
DEPTHS: dict[Layers, tuple[int, ...]] = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}
STAGES = 4


def frame_convolution(channels: int, out: int, size: int, stride: int) -> nn.Conv2d:
    """Return a convolution of frames with "same" padding."""
    return nn.Conv2d(channels, out, size, stride, size // 2, bias=False)


class FrameBlock(nn.Module):
    """Residual block of two 3x3 convolutions, or a bottleneck of 1x1, 3x3 and 1x1; subclasses mix frames before it.

    Tensors are named as torchvision's ResNets name theirs.
    """

    def __init__(self, channels: int, width: int, stride: int, *, bottleneck: bool) -> None:
        super().__init__()
        self.out, self.bottleneck = width * (4 if bottleneck else 1), bottleneck
        first, second = ((1, 1), (3, stride)) if bottleneck else ((3, stride), (3, 1))  # size and stride
        self.conv1: nn.Module = frame_convolution(channels, width, *first)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2, self.bn2 = frame_convolution(width, width, *second), nn.BatchNorm2d(width)
        if bottleneck:
            self.conv3, self.bn3 = frame_convolution(width, self.out, 1, 1), nn.BatchNorm2d(self.out)
        self.downsample: nn.Module = nn.Identity()
        if channels != self.out or stride > 1:
            self.downsample = nn.Sequential(frame_convolution(channels, self.out, 1, stride), nn.BatchNorm2d(self.out))

    def mix(self, x: Tensor, frames: int) -> Tensor:
        """Return the input of the first convolution, (B * T, C, H, W) of the same."""
        raise NotImplementedError

    def forward(self, x: Tensor, frames: int) -> Tensor:
        """Return a tensor of shape (B * T, out, H/stride, W/stride)."""
        return self.after(self.conv1(self.mix(x, frames)), x)

    def after(self, hidden: Tensor, x: Tensor) -> Tensor:
        """Apply the rest of the block to the output of the first convolution, and add the residual."""
        hidden = self.bn2(self.conv2(F.relu(self.bn1(hidden), inplace=True)))
        if self.bottleneck:
            hidden = self.bn3(self.conv3(F.relu(hidden, inplace=True)))
        return F.relu(self.downsample(x) + hidden, inplace=True)


class FrameResNet(nn.Module):
    """Stem and four stages of blocks that see single frames and their neighbours."""

    def __init__(self, layers: Layers, width: int, block: type[FrameBlock]) -> None:
        super().__init__()
        self.conv1, self.bn1 = frame_convolution(3, width, 7, 2), nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.out = width
        for number, depth in enumerate(DEPTHS[layers]):
            blocks = []
            for index in range(depth):
                stride = 2 if number and not index else 1
                blocks.append(block(self.out, width << number, stride, bottleneck=layers == 50))
                self.out = blocks[-1].out
            self.add_module(f"layer{number + 1}", nn.ModuleList(blocks))

    def stem(self, frames: Tensor) -> Tensor:
        """Return (N, width, H / 4, W / 4) of (N, 3, H, W), before frames are mixed."""
        x = frames.contiguous(memory_format=torch.channels_last)
        output: Tensor = self.maxpool(F.relu(self.bn1(self.conv1(x)), inplace=True))
        return output

    def stage(self, number: int) -> list[FrameBlock]:
        """Return the blocks of a stage."""
        return [block for block in self.get_submodule(f"layer{number + 1}").children() if isinstance(block, FrameBlock)]


@dataclass(frozen=True)
class TamConfig:
    """Settings of a TAM ResNet.

    Attributes:
        layers: 18 or 50.
        time_stride: whether a pool after each of the first three stages takes every second step.
        classes: number of classes.
        width: channels of the stem.
    """

    layers: Layers = 50
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


class TamBlock(FrameBlock):
    """Residual block with temporal aggregation."""

    def __init__(self, channels: int, width: int, stride: int, *, bottleneck: bool) -> None:
        super().__init__(channels, width, stride, bottleneck=bottleneck)
        self.tam = Aggregation(channels)

    def mix(self, x: Tensor, frames: int) -> Tensor:
        """Return the weighted sums of neighbouring frames."""
        output: Tensor = self.tam(x, frames)
        return output


class TamResNet(FrameResNet):
    """Stem, four stages, global mean and classifier."""

    def __init__(self, config: TamConfig = TamConfig()) -> None:  # noqa: B008
        super().__init__(config.layers, config.width, TamBlock)
        self.config = config
        self.drop = nn.Dropout(DROPPED)
        self.fc = nn.Linear(self.out, config.classes)

    def see(self, clips: Tensor) -> Tensor:
        """Return (B, T, C, h, w), what the last stage makes of (B, 3, T, H, W)."""
        count, _, frames = clips.shape[:3]
        x = self.stem(clips.transpose(1, 2).flatten(0, 1))
        for number in range(STAGES):
            for block in self.stage(number):
                x = block(x, frames)
            if self.config.time_stride and number < STAGES - 1:
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
