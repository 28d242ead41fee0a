"""Small classifier of single frames: the prop that a puppet holds, for pm-k over similar frames."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.input_spec import InputSpec
from jostle.models.recognition.recogniser import Changes, Recogniser, Weights, changed, recogniser, with_weights

SPEC = InputSpec(
    frames=1, stride=1, resize=(112, 112), size=112, mean=(0.45, 0.45, 0.45), std=(0.25, 0.25, 0.25), layout="TCHW"
)
CLASSES = 9
SOURCE = "clean or robust, which come with jostle, or a file that jostle train wrote"


class FrameResidualBlock(nn.Module):
    """Residual block of two 3x3 convolutions with a projection.

    Args:
        stride: 2 for half as many places along each side.
        reach: places between those that a convolution looks at.
    """

    def __init__(self, channels: int, out: int, *, stride: int = 2, reach: int = 1) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, out, 3, stride=stride, padding=reach, dilation=reach, bias=False)
        self.norm = nn.BatchNorm2d(out)
        self.second, self.last = nn.Conv2d(out, out, 3, padding=reach, dilation=reach, bias=False), nn.BatchNorm2d(out)
        self.around = nn.Sequential(nn.Conv2d(channels, out, 1, stride=stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (N, out, H / stride, W / stride)."""
        inner = self.last(self.second(F.relu(self.norm(self.first(x)))))
        return F.relu(self.around(x) + inner)


class FrameClassifier(nn.Module):
    """Residual blocks with spatial attention, as a prop is small and others lie around."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 24, 5, stride=2, padding=2, bias=False), nn.BatchNorm2d(24), nn.ReLU(inplace=True)
        )  # (N, 24, 56, 56)
        self.blocks = nn.Sequential(
            FrameResidualBlock(24, 40), FrameResidualBlock(40, 64), FrameResidualBlock(64, 64, stride=1, reach=2)
        )  # (N, 64, 14, 14); the last sees whose hand it is
        self.where = nn.Conv2d(64, 1, 1)
        self.drop = nn.Dropout(0.2)
        self.classifier = nn.Linear(64, classes)

    def see(self, frames: Tensor) -> Tensor:
        """Return (N, 64, 14, 14): what is at each place of (N, 1, 3, 112, 112)."""
        output: Tensor = self.blocks(self.stem(frames[:, 0].contiguous(memory_format=torch.channels_last)))
        return output

    def classify(self, maps: Tensor) -> Tensor:
        """Return (N, classes) logits of feature maps, weighted by spatial attention."""
        weight = self.where(maps).flatten(2).softmax(2)
        output: Tensor = self.classifier(self.drop((maps.flatten(2) * weight).sum(2)))
        return output

    def forward(self, frames: Tensor) -> Tensor:
        """Return (N, classes) logits of (N, 1, 3, 112, 112)."""
        return self.classify(self.see(frames))


@recogniser("puppet_frames", spec=SPEC, source=SOURCE)
def puppet_frames(weights: Weights, changes: Changes) -> Recogniser:
    """Single frames, for the prop that a puppet holds."""
    spec = changed("puppet_frames", SPEC, changes)
    return with_weights("puppet_frames", FrameClassifier, spec, weights, head="classifier.bias", classes=CLASSES)
