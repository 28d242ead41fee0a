"""X3D: a small network expanded along several axes, with depthwise convolutions.

Feichtenhofer, "X3D: Expanding Architectures for Efficient Video Recognition", CVPR 2020. Tensors are named as in
PyTorchVideo, where the stem's `conv_t` is the one over space and `conv_xy` the one over time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.networks.layers import ONE, FrameConvolution, Head, Triple, convolution, named, window_means
from jostle.models.networks.video_resnet import VideoBottleneck, VideoResidual, VideoStage, VideoStem

WIDEN = 2.25  # inner channels of a block for each that it gives


@dataclass(frozen=True)
class X3dConfig:
    """Settings of an X3D network.

    Attributes:
        window: of the head, in places of the last map.
        depths: blocks of each stage.
        widths: channels that each stage gives.
        weighers: of each stage, channels of the layer that weighs the others by what the whole clip shows.
        features: that the classifier sees.
        first_norm: whether the shortcut of the first stage has a norm, as in weights of the SlowFast code base.
        classes: number of classes.
    """

    window: Triple
    depths: tuple[int, ...] = (3, 5, 11, 7)
    widths: tuple[int, ...] = (24, 48, 96, 192)
    weighers: tuple[int, ...] = (8, 8, 16, 32)
    features: int = 2048
    first_norm: bool = False
    classes: int = 400


def depthwise_convolution(channels: int, size: Triple, stride: Triple = ONE) -> FrameConvolution:
    """Return a convolution with one filter per channel."""
    return convolution(channels, channels, size, stride, groups=channels)


def stem_filters(out: int) -> nn.Module:
    """Return a convolution over space with stride 2, then over time."""
    return named(conv_t=convolution(3, out, (1, 3, 3), (1, 2, 2)), conv_xy=depthwise_convolution(out, (5, 1, 1)))


class Weigher(nn.Module):
    """Squeeze-and-excitation over the whole clip."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv3d(channels, inner, 1), nn.ReLU(inplace=True), nn.Conv3d(inner, channels, 1), nn.Sigmoid()
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the same shape, (B, C, T, H, W)."""
        output: Tensor = x * self.block(x.mean((2, 3, 4), keepdim=True))
        return output


def x3d_stage(channels: int, out: int, depth: int, weigher: int, *, normed: bool) -> VideoStage:
    """Return a stage of inverted bottlenecks; every second one, from the first, has squeeze-and-excitation."""

    def block(number: int) -> VideoResidual:
        inputs, stride = (out, ONE) if number else (channels, (1, 2, 2))

        def norm(inner: int) -> nn.Module:
            return nn.Sequential(nn.BatchNorm3d(inner), nn.Identity() if number % 2 else Weigher(inner, weigher))

        def bottleneck() -> VideoBottleneck:
            middle = partial(depthwise_convolution, size=(3, 3, 3), stride=stride)
            return VideoBottleneck(inputs, int(WIDEN * out), out, 1, middle, norm, F.silu)

        return VideoResidual(inputs, out, stride, bottleneck, first=number == 0, normed=normed)

    return VideoStage(block(number) for number in range(depth))


class X3DPool(nn.Module):
    """Sliding-window means between two convolutions."""

    def __init__(self, channels: int, inner: int, features: int, window: Triple) -> None:
        super().__init__()
        self.window = window
        self.pre_conv = convolution(channels, inner, ONE)
        self.pre_norm = nn.BatchNorm3d(inner)
        self.post_conv = convolution(inner, features, ONE)

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, features) of (B, C, T, H, W): what is seen through each window, then their mean."""
        x = F.relu(self.pre_norm(self.pre_conv(x)), inplace=True)
        return F.relu(self.post_conv(window_means(x, self.window)), inplace=True).mean((2, 3, 4))


class X3d(nn.Module):
    """Stem, four stages and head, named `blocks` and numbered from 0."""

    def __init__(self, config: X3dConfig) -> None:
        super().__init__()
        self.config = config
        channels = config.widths[0]
        blocks: list[nn.Module] = [VideoStem(stem_filters(channels), channels, pooled=False)]
        for out, depth, weigher in zip(config.widths, config.depths, config.weighers, strict=True):
            normed = config.first_norm or out != channels
            blocks.append(x3d_stage(channels, out, depth, weigher, normed=normed))
            channels = out
        pool = X3DPool(channels, int(WIDEN * channels), config.features, config.window)
        self.blocks = nn.Sequential(*blocks, Head(config.features, config.classes, pool))

    def forward(self, clips: Tensor) -> Tensor:
        """Return (B, classes) logits of (B, 3, T, H, W)."""
        output: Tensor = self.blocks(clips)
        return output


CONFIGS = {
    "x3d_xs": X3dConfig((4, 5, 5)),
    "x3d_s": X3dConfig((13, 5, 5)),
    "x3d_m": X3dConfig((16, 7, 7)),
    "x3d_l": X3dConfig((16, 10, 10), depths=(5, 10, 25, 15)),
}
