"""Video ResNets of 50 layers: Slow, C2D, I3D and R(2+1)D, which differ in their temporal kernels.

Feichtenhofer et al., "SlowFast Networks for Video Recognition", ICCV 2019 (Slow); Wang et al., "Non-local Neural
Networks", CVPR 2018 (C2D, I3D); Tran et al., "A Closer Look at Spatiotemporal Convolutions for Action Recognition",
CVPR 2018. Tensors are named as in PyTorchVideo, whose weights these are for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.networks.frame_convolution import Triple, convolution
from jostle.models.networks.pooled_head import PooledHead

Times = tuple[tuple[int, ...], ...]
EXPANSION = 4  # a block gives four times as many channels as it works with


@dataclass(frozen=True)
class VideoResNetConfig:
    """Settings of a video ResNet.

    Attributes:
        window: of the head, in places of the last map.
        times: by stage, how many steps the first convolution of its blocks sees, over and over.
        stem_time: likewise, of the stem.
        halves_time: whether a pool between the first two stages takes every second step.
        split: the middle convolution of a block is one over time and one over space, and it is them that take every
            second step; there is no pool behind the stem then, and the first stage halves too.
        classes: number of classes.
        depths: blocks of each stage.
        width: channels of the stem, and of the work in the first stage.
    """

    window: Triple
    times: Times = ((1,), (1,), (3,), (3,))
    stem_time: int = 1
    halves_time: bool = False
    split: bool = False
    classes: int = 400
    depths: tuple[int, ...] = (3, 4, 6, 3)
    width: int = 64


class VideoStem(nn.Module):
    """Convolution of stride 2, followed by a pool of stride 2."""

    def __init__(self, channels: int, out: int, time: int, *, pooled: bool = True) -> None:
        super().__init__()
        self.conv = convolution(channels, out, (time, 7, 7), (1, 2, 2))
        self.norm = nn.BatchNorm3d(out)
        self.pool = nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1)) if pooled else None

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, out, T, H/4, W/4), or halves without a pool."""
        x = F.relu(self.norm(self.conv(x)), inplace=True)
        return x if self.pool is None else self.pool(x)


class VideoFactorisedConvolution(nn.Module):
    """Convolution over time, norm, ReLU, and convolution over space, of equal width."""

    def __init__(self, channels: int, stride: Triple) -> None:
        super().__init__()
        self.conv_t = convolution(channels, channels, (3, 1, 1), (stride[0], 1, 1))
        self.norm = nn.BatchNorm3d(channels)
        self.conv_xy = convolution(channels, channels, (1, 3, 3), (1, *stride[1:]))

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, C, T/stride, H/stride, W/stride)."""
        output: Tensor = self.conv_xy(F.relu(self.norm(self.conv_t(x)), inplace=True))
        return output


class VideoBottleneck(nn.Module):
    """Bottleneck block of three convolutions."""

    def __init__(self, channels: int, inner: int, out: int, time: int, stride: Triple, *, split: bool) -> None:
        super().__init__()
        self.conv_a = convolution(channels, inner, (time, 1, 1))
        self.norm_a = nn.BatchNorm3d(inner)
        self.conv_b = (
            VideoFactorisedConvolution(inner, stride) if split else convolution(inner, inner, (1, 3, 3), stride)
        )
        self.norm_b = nn.BatchNorm3d(inner)
        self.conv_c = convolution(inner, out, (1, 1, 1))
        self.norm_c = nn.BatchNorm3d(out)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, out, T/stride, H/stride, W/stride)."""
        return self.after(self.conv_a(x))

    def after(self, x: Tensor) -> Tensor:
        """Apply the rest of the block to the output of the first convolution."""
        x = F.relu(self.norm_a(x), inplace=True)
        x = F.relu(self.norm_b(self.conv_b(x)), inplace=True)
        output: Tensor = self.norm_c(self.conv_c(x))
        return output


