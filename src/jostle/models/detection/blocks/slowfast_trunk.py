"""SlowFast as the trunk of a detector of frames, after Feichtenhofer et al. (2019), with the tensors of MMAction.

It differs from `jostle.models.networks.slowfast`, which is PyTorchVideo's: what the fast path tells the slow one has
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
TOLD_OVER = 5  # steps of the fast path that are told to the slow one together
DEPTHS = (3, 4, 6, 3)
WIDTH = 64  # channels of the slow stem
FUSED = 4  # frames a step of what comes out


class NormedConv(nn.Module):
    """A convolution, a norm and, mostly, ReLU."""

    def __init__(self, channels: int, out: int, size: Triple, stride: Triple = (1, 1, 1), *, relu: bool = True) -> None:
        super().__init__()
        self.conv = convolution(channels, out, size, stride)
        self.bn = nn.BatchNorm3d(out)
        self.relu = nn.ReLU(inplace=True) if relu else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.relu(self.bn(self.conv(x)))
        return made


class Bottleneck(nn.Module):
    """Fewer channels, a look around, more channels again; the input passes by, in the first of a stage made to fit."""

    def __init__(self, channels: int, inner: int, time: int, stride: Triple, *, first: bool) -> None:
        super().__init__()
        out = EXPANSION * inner
        self.conv1 = NormedConv(channels, inner, (time, 1, 1))
        self.conv2 = NormedConv(inner, inner, (1, 3, 3), stride)
        self.conv3 = NormedConv(inner, out, (1, 1, 1), relu=False)
        self.downsample = NormedConv(channels, out, (1, 1, 1), stride, relu=False) if first else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """(B, 4 inner, T, H/stride, W/stride)."""
        return F.relu(self.downsample(x) + self.conv3(self.conv2(self.conv1(x))), inplace=True)


class Told(nn.Module):
    """What the fast path sees, at the steps of the slow one, in twice the channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = convolution(channels, 2 * channels, (TOLD_OVER, 1, 1), (ALPHA, 1, 1))

    def forward(self, fast: Tensor) -> Tensor:
        """(B, 2 channels, T/8, H, W)."""
        made: Tensor = self.conv(fast)
        return made


class Path(nn.Module):
    """Stem and four stages; in the slow path, what it is told before each of these.

    Args:
        width: channels of the stem.
        times: steps that the stem sees, and the first convolution of each stage's blocks.
        told: channels of the other path's stem, 0 for the path that is told nothing.
    """

    def __init__(self, width: int, times: tuple[int, ...], told: int = 0) -> None:
        super().__init__()
        self.conv1 = NormedConv(3, width, (times[0], 7, 7), (1, 2, 2))
        self.maxpool = nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1))
        channels = width
        for number, (depth, time) in enumerate(zip(DEPTHS, times[1:], strict=True)):
            if told:
                other = told if number == 0 else EXPANSION * told << number - 1
                self.add_module(f"{_before(number)}_lateral", Told(other))
                channels += 2 * other
            inner = width << number
            blocks = []
            for block in range(depth):
                stride = (1, 2, 2) if number and not block else (1, 1, 1)
                blocks.append(Bottleneck(channels, inner, time, stride, first=not block))
                channels = EXPANSION * inner
            self.add_module(f"layer{number + 1}", nn.Sequential(*blocks))

    def stem(self, clips: Tensor) -> Tensor:
        """(B, width, T, H/4, W/4)."""
        made: Tensor = self.maxpool(self.conv1(clips))
        return made

    def stage(self, number: int, x: Tensor, other: Tensor | None = None) -> Tensor:
        """What is seen after a stage, from what was seen before it, and what the other path saw then."""
        if other is not None:
            x = torch.cat([x, self.get_submodule(f"{_before(number)}_lateral")(other)], 1)
        made: Tensor = self.get_submodule(f"layer{number + 1}")(x)
        return made


def _before(stage: int) -> str:
    return f"layer{stage}" if stage else "conv1"


class SlowFastTrunk(FixedNorms):
    """SlowFast of 50 layers, 4 x 16, without its classifier; both paths beside each other, four frames a step.

    Args:
        width: share of SlowFast's channels.
        fixed_norms: training leaves the norms as they are.
    """

    def __init__(self, width: float, *, fixed_norms: bool = True) -> None:
        super().__init__()
        slow, fast = self.bases(width)
        self.slow_path = Path(slow, (1, 1, 1, 3, 3), told=fast)
        self.fast_path = Path(fast, (5, 3, 3, 3, 3))
        for module in self.modules():
            if isinstance(module, nn.Conv3d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        if fixed_norms:
            self.fix_norms()

    @staticmethod
    def bases(width: float) -> tuple[int, int]:
        """Channels of the slow and the fast stem."""
        slow = max(round(WIDTH * width), 1)
        return slow, max(slow // NARROWER, 1)

    @classmethod
    def channels(cls, width: float) -> int:
        """Of what comes out."""
        return EXPANSION * sum(cls.bases(width)) << len(DEPTHS) - 1

    def forward(self, clips: Tensor) -> Tensor:
        """(B, 2304, T/4) from (B, 3, T, H, W), T a multiple of 8."""
        slow, fast = self.slow_path.stem(clips[:, :, ::ALPHA]), self.fast_path.stem(clips)
        for number in range(len(DEPTHS)):
            slow, fast = self.slow_path.stage(number, slow, fast), self.fast_path.stage(number, fast)
        return torch.cat([twice_as_fine(slow.mean((3, 4))), four_to_one(fast.mean((3, 4)))], 1)


def twice_as_fine(x: Tensor) -> Tensor:
    """(B, C, 2 T) by linear interpolation."""
    return F.interpolate(x, scale_factor=ALPHA / FUSED, mode="linear", align_corners=False)


def four_to_one(x: Tensor) -> Tensor:
    """(B, C, T / 4) by linear interpolation, which sees the middle two of each four.

    >>> four_to_one(torch.tensor([[[9.0, 1.0, 3.0, 9.0]]])).item()
    2.0
    """
    return torch.unflatten(x, -1, (-1, FUSED))[..., 1:3].mean(-1)
