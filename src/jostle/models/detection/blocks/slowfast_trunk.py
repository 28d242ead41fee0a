"""SlowFast trunk for frame detectors (Feichtenhofer et al., 2019), with MMAction's parameter names.

It differs from `jostle.models.networks.slowfast`, which is PyTorchVideo's: its lateral connections have
neither norm nor ReLU, and the slow path sees every eighth frame from the first on.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.models.detection.blocks.trunks import FixedNorms
from jostle.models.networks.frame_convolution import Triple, convolution
from jostle.models.networks.video_resnet import EXPANSION

ALPHA = 8  # fast frames for each slow one
NARROWER = 8  # channels of the slow path for each of the fast one
FUSION_KERNEL = 5  # steps of the fast path that a lateral connection covers
DEPTHS = (3, 4, 6, 3)
WIDTH = 64  # channels of the slow stem
FUSED = 4  # frames a step of what comes out


class NormedConv(nn.Module):
    """Convolution and norm, optionally followed by ReLU."""

    def __init__(self, channels: int, out: int, size: Triple, stride: Triple = (1, 1, 1), *, relu: bool = True) -> None:
        super().__init__()
        self.conv = convolution(channels, out, size, stride)
        self.bn = nn.BatchNorm3d(out)
        self.relu = nn.ReLU(inplace=True) if relu else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.relu(self.bn(self.conv(x)))
        return output


class TrunkBottleneck(nn.Module):
    """Residual bottleneck; the first of a stage projects its input."""

    def __init__(self, channels: int, inner: int, time: int, stride: Triple, *, first: bool) -> None:
        super().__init__()
        out = EXPANSION * inner
        self.conv1 = NormedConv(channels, inner, (time, 1, 1))
        self.conv2 = NormedConv(inner, inner, (1, 3, 3), stride)
        self.conv3 = NormedConv(inner, out, (1, 1, 1), relu=False)
        self.downsample = NormedConv(channels, out, (1, 1, 1), stride, relu=False) if first else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, 4 inner, T, H/stride, W/stride)."""
        return F.relu(self.downsample(x) + self.conv3(self.conv2(self.conv1(x))), inplace=True)


class TrunkLateralFusion(nn.Module):
    """Lateral connection from the fast to the slow path, with twice the channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = convolution(channels, 2 * channels, (FUSION_KERNEL, 1, 1), (ALPHA, 1, 1))

    def forward(self, fast: Tensor) -> Tensor:
        """Return a tensor of shape (B, 2 channels, T/8, H, W)."""
        output: Tensor = self.conv(fast)
        return output


class Path(nn.Module):
    """Stem and four stages of one path; the slow one takes lateral connections.

    Args:
        width: channels of the stem.
        times: steps that the stem sees, and the first convolution of each stage's blocks.
        lateral: channels of the other path's stem, 0 without lateral connections.
    """

    def __init__(self, width: int, times: tuple[int, ...], lateral: int = 0) -> None:
        super().__init__()
        self.conv1 = NormedConv(3, width, (times[0], 7, 7), (1, 2, 2))
        self.maxpool = nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1))
        channels = width
        for number, (depth, time) in enumerate(zip(DEPTHS, times[1:], strict=True)):
            if lateral:
                other = lateral if number == 0 else EXPANSION * lateral << number - 1
                self.add_module(f"{_before(number)}_lateral", TrunkLateralFusion(other))
                channels += 2 * other
            inner = width << number
            blocks = []
            for block in range(depth):
                stride = (1, 2, 2) if number and not block else (1, 1, 1)
                blocks.append(TrunkBottleneck(channels, inner, time, stride, first=not block))
                channels = EXPANSION * inner
            self.add_module(f"layer{number + 1}", nn.Sequential(*blocks))

    def stem(self, clips: Tensor) -> Tensor:
        """Return a tensor of shape (B, width, T, H/4, W/4)."""
        output: Tensor = self.maxpool(self.conv1(clips))
        return output

    def stage(self, number: int, x: Tensor, other: Tensor | None = None) -> Tensor:
        """Apply a stage, with the lateral connection from the other path."""
        if other is not None:
            x = torch.cat([x, self.get_submodule(f"{_before(number)}_lateral")(other)], 1)
        output: Tensor = self.get_submodule(f"layer{number + 1}")(x)
        return output


def _before(stage: int) -> str:
    return f"layer{stage}" if stage else "conv1"


class SlowFastTrunk(FixedNorms):
    """SlowFast of 50 layers, 4 x 16, without its classifier; four frames per step.

    Args:
        width: share of SlowFast's channels.
        fixed_norms: training leaves the norms as they are.
    """

    def __init__(self, width: float, *, fixed_norms: bool = True) -> None:
        super().__init__()
        slow, fast = self.bases(width)
        self.slow_path = Path(slow, (1, 1, 1, 3, 3), lateral=fast)
        self.fast_path = Path(fast, (5, 3, 3, 3, 3))
        for module in self.modules():
            if isinstance(module, nn.Conv3d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        if fixed_norms:
            self.fix_norms()

    @staticmethod
    def bases(width: float) -> tuple[int, int]:
        """Return the numbers of channels of the slow and the fast stem."""
        slow = max(round(WIDTH * width), 1)
        return slow, max(slow // NARROWER, 1)

    @classmethod
    def channels(cls, width: float) -> int:
        """Return the number of output channels."""
        return EXPANSION * sum(cls.bases(width)) << len(DEPTHS) - 1

    def forward(self, clips: Tensor) -> Tensor:
        """Return (B, 2304, T/4) from (B, 3, T, H, W), T a multiple of 8."""
        slow, fast = self.slow_path.stem(clips[:, :, ::ALPHA]), self.fast_path.stem(clips)
        for number in range(len(DEPTHS)):
            slow, fast = self.slow_path.stage(number, slow, fast), self.fast_path.stage(number, fast)
        return torch.cat([twice_as_fine(slow.mean((3, 4))), four_to_one(fast.mean((3, 4)))], 1)


def twice_as_fine(x: Tensor) -> Tensor:
    """Return (B, C, 2 T) by linear interpolation."""
    return F.interpolate(x, scale_factor=ALPHA / FUSED, mode="linear", align_corners=False)


def four_to_one(x: Tensor) -> Tensor:
    """Return (B, C, T / 4) by linear interpolation, which sees the middle two of each four.

    >>> four_to_one(torch.tensor([[[9.0, 1.0, 3.0, 9.0]]])).item()
    2.0
    """
    return torch.unflatten(x, -1, (-1, FUSED))[..., 1:3].mean(-1)