class VideoResidual(nn.Module):
    """Residual bottleneck; the first block of a stage projects its input."""

    def __init__(self, channels: int, out: int, time: int, stride: Triple, *, first: bool, split: bool) -> None:
        super().__init__()
        if first:
            self.branch1_conv = convolution(channels, out, (1, 1, 1), stride)
            self.branch1_norm = nn.BatchNorm3d(out)
        self.branch2 = VideoBottleneck(channels, out // EXPANSION, out, time, stride, split=split)
        self.first = first

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, out, T/stride, H/stride, W/stride)."""
        return self._around(x, self.branch2(x))

    def of_three(self, near: Tensor) -> Tensor:
        """Return (N, out, H/stride, W/stride) of frames from (N, 3, C, H, W): previous, current and next.

        For blocks whose first convolution sees three frames: side by side, their channels are those of one.
        """
        weight = self.branch2.conv_a.weight.transpose(1, 2).flatten(1, 2)  # (inner, 3 C, 1, 1)
        flat = near.flatten(1, 2).contiguous(memory_format=torch.channels_last)
        hidden = F.conv2d(flat, weight)[:, :, None]
        return self._around(near[:, 1][:, :, None], self.branch2.after(hidden))[:, :, 0]

    def _around(self, x: Tensor, branch: Tensor) -> Tensor:
        """Add the residual connection to the branch."""
        around = self.branch1_norm(self.branch1_conv(x)) if self.first else x
        return F.relu(around + branch, inplace=True)


class VideoStage(nn.Module):
    """Sequence of blocks, the first of which may halve the size."""

    def __init__(
        self, channels: int, out: int, depth: int, times: Sequence[int], stride: Triple, *, split: bool = False
    ) -> None:
        super().__init__()
        self.res_blocks = nn.Sequential(
            *(
                VideoResidual(channels, out, time, stride, first=True, split=split)
                if number == 0
                else VideoResidual(out, out, time, (1, 1, 1), first=False, split=split)
                for number, time in enumerate(islice(cycle(times), depth))
            )
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, out, T/stride, H/stride, W/stride)."""
        output: Tensor = self.res_blocks(x)
        return output


class VideoResNet(nn.Module):
    """Stem, four stages and head, named `blocks` and numbered from 0, including a pool between stages."""

    def __init__(self, config: VideoResNetConfig) -> None:
        super().__init__()
        self.config = config
        blocks: list[nn.Module] = [VideoStem(3, config.width, config.stem_time, pooled=not config.split)]
        channels = config.width
        for number, (depth, times) in enumerate(zip(config.depths, config.times, strict=True)):
            if number == 1 and config.halves_time:
                blocks.append(nn.MaxPool3d((2, 1, 1)))
            out = EXPANSION * config.width * 2**number
            blocks.append(VideoStage(channels, out, depth, times, _stride(number, config.split), split=config.split))
            channels = out
        self.blocks = nn.Sequential(*blocks, PooledHead(channels, config.classes, config.window))

    def forward(self, clips: Tensor) -> Tensor:
        """Return (B, classes) logits of (B, 3, T, H, W)."""
        output: Tensor = self.blocks(clips)
        return output


def _stride(stage: int, split: bool) -> Triple:
    """Return the stride of a stage's first block."""
    if split:
        return (2 if stage >= 2 else 1, 2, 2)
    return (1, 1, 1) if stage == 0 else (1, 2, 2)


# I3D looks along time in every second block; the first stage is short of that rule.
I3D_TIMES: Times = ((3,), (3, 1), (3, 1), (1, 3))
CONFIGS = {
    "slow_r50": VideoResNetConfig((8, 7, 7)),
    "slow_r50_4x16": VideoResNetConfig((4, 7, 7)),
    "c2d_r50": VideoResNetConfig((4, 7, 7), ((1,),) * 4, halves_time=True),
    "i3d_r50": VideoResNetConfig((4, 7, 7), I3D_TIMES, stem_time=5, halves_time=True),
    "r2plus1d_r50": VideoResNetConfig((4, 7, 7), ((1,),) * 4, split=True),
}
