"""Video ResNets of 50 layers: Slow, C2D, I3D and R(2+1)D, which differ in their temporal kernels.

Feichtenhofer et al., "SlowFast Networks for Video Recognition", ICCV 2019 (Slow); Wang et al., "Non-local Neural
Networks", CVPR 2018 (C2D, I3D); Tran et al., "A Closer Look at Spatiotemporal Convolutions for Action Recognition",
CVPR 2018. Tensors are named as in PyTorchVideo, whose weights these are for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.networks.layers import ONE, Head, Triple, WindowMeans, convolution, named

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
    """Convolution of stride 2, optionally followed by a pool of stride 2."""

    def __init__(self, conv: nn.Module, out: int, *, pooled: bool = True) -> None:
        super().__init__()
        self.conv = conv
        self.norm = nn.BatchNorm3d(out)
        self.pool = nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1)) if pooled else None

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, out, T, H/4, W/4), or halves without a pool."""
        x = F.relu(self.norm(self.conv(x)), inplace=True)
        return x if self.pool is None else self.pool(x)


def stem_convolution(out: int, time: int) -> nn.Module:
    """Return the 7x7 convolution of a stem that sees so many frames."""
    return convolution(3, out, (time, 7, 7), (1, 2, 2))


def factorised_convolution(channels: int, stride: Triple) -> nn.Module:
    """Return a convolution over time, norm, ReLU, and a convolution over space, of equal width."""
    return named(
        conv_t=convolution(channels, channels, (3, 1, 1), (stride[0], 1, 1)),
        norm=nn.BatchNorm3d(channels),
        relu=nn.ReLU(inplace=True),
        conv_xy=convolution(channels, channels, (1, 3, 3), (1, *stride[1:])),
    )


class VideoBottleneck(nn.Module):
    """Bottleneck block of three convolutions.

    Args:
        time: steps that the first convolution sees.
        middle: makes the second convolution of so many channels.
        norm: makes the norm behind it.
        activation: what follows that.
    """

    def __init__(
        self,
        channels: int,
        inner: int,
        out: int,
        time: int,
        middle: Callable[[int], nn.Module],
        norm: Callable[[int], nn.Module] = nn.BatchNorm3d,
        activation: Callable[..., Tensor] = F.relu,
    ) -> None:
        super().__init__()
        self.conv_a, self.norm_a = convolution(channels, inner, (time, 1, 1)), nn.BatchNorm3d(inner)
        self.conv_b, self.norm_b = middle(inner), norm(inner)
        self.conv_c, self.norm_c = convolution(inner, out, ONE), nn.BatchNorm3d(out)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, out, T/stride, H/stride, W/stride)."""
        return self.after(self.conv_a(x))

    def after(self, x: Tensor) -> Tensor:
        """Apply the rest of the block to the output of the first convolution."""
        x = F.relu(self.norm_a(x), inplace=True)
        x = self.activation(self.norm_b(self.conv_b(x)), inplace=True)
        output: Tensor = self.norm_c(self.conv_c(x))
        return output


class VideoResidual(nn.Module):
    """Residual block around a bottleneck; the first of a stage projects its input, with a norm or without."""

    def __init__(
        self,
        channels: int,
        out: int,
        stride: Triple,
        bottleneck: Callable[[], VideoBottleneck],
        *,
        first: bool,
        normed: bool = True,
    ) -> None:
        super().__init__()
        self.branch1_conv = convolution(channels, out, ONE, stride) if first else None
        self.branch1_norm = nn.BatchNorm3d(out) if first and normed else None
        self.branch2 = bottleneck()

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
        around = x if self.branch1_conv is None else self.branch1_conv(x)
        around = around if self.branch1_norm is None else self.branch1_norm(around)
        return F.relu(around + branch, inplace=True)


class VideoStage(nn.Module):
    """Sequence of blocks, the first of which may halve the size."""

    def __init__(self, blocks: Iterable[VideoResidual]) -> None:
        super().__init__()
        self.res_blocks = nn.Sequential(*blocks)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, out, T/stride, H/stride, W/stride)."""
        output: Tensor = self.res_blocks(x)
        return output


def video_stage(
    channels: int, out: int, depth: int, times: Sequence[int], stride: Triple, *, split: bool = False
) -> VideoStage:
    """Return a stage whose blocks see by turns so many steps."""

    def block(number: int, time: int) -> VideoResidual:
        inputs, way = (out, ONE) if number else (channels, stride)

        def middle(inner: int) -> nn.Module:
            return factorised_convolution(inner, way) if split else convolution(inner, inner, (1, 3, 3), way)

        return VideoResidual(
            inputs, out, way, lambda: VideoBottleneck(inputs, out // EXPANSION, out, time, middle), first=number == 0
        )

    return VideoStage(block(number, time) for number, time in enumerate(islice(cycle(times), depth)))


class VideoResNet(nn.Module):
    """Stem, four stages and head, named `blocks` and numbered from 0, including a pool between stages."""

    def __init__(self, config: VideoResNetConfig) -> None:
        super().__init__()
        self.config = config
        blocks: list[nn.Module] = [
            VideoStem(stem_convolution(config.width, config.stem_time), config.width, pooled=not config.split)
        ]
        channels = config.width
        for number, (depth, times) in enumerate(zip(config.depths, config.times, strict=True)):
            if number == 1 and config.halves_time:
                blocks.append(nn.MaxPool3d((2, 1, 1)))
            out = EXPANSION * config.width * 2**number
            blocks.append(video_stage(channels, out, depth, times, _stride(number, config.split), split=config.split))
            channels = out
        self.blocks = nn.Sequential(*blocks, Head(channels, config.classes, WindowMeans(config.window)))

    def forward(self, clips: Tensor) -> Tensor:
        """Return (B, classes) logits of (B, 3, T, H, W)."""
        output: Tensor = self.blocks(clips)
        return output


def _stride(stage: int, split: bool) -> Triple:
    """Return the stride of a stage's first block."""
    if split:
        return (2 if stage >= 2 else 1, 2, 2)
    return ONE if stage == 0 else (1, 2, 2)


# I3D looks along time in every second block; the first stage is short of that rule.
I3D_TIMES: Times = ((3,), (3, 1), (3, 1), (1, 3))
CONFIGS = {
    "slow_r50": VideoResNetConfig((8, 7, 7)),
    "slow_r50_4x16": VideoResNetConfig((4, 7, 7)),
    "c2d_r50": VideoResNetConfig((4, 7, 7), ((1,),) * 4, halves_time=True),
    "i3d_r50": VideoResNetConfig((4, 7, 7), I3D_TIMES, stem_time=5, halves_time=True),
    "r2plus1d_r50": VideoResNetConfig((4, 7, 7), ((1,),) * 4, split=True),
}
