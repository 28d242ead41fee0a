"""Models of one's own, in a module where worker processes find them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from jostle.core.types import Segments
from jostle.models.input_spec import InputSpec
from jostle.models.recognition.recogniser import Recogniser

SPEC = InputSpec(frames=4, stride=4, resize=20, size=16, step=3)


class Small(nn.Module):
    """A network of one convolution, with the same random weights every time."""

    def __init__(self, classes: int = 2) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.first, self.last = nn.Conv3d(3, 6, 3), nn.Linear(6, classes)

    def forward(self, clips: Tensor) -> Tensor:
        made: Tensor = self.last(self.first(clips).relu().mean((2, 3, 4)))
        return made


def colours(clips: np.ndarray) -> np.ndarray:
    """Scores of two classes from the colours of whole videos."""
    return np.sin(clips.mean((1, 2, 3))[:, :2])


def from_frames(frames: np.ndarray, duration: float) -> Segments:
    """One action in a video."""
    return Segments([0.2], [duration - 0.4], [0], [float(frames.mean()) / 255], ("jump",))


def from_features(features: np.ndarray, *, duration: float) -> Segments:
    """One action in a video."""
    return Segments([0.2], [duration - 0.4], [0], [1 / (1 + abs(float(features.sum())))], ("jump",))


named = Recogniser(Small(3), SPEC, classes=("sit", "Walk", "jump"), name="named")
