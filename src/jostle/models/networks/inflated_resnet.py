"""ResNets of 18 and 50 layers with 3x3x3 convolutions, whole (I3D) or factorised (S3D).

Carreira and Zisserman, CVPR 2017; Xie et al., "Rethinking Spatiotemporal Feature Learning", ECCV 2018; as compared by
Chen et al., "Deep Analysis of CNN-based Spatio-temporal Representations for Action Recognition", CVPR 2021, whose
weights name tensors as torchvision's ResNets do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.networks.frame_convolution import Triple, convolution
from jostle.models.networks.pooled_head import DROPPED

DEPTHS = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}
ONE: Triple = (1, 1, 1)


@dataclass(frozen=True)
class InflatedConfig:
    """Settings of an inflated ResNet.

    Attributes:
        layers: 18 or 50.
        split: whether a 3x3x3 convolution is one over space and one over time.
        time_stride: whether stages take every second step, as they do every second place.
        classes: number of classes.
        width: channels of the stem.
    """

    layers: Literal[18, 50] = 50
    split: bool = False
    time_stride: bool = False
    classes: int = 400
    width: int = 64


class InflatedBasicBlock(nn.Module):
    """Residual block of two 3x3x3 convolutions."""

    expansion = 1

    def __init__(self, channels: int, width: int, stride: Triple, *, split: bool) -> None:
        super().__init__()
        add_convolution(self, "1", channels, width, stride, split=split)
        add_convolution(self, "2", width, width, ONE, split=split)
        self.downsample = projection(channels, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, width, T/stride, H/stride, W/stride)."""
        around = x if self.downsample is None else self.downsample(x)
        x = F.relu(apply_convolution(self, "1", x), inplace=True)
        return F.relu(around + apply_convolution(self, "2", x), inplace=True)


class InflatedBottleneck(nn.Module):
    """Residual bottleneck with a 3x3x3 convolution."""

    expansion = 4

    def __init__(self, channels: int, width: int, stride: Triple, *, split: bool) -> None:
        super().__init__()
        out = self.expansion * width
        self.conv1, self.bn1 = convolution(channels, width, ONE), nn.BatchNorm3d(width)
        add_convolution(self, "2", width, width, stride, split=split)
        self.conv3, self.bn3 = convolution(width, out, ONE), nn.BatchNorm3d(out)
        self.downsample = projection(channels, out, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, 4 * width, T/stride, H/stride, W/stride)."""
        around = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        x = F.relu(apply_convolution(self, "2", x), inplace=True)
        return F.relu(around + self.bn3(self.conv3(x)), inplace=True)


def add_convolution(block: nn.Module, number: str, channels: int, out: int, stride: Triple, *, split: bool) -> None:
    """Add a 3x3x3 convolution to a block as `conv1` and `bn1`; factorised, also `conv1_t` and `bn1_t`."""
    first = convolution(channels, out, (1, 3, 3), (1, *stride[1:])) if split else None
    block.add_module(f"conv{number}", first or convolution(channels, out, (3, 3, 3), stride))
    block.add_module(f"bn{number}", nn.BatchNorm3d(out))
    if split:
        block.add_module(f"conv{number}_t", convolution(out, out, (3, 1, 1), (stride[0], 1, 1)))
        block.add_module(f"bn{number}_t", nn.BatchNorm3d(out))


def apply_convolution(block: nn.Module, number: str, x: Tensor) -> Tensor:
    """Apply the convolution of `add_convolution`, including its last norm."""
    parts = dict(block.named_children())
    output: Tensor = parts[f"bn{number}"](parts[f"conv{number}"](x))
    if f"conv{number}_t" in parts:
        output = parts[f"bn{number}_t"](parts[f"conv{number}_t"](F.relu(output, inplace=True)))
    return output


def projection(channels: int, out: int, stride: Triple) -> nn.Sequential | None:
    """Return the projection of a residual connection; None where shapes agree."""
    if channels == out and stride == ONE:
        return None
    return nn.Sequential(convolution(channels, out, ONE, stride), nn.BatchNorm3d(out))


class InflatedResNet(nn.Module):
    """Stem, four stages, global mean and classifier."""

    def __init__(self, config: InflatedConfig = InflatedConfig()) -> None:  # noqa: B008
        super().__init__()
        self.config = config
        block = InflatedBasicBlock if config.layers == 18 else InflatedBottleneck
        self.conv1, self.bn1 = convolution(3, config.width, (3, 7, 7), (1, 2, 2)), nn.BatchNorm3d(config.width)
        self.maxpool = nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1))
        channels = config.width
        for number, depth in enumerate(DEPTHS[config.layers]):
            width = config.width * 2**number
            stride = ONE if number == 0 else (2 if config.time_stride else 1, 2, 2)
            first = block(channels, width, stride, split=config.split)
            channels = block.expansion * width
            rest = (block(channels, width, ONE, split=config.split) for _ in range(depth - 1))
            self.add_module(f"layer{number + 1}", nn.Sequential(first, *rest))
        self.drop = nn.Dropout(DROPPED)
        self.fc = nn.Linear(channels, config.classes)

    def forward(self, clips: Tensor) -> Tensor:
        """Return (B, classes) logits of (B, 3, T, H, W)."""
        x = self.maxpool(F.relu(self.bn1(self.conv1(clips)), inplace=True))
        for number in range(1, 5):
            x = self.get_submodule(f"layer{number}")(x)
        output: Tensor = self.fc(self.drop(x.mean((2, 3, 4))))
        return output


CONFIGS = {
    "i3d_resnet18": InflatedConfig(18),
    "i3d_resnet50": InflatedConfig(50),
    "s3d_resnet18": InflatedConfig(18, split=True),
    "s3d_resnet50": InflatedConfig(50, split=True),
}
