"""ResNets of 18 and 50 layers with 3x3x3 convolutions, whole (I3D) or factorised (S3D).

Carreira and Zisserman, CVPR 2017; Xie et al., "Rethinking Spatiotemporal Feature Learning", ECCV 2018; as compared by
Chen et al., "Deep Analysis of CNN-based Spatio-temporal Representations for Action Recognition", CVPR 2021, whose
weights name tensors as torchvision's ResNets do.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.networks.frame_resnet import DEPTHS, Layers
from jostle.models.networks.layers import DROPPED, ONE, Triple, convolution


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

    layers: Layers = 50
    split: bool = False
    time_stride: bool = False
    classes: int = 400
    width: int = 64


class InflatedBlock(nn.Module):
    """Residual block of two 3x3x3 convolutions, or a bottleneck with one between two of 1x1x1.

    Factorised, a 3x3x3 convolution `conv1` is one over space; `conv1_t` follows it over time.
    """

    def __init__(self, channels: int, width: int, stride: Triple, *, bottleneck: bool, split: bool) -> None:
        super().__init__()
        self.out, self.last = (4 * width, 3) if bottleneck else (width, 2)
        if bottleneck:
            self.conv1, self.bn1 = convolution(channels, width, ONE), nn.BatchNorm3d(width)
            self._add(2, width, width, stride, split=split)
            self.conv3, self.bn3 = convolution(width, self.out, ONE), nn.BatchNorm3d(self.out)
        else:
            self._add(1, channels, width, stride, split=split)
            self._add(2, width, width, ONE, split=split)
        self.downsample: nn.Module = nn.Identity()
        if channels != self.out or stride != ONE:
            self.downsample = nn.Sequential(convolution(channels, self.out, ONE, stride), nn.BatchNorm3d(self.out))

    def _add(self, number: int, channels: int, out: int, stride: Triple, *, split: bool) -> None:
        """Add a 3x3x3 convolution and its norm."""
        size, first = ((1, 3, 3), (1, *stride[1:])) if split else ((3, 3, 3), stride)
        self.add_module(f"conv{number}", convolution(channels, out, size, first))
        self.add_module(f"bn{number}", nn.BatchNorm3d(out))
        if split:
            self.add_module(f"conv{number}_t", convolution(out, out, (3, 1, 1), (stride[0], 1, 1)))
            self.add_module(f"bn{number}_t", nn.BatchNorm3d(out))

    def _apply_convolution(self, number: int, x: Tensor) -> Tensor:
        """Apply a convolution, including its last norm."""
        parts = dict(self.named_children())
        output: Tensor = parts[f"bn{number}"](parts[f"conv{number}"](x))
        if f"conv{number}_t" in parts:
            output = parts[f"bn{number}_t"](parts[f"conv{number}_t"](F.relu(output, inplace=True)))
        return output

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, out, T/stride, H/stride, W/stride)."""
        around = self.downsample(x)
        for number in range(1, self.last):
            x = F.relu(self._apply_convolution(number, x), inplace=True)
        return F.relu(around + self._apply_convolution(self.last, x), inplace=True)


class InflatedResNet(nn.Module):
    """Stem, four stages, global mean and classifier."""

    def __init__(self, config: InflatedConfig = InflatedConfig()) -> None:  # noqa: B008
        super().__init__()
        self.config = config
        self.conv1, self.bn1 = convolution(3, config.width, (3, 7, 7), (1, 2, 2)), nn.BatchNorm3d(config.width)
        self.maxpool = nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1))
        channels = config.width
        for number, depth in enumerate(DEPTHS[config.layers]):
            width = config.width * 2**number
            stride = ONE if number == 0 else (2 if config.time_stride else 1, 2, 2)
            blocks = []
            for index in range(depth):
                way = ONE if index else stride
                blocks.append(InflatedBlock(channels, width, way, bottleneck=config.layers == 50, split=config.split))
                channels = blocks[-1].out
            self.add_module(f"layer{number + 1}", nn.Sequential(*blocks))
        self.drop = nn.Dropout(DROPPED)
        self.fc = nn.Linear(channels, config.classes)

    def forward(self, clips: Tensor) -> Tensor:
        """Return (B, classes) logits of (B, 3, T, H, W)."""
        x = self.maxpool(F.relu(self.bn1(self.conv1(clips)), inplace=True))
        for number in range(1, 5):
            x = self.get_submodule(f"layer{number}")(x)
        output: Tensor = self.fc(self.drop(x.mean((2, 3, 4))))
        return output
