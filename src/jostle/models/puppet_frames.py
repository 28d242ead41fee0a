"""A small classifier of single frames: which prop a puppet holds, for sets of frames that look alike (pm-k)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.input_spec import InputSpec
from jostle.models.recogniser import Changes, Recogniser, Weights, changed, recogniser, with_weights

SPEC = InputSpec(
    frames=1,
    stride=1,
    resize=(112, 112),
    size=112,
    mean=(0.45, 0.45, 0.45),
    std=(0.25, 0.25, 0.25),
    layout="TCHW",
)
CLASSES = 9
SOURCE = "a file that jostle train wrote"


class Block(nn.Module):
    """Two 3x3 convolutions beside which the input passes by, made to fit; half as many places."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(channels, out, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(out)
        self.second, self.last = nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out)
        self.around = nn.Sequential(nn.Conv2d(channels, out, 1, stride=2, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        """(N, out, H / 2, W / 2)."""
        inner = self.last(self.second(F.relu(self.norm(self.first(x)))))
        return F.relu(self.around(x) + inner)


class FrameClassifier(nn.Module):
    """A few residual blocks; a prop is small, so the strongest sign of it counts, not the mean of all places."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 24, 5, stride=2, padding=2, bias=False), nn.BatchNorm2d(24), nn.ReLU(inplace=True)
        )  # (N, 24, 56, 56)
        self.blocks = nn.Sequential(Block(24, 48), Block(48, 80))  # (N, 80, 14, 14)
        self.drop = nn.Dropout(0.2)
        self.classifier = nn.Linear(80, classes)

    def forward(self, frames: Tensor) -> Tensor:
        """(N, classes) logits of (N, 1, 3, 112, 112)."""
        x = self.blocks(self.stem(frames[:, 0].contiguous(memory_format=torch.channels_last)))
        made: Tensor = self.classifier(self.drop(x.amax((2, 3))))
        return made


@recogniser("puppet_frames", spec=SPEC, source=SOURCE)
def puppet_frames(weights: Weights, changes: Changes) -> Recogniser:
    """Single frames, for the prop that a puppet holds."""
    spec = changed("puppet_frames", SPEC, changes)
    return with_weights("puppet_frames", FrameClassifier, spec, weights, head="classifier.bias", classes=CLASSES)
