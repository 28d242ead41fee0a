"""Trunks of frame detectors: I3D, Slow, SlowFast and TSM without their classifiers, with frozen batch norms.

Feichtenhofer et al., "SlowFast Networks for Video Recognition", ICCV 2019; Lin, Gan, Han: "TSM: Temporal Shift Module
for Efficient Video Understanding", ICCV 2019. Tensors of SlowFast are named as in MMAction, and it differs from
`jostle.models.networks.slowfast`, which is PyTorchVideo's: its lateral connections have neither norm nor ReLU, and the
slow path sees every eighth frame from the first on. Those of TSM are named as torchvision's ResNets name theirs; the
first convolution of every block, before which channels are traded, is `net`.
"""

from __future__ import annotations

from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.models.detection.blocks.reach import step_layers
from jostle.models.extractors.i3d import MIXED, I3dConfig, InceptionI3d
from jostle.models.networks.frame_resnet import STAGES, FrameBlock, FrameResNet, Layers
from jostle.models.networks.layers import ONE, Triple, convolution, named
from jostle.models.networks.video_resnet import EXPANSION, VideoResidual, VideoStem, stem_convolution, video_stage

Norm = nn.BatchNorm2d | nn.BatchNorm3d


class FixedNorms(nn.Module):
    """Trunk whose norms can be frozen in training: statistics and affine parameters.

    So does every trunk that calls `fix_norms` once it is built.
    """

    norms_fixed = False

    def fix_norms(self) -> None:
        """Freeze the parameters of the norms."""
        self.norms_fixed = True
        for norm in self._norms():
            norm.requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        """Set the training mode, except for frozen norms."""
        super().train(mode)
        if self.norms_fixed:
            for norm in self._norms():
                norm.eval()
        return self

    def _norms(self) -> list[Norm]:
        return [module for module in self.modules() if isinstance(module, Norm)]


I3D_STAGES = ("Mixed_4f", "Mixed_5c")
DEPTHS = (3, 4, 6, 3)
WIDTH = 64  # channels of a stem


def stem_width(share: float) -> int:
    """Return the number of channels of a stem with a share of the published ones."""
    return max(round(WIDTH * share), 1)


