"""X3D: a small network expanded along several axes, with depthwise convolutions.

Feichtenhofer, "X3D: Expanding Architectures for Efficient Video Recognition", CVPR 2020. Tensors are named as in
PyTorchVideo, where the stem's `conv_t` is the one over space and `conv_xy` the one over time.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.networks.frame_convolution import FrameConvolution, Triple, convolution
from jostle.models.networks.pooled_head import DROPPED, window_means

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


def depthwise_convolution(channels: int, size: Triple, stride: Triple = (1, 1, 1)) -> FrameConvolution:
    """Return a convolution with one filter per channel."""
    return convolution(channels, channels, size, stride, groups=channels)


class StemFilters(nn.Module):
    """Convolution over space with stride 2, then over time."""

    def __init__(self, out: int) -> None:
        super().__init__()
        self.conv_t = convolution(3, out, (1, 3, 3), (1, 2, 2))
        self.conv_xy = depthwise_convolution(out, (5, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, out, T, H/2, W/2)."""
        output: Tensor = self.conv_xy(self.conv_t(x))
        return output


class X3DStem(nn.Module):
    """Stem filters, norm and ReLU."""

    def __init__(self, out: int) -> None:
        super().__init__()
        self.conv = StemFilters(out)
        self.norm = nn.BatchNorm3d(out)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, out, T, H/2, W/2)."""
        return F.relu(self.norm(self.conv(x)), inplace=True)


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


class X3DBottleneck(nn.Module):
    """Inverted bottleneck with a depthwise convolution."""

    def __init__(self, channels: int, out: int, weigher: int | None, stride: Triple) -> None:
        super().__init__()
        inner = int(WIDEN * out)
        self.conv_a = convolution(channels, inner, (1, 1, 1))
        self.norm_a = nn.BatchNorm3d(inner)
        self.conv_b = depthwise_convolution(inner, (3, 3, 3), stride)
        weighed = nn.Identity() if weigher is None else Weigher(inner, weigher)
        self.norm_b = nn.Sequential(nn.BatchNorm3d(inner), weighed)
        self.conv_c = convolution(inner, out, (1, 1, 1))
        self.norm_c = nn.BatchNorm3d(out)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, out, T, H/stride, W/stride)."""
        x = F.relu(self.norm_a(self.conv_a(x)), inplace=True)
        x = F.silu(self.norm_b(self.conv_b(x)), inplace=True)
        output: Tensor = self.norm_c(self.conv_c(x))
        return output


class X3DResidual(nn.Module):
    """Residual block; the first of a stage projects its input."""

    def __init__(self, channels: int, out: int, weigher: int | None, *, first: bool, normed: bool) -> None:
        super().__init__()
        stride = (1, 2, 2) if first else (1, 1, 1)
        self.branch1_conv = convolution(channels, out, (1, 1, 1), stride) if first else None
        self.branch1_norm = nn.BatchNorm3d(out) if first and normed else None
        self.branch2 = X3DBottleneck(channels, out, weigher, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, out, T, H/stride, W/stride)."""
        around = x if self.branch1_conv is None else self.branch1_conv(x)
        if self.branch1_norm is not None:
            around = self.branch1_norm(around)
        return F.relu(around + self.branch2(x), inplace=True)


class X3DStage(nn.Module):
    """Sequence of blocks; every second one, from the first, has squeeze-and-excitation."""

    def __init__(self, channels: int, out: int, depth: int, weigher: int, *, normed: bool) -> None:
        super().__init__()
        self.res_blocks = nn.Sequential(
            *(
                X3DResidual(
                    out if number else channels,
                    out,
                    None if number % 2 else weigher,
                    first=number == 0,
                    normed=normed,
                )
                for number in range(depth)
            )
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, out, T, H/2, W/2)."""
        output: Tensor = self.res_blocks(x)
        return output


class X3DPool(nn.Module):
    """Sliding-window means between two convolutions."""

    def __init__(self, channels: int, inner: int, features: int, window: Triple) -> None:
        super().__init__()
        self.window = window
        self.pre_conv = convolution(channels, inner, (1, 1, 1))
        self.pre_norm = nn.BatchNorm3d(inner)
        self.post_conv = convolution(inner, features, (1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, features) of (B, C, T, H, W): what is seen through each window, then their mean."""
        x = F.relu(self.pre_norm(self.pre_conv(x)), inplace=True)
        return F.relu(self.post_conv(window_means(x, self.window)), inplace=True).mean((2, 3, 4))


class X3DHead(nn.Module):
    """Pooled features and the classifier."""

    def __init__(self, config: X3dConfig) -> None:
        super().__init__()
        channels = config.widths[-1]
        self.pool = X3DPool(channels, int(WIDEN * channels), config.features, config.window)
        self.drop = nn.Dropout(DROPPED)
        self.proj = nn.Linear(config.features, config.classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, classes) logits of a feature map."""
        output: Tensor = self.proj(self.drop(self.pool(x)))
        return output


class X3d(nn.Module):
    """Stem, four stages and head, named `blocks` and numbered from 0."""

    def __init__(self, config: X3dConfig) -> None:
        super().__init__()
        self.config = config
        channels = config.widths[0]
        blocks: list[nn.Module] = [X3DStem(channels)]
        for out, depth, weigher in zip(config.widths, config.depths, config.weighers, strict=True):
            normed = config.first_norm or out != channels
            blocks.append(X3DStage(channels, out, depth, weigher, normed=normed))
            channels = out
        self.blocks = nn.Sequential(*blocks, X3DHead(config))

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
