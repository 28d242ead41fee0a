"""TSM trunk for frame detectors: a 2D ResNet whose frames exchange channels with their neighbours.

Lin, Gan, Han: "TSM: Temporal Shift Module for Efficient Video Understanding", ICCV 2019. Tensors are named as
torchvision's ResNets name theirs; the first convolution of every block, before which channels are traded, is `net`.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.models.detection.blocks.trunks import FixedNorms
from jostle.models.networks.inflated_resnet import DEPTHS

SHARE = 8  # one channel of so many comes from the next frame, and one from the one before
WIDTH = 64  # channels of the stem
STAGES = 4


class Shifted(nn.Module):
    """Convolution of frames after a temporal shift of channels."""

    def __init__(self, channels: int, out: int, size: int, stride: int) -> None:
        super().__init__()
        self.net = nn.Conv2d(channels, out, size, stride, size // 2, bias=False)

    def forward(self, x: Tensor, frames: int) -> Tensor:
        """Return a tensor of shape (B * T, out, H/stride, W/stride)."""
        output: Tensor = self.net(shifted(x, frames))
        return output


def shifted(x: Tensor, frames: int) -> Tensor:
    """(B * T, C, H, W) whose first eighth of channels is the next frame's, and the second that of the one before.

    >>> shifted(torch.arange(1.0, 4).repeat(8, 1).T[..., None, None], 3)[:, :3, 0, 0].tolist()
    [[2.0, 0.0, 1.0], [3.0, 1.0, 2.0], [0.0, 2.0, 3.0]]
    """
    share = x.shape[1] // SHARE
    clips = torch.unflatten(x, 0, (-1, frames))
    output = x.clone()
    traded = torch.unflatten(output, 0, (-1, frames))
    traded[:, :-1, :share], traded[:, -1, :share] = clips[:, 1:, :share], 0
    traded[:, 1:, share : 2 * share], traded[:, 0, share : 2 * share] = clips[:, :-1, share : 2 * share], 0
    return output


class ShiftBasicBlock(nn.Module):
    """Residual block of two 3 x 3 convolutions, the first after a temporal shift."""

    expansion = 1

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = Shifted(channels, width, 3, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = _fitted(channels, width, stride)

    def forward(self, x: Tensor, frames: int) -> Tensor:
        """Return a tensor of shape (B * T, width, H/stride, W/stride)."""
        return self.after(self.conv1(x, frames), x)

    def after(self, hidden: Tensor, x: Tensor) -> Tensor:
        """Apply the rest of the block to the output of the first convolution, and add the residual."""
        hidden = F.relu(self.bn1(hidden), inplace=True)
        return F.relu(self.downsample(x) + self.bn2(self.conv2(hidden)), inplace=True)


class ShiftBottleneck(nn.Module):
    """Residual bottleneck whose first convolution follows a temporal shift."""

    expansion = 4

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = self.expansion * width
        self.conv1 = Shifted(channels, width, 1, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out)
        self.downsample = _fitted(channels, out, stride)

    def forward(self, x: Tensor, frames: int) -> Tensor:
        """Return a tensor of shape (B * T, 4 width, H/stride, W/stride)."""
        return self.after(self.conv1(x, frames), x)

    def after(self, hidden: Tensor, x: Tensor) -> Tensor:
        """Apply the rest of the block to the output of the first convolution, and add the residual."""
        hidden = F.relu(self.bn1(hidden), inplace=True)
        hidden = F.relu(self.bn2(self.conv2(hidden)), inplace=True)
        return F.relu(self.downsample(x) + self.bn3(self.conv3(hidden)), inplace=True)


def _fitted(channels: int, out: int, stride: int) -> nn.Module:
    if channels == out and stride == 1:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))


class ShiftTrunk(FixedNorms):
    """TSM of 18 or 50 layers without its classifier; one step per frame.

    Args:
        width: share of the channels.
        fixed_norms: training leaves the norms as they are.
    """

    def __init__(self, layers: Literal[18, 50], width: float, *, fixed_norms: bool = True) -> None:
        super().__init__()
        block, base = _block(layers), _base(width)
        self.conv1 = nn.Conv2d(3, base, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(base)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        channels = base
        for number, depth in enumerate(DEPTHS[layers]):
            blocks = []
            for place in range(depth):
                blocks.append(block(channels, base << number, 2 if number and not place else 1))
                channels = block.expansion * (base << number)
            self.add_module(f"layer{number + 1}", nn.ModuleList(blocks))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        if fixed_norms:
            self.fix_norms()

    @staticmethod
    def channels(layers: Literal[18, 50], width: float) -> int:
        """Return the number of output channels."""
        return _block(layers).expansion * _base(width) << STAGES - 1

    def forward(self, clips: Tensor) -> Tensor:
        """Return (B, 2048, T), of 18 layers 512, from (B, 3, T, H, W)."""
        batch, _, frames = clips.shape[:3]
        encodings = self.see(clips.transpose(1, 2).flatten(0, 1))
        return self.join(torch.unflatten(encodings, 0, (batch, frames)))

    def see(self, pictures: Tensor) -> Tensor:
        """Return (N, 64, H / 4, W / 4) of (N, 3, H, W): the stem, before frames trade channels."""
        x = pictures.contiguous(memory_format=torch.channels_last)
        output: Tensor = self.maxpool(F.relu(self.bn1(self.conv1(x)), inplace=True))
        return output

    @property
    def near(self) -> list[ShiftBasicBlock | ShiftBottleneck]:
        """All blocks; each takes a frame and channels of its neighbours."""
        stages = (self.get_submodule(f"layer{number + 1}") for number in range(STAGES))
        return [
            block
            for stage in stages
            for block in stage.children()
            if isinstance(block, ShiftBasicBlock | ShiftBottleneck)
        ]

    @property
    def layers(self) -> int:
        """Number of blocks that mix neighbouring frames."""
        return len(self.near)

    def layer(self, number: int, near: Tensor) -> Tensor:
        """Return (N, c, h, w) after a block, of (N, 3, C, H, W) of the frame before, the frame and the one after."""
        block, share = self.near[number], near.shape[2] // SHARE
        before, here, after = near.unbind(1)
        traded = torch.cat([after[:, :share], before[:, share : 2 * share], here[:, 2 * share :]], 1)
        hidden, here = (x.contiguous(memory_format=torch.channels_last) for x in (traded, here))
        return block.after(block.conv1.net(hidden), here)

    def join(self, encodings: Tensor) -> Tensor:
        """Return (B, 2048, T), of 18 layers 512, of (B, T, 64, H / 4, W / 4)."""
        batch, frames = encodings.shape[:2]
        x = encodings.flatten(0, 1).contiguous(memory_format=torch.channels_last)
        for number in range(STAGES):
            for block in self.get_submodule(f"layer{number + 1}").children():
                x = block(x, frames)
        return torch.unflatten(x.mean((2, 3)), 0, (batch, frames)).transpose(1, 2)


def _base(width: float) -> int:
    """Return the number of channels of the stem."""
    return max(round(WIDTH * width), 1)


def _block(layers: Literal[18, 50]) -> type[ShiftBasicBlock] | type[ShiftBottleneck]:
    return ShiftBasicBlock if layers == 18 else ShiftBottleneck