def _initialise(trunk: nn.Module) -> None:
    for module in trunk.modules():
        if isinstance(module, nn.Conv2d | nn.Conv3d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


class Trunk(FixedNorms):
    """I3D trunk without its classifier.

    Args:
        channels: of the frames.
        width: share of I3D's channels.
        fixed_norms: leave the norms as they are.
    """

    def __init__(self, channels: int, width: float, *, fixed_norms: bool = True) -> None:
        super().__init__()
        self._model = InceptionI3d(I3dConfig(classes=0, channels=channels, width=width))
        self.steps = step_layers(self._model)
        if fixed_norms:
            self.fix_norms()

    @staticmethod
    def channels(width: float) -> tuple[int, int]:
        """Return the numbers of channels of the two output stages."""
        config = I3dConfig(width=width)
        fine, coarse = (sum(config.narrowed(MIXED[stage][branch]) for branch in (0, 2, 4, 5)) for stage in I3D_STAGES)
        return fine, coarse

    def forward(self, clips: Tensor) -> list[Tensor]:
        """Return (B, 832, T / 4, H / 16, W / 16) and (B, 1024, T / 8, H / 32, W / 32)."""
        return self._model.stages_of(clips, *I3D_STAGES)


TIMES = (1, 1, 3, 3)  # steps that the first convolution of a stage's blocks sees
ALONE = 3  # parts, the stem and two stages, that see no other frame


class SlowTrunk(FixedNorms):
    """Slow of 50 layers without its classifier.

    Args:
        width: share of Slow's channels.
        stride: frames that are pooled into a step behind it.
        fixed_norms: leave the norms as they are.
    """

    def __init__(self, width: float, stride: int, *, fixed_norms: bool = True) -> None:
        super().__init__()
        channels = base = stem_width(width)
        blocks: list[nn.Module] = [VideoStem(stem_convolution(base, 1), base)]
        for number, (depth, time) in enumerate(zip(DEPTHS, TIMES, strict=True)):
            out = EXPANSION * base * 2**number
            blocks.append(video_stage(channels, out, depth, (time,), (1, 2, 2) if number else (1, 1, 1)))
            channels = out
        self.out = channels
        self.blocks = nn.Sequential(*blocks, nn.MaxPool3d((stride, 1, 1)) if stride > 1 else nn.Identity())
        if fixed_norms:
            self.fix_norms()

    def see(self, pictures: Tensor) -> Tensor:
        """Return (N, 512, H / 8, W / 8) of (N, 3, H, W): as far as each frame is seen by itself."""
        output: Tensor = self.blocks[:ALONE](pictures.transpose(0, 1)[None])  # frames as the steps of one clip
        return output[0].transpose(0, 1)

    @property
    def near(self) -> list[VideoResidual]:
        """Blocks of the last two stages, which take a frame and its neighbours."""
        stages = [self.get_submodule(f"blocks.{number}.res_blocks") for number in range(ALONE, ALONE + 2)]
        return [block for stage in stages for block in stage.children() if isinstance(block, VideoResidual)]

    def pooled(self, maps: Tensor) -> Tensor:
        """Return (B, 2048, T / stride, H / 32, W / 32) of (B, T, 2048, H / 32, W / 32) after the last block."""
        output: Tensor = self.blocks[ALONE + 2 :](maps.transpose(1, 2))
        return output

    def join(self, encodings: Tensor) -> Tensor:
        """Return (B, 2048, T / stride, H / 32, W / 32) of (B, T, 512, H / 8, W / 8), sizes of pictures rounded up."""
        output: Tensor = self.blocks[ALONE:](encodings.transpose(1, 2))
        return output


ALPHA = 8  # fast frames for each slow one
NARROWER = 8  # channels of the slow path for each of the fast one
FUSION_KERNEL = 5  # steps of the fast path that a lateral connection covers
FUSED = 4  # frames a step of what comes out


def normed_convolution(channels: int, out: int, size: Triple, stride: Triple = ONE, *, relu: bool = True) -> nn.Module:
    """Return a convolution and a norm, optionally followed by ReLU."""
    parts = {"conv": convolution(channels, out, size, stride), "bn": nn.BatchNorm3d(out)}
    return named(**parts, relu=nn.ReLU(inplace=True)) if relu else named(**parts)


class TrunkBottleneck(nn.Module):
    """Residual bottleneck; the first of a stage projects its input."""

    def __init__(self, channels: int, inner: int, time: int, stride: Triple, *, first: bool) -> None:
        super().__init__()
        out = EXPANSION * inner
        self.conv1 = normed_convolution(channels, inner, (time, 1, 1))
        self.conv2 = normed_convolution(inner, inner, (1, 3, 3), stride)
        self.conv3 = normed_convolution(inner, out, ONE, relu=False)
        self.downsample = normed_convolution(channels, out, ONE, stride, relu=False) if first else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, 4 inner, T, H/stride, W/stride)."""
        return F.relu(self.downsample(x) + self.conv3(self.conv2(self.conv1(x))), inplace=True)


class Path(nn.Module):
    """Stem and four stages of one path; the slow one takes lateral connections.

    Args:
        width: channels of the stem.
        times: steps that the stem sees, and the first convolution of each stage's blocks.
        lateral: channels of the other path's stem, 0 without lateral connections.
    """

    def __init__(self, width: int, times: tuple[int, ...], lateral: int = 0) -> None:
        super().__init__()
        self.conv1 = normed_convolution(3, width, (times[0], 7, 7), (1, 2, 2))
        self.maxpool = nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1))
        channels = width
        for number, (depth, time) in enumerate(zip(DEPTHS, times[1:], strict=True)):
            if lateral:
                other = lateral if number == 0 else EXPANSION * lateral << number - 1
                self.add_module(
                    f"{_before(number)}_lateral",
                    named(conv=convolution(other, 2 * other, (FUSION_KERNEL, 1, 1), (ALPHA, 1, 1))),
                )
                channels += 2 * other
            inner = width << number
            blocks = []
            for block in range(depth):
                stride = (1, 2, 2) if number and not block else ONE
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
        slow = stem_width(width)
        fast = max(slow // NARROWER, 1)
        self.out = EXPANSION * (slow + fast) << len(DEPTHS) - 1
        self.slow_path = Path(slow, (1, 1, 1, 3, 3), lateral=fast)
        self.fast_path = Path(fast, (5, 3, 3, 3, 3))
        _initialise(self)
        if fixed_norms:
            self.fix_norms()

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


SHARE = 8  # one channel of so many comes from the next frame, and one from the one before


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


class ShiftBlock(FrameBlock):
    """Residual block whose first convolution follows a temporal shift of channels."""

    def __init__(self, channels: int, width: int, stride: int, *, bottleneck: bool) -> None:
        super().__init__(channels, width, stride, bottleneck=bottleneck)
        self.conv1 = named(net=self.conv1)

    def mix(self, x: Tensor, frames: int) -> Tensor:
        """Return the frames after the shift."""
        return shifted(x, frames)


class ShiftTrunk(FixedNorms, FrameResNet):
    """TSM of 18 or 50 layers without its classifier; one step per frame.

    Args:
        width: share of the channels.
        fixed_norms: training leaves the norms as they are.
    """

    def __init__(self, layers: Layers, width: float, *, fixed_norms: bool = True) -> None:
        FrameResNet.__init__(self, layers, stem_width(width), ShiftBlock)
        _initialise(self)
        if fixed_norms:
            self.fix_norms()

    def forward(self, clips: Tensor) -> Tensor:
        """Return (B, 2048, T), of 18 layers 512, from (B, 3, T, H, W)."""
        batch, _, frames = clips.shape[:3]
        x = self.stem(clips.transpose(1, 2).flatten(0, 1))
        for block in self.near:
            x = block(x, frames)
        return torch.unflatten(x.mean((2, 3)), 0, (batch, frames)).transpose(1, 2)

    @property
    def near(self) -> list[FrameBlock]:
        """All blocks; each takes a frame and channels of its neighbours."""
        return [block for number in range(STAGES) for block in self.stage(number)]

    def layer(self, number: int, near: Tensor) -> Tensor:
        """Return (N, c, h, w) after a block, of (N, 3, C, H, W) of the frame before, the frame and the one after."""
        block, share = self.near[number], near.shape[2] // SHARE
        before, here, after = near.unbind(1)
        traded = torch.cat([after[:, :share], before[:, share : 2 * share], here[:, 2 * share :]], 1)
        hidden, here = (x.contiguous(memory_format=torch.channels_last) for x in (traded, here))
        return block.after(block.conv1(hidden), here)
