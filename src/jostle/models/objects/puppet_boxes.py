"""Small detector of puppets and props in single frames: objects are peaks of class heat maps.

After CenterNet (Zhou et al., 2019): a map of middles for each class, a quarter as wide and high as the frame, and at
every place the distances to the four sides of the box, which a centre that is off by a pixel still gets right.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.core.types.boxes import Boxes
from jostle.errors import BadValue, CheckpointError
from jostle.models.finite import OutputCheck
from jostle.models.objects.object_detector import ObjectDetector, Weights, object_detector
from jostle.models.ordering import highest
from jostle.models.recognition.puppet_frames import FrameResidualBlock
from jostle.models.recognition.recogniser import load_weights

CLASSES = ("ball", "book", "bottle", "box", "cup", "flag", "flower", "lantern", "umbrella", "puppet")
STRIDE = 4  # pixels from one place of the maps to the next
SIDE = 112  # pixels that a frame is brought to
MOST = 60  # boxes of a frame
SOURCE = "clean, which comes with jostle"
HEAD = "middles.bias"


class BoxNetwork(nn.Module):
    """Encoder-decoder of residual blocks, down to 1/16 of the frame and up to 1/4."""

    def __init__(self, classes: int = len(CLASSES)) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 24, 5, stride=2, padding=2, bias=False), nn.BatchNorm2d(24), nn.ReLU())
        self.quarter = FrameResidualBlock(24, 40)
        self.eighth = FrameResidualBlock(40, 64)
        self.sixteenth = nn.Sequential(FrameResidualBlock(64, 80), FrameResidualBlock(80, 80, stride=1, reach=2))
        self.up_eighth = nn.Conv2d(80, 64, 1)
        self.join_eighth = FrameResidualBlock(64, 64, stride=1)
        self.up_quarter = nn.Conv2d(64, 40, 1)
        self.join_quarter = FrameResidualBlock(40, 48, stride=1)
        self.middles = nn.Conv2d(48, classes, 1)
        self.sides = nn.Conv2d(48, 4, 1)
        nn.init.constant_(self.middles.bias, -4.0)  # type: ignore[arg-type]  # at first nothing is anywhere

    def forward(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """Return centre logits (N, classes, H/4, W/4) and side distances in pixels (N, 4, H/4, W/4)."""
        quarter = self.quarter(self.stem((frames - 0.45) / 0.25))
        eighth = self.eighth(quarter)
        deep = F.interpolate(self.up_eighth(self.sixteenth(eighth)), scale_factor=2)
        eighth = self.join_eighth(eighth + deep)
        features = self.join_quarter(quarter + F.interpolate(self.up_quarter(eighth), scale_factor=2))
        return self.middles(features), F.softplus(self.sides(features)) * 8


class PeakBoxes:
    """Conversion of heat maps to boxes: the best peaks, each with its four distances."""

    def __init__(self, network: BoxNetwork) -> None:
        self._network = network

    def __call__(self, frames: Tensor) -> Sequence[Boxes]:
        """Return the boxes of (N, 3, H, W) from 0 to 1, in pixels of the frame."""
        height, width = frames.shape[2:]
        inputs = frames if (height, width) == (SIDE, SIDE) else F.interpolate(frames, (SIDE, SIDE), mode="bilinear")
        middles, sides = self._network(inputs)
        check = OutputCheck({"middles": middles, "sides": sides})
        scores = middles.sigmoid()
        scores = scores * (F.max_pool2d(scores, 3, 1, 1) == scores)
        scale = np.array([width / SIDE, height / SIDE] * 2)
        try:
            return [_peaks(score, side, scale) for score, side in zip(scores, sides, strict=True)]
        finally:  # a peak that is NaN would be no peak, and one that is infinite would be sure
            check.finish("puppet_boxes")


def _peaks(scores: Tensor, sides: Tensor, scale: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Boxes:
    columns = scores.shape[2]
    where = highest(scores.flatten(), MOST)
    best = scores.flatten()[where]
    label, place = where // scores[0].numel(), where % scores[0].numel()
    x, y = (place % columns + 0.5) * STRIDE, (place // columns + 0.5) * STRIDE
    left, top, right, bottom = sides.flatten(1)[:, place]
    box = torch.stack([x - left, y - top, x + right, y + bottom], 1).clamp(0, SIDE)
    valid = best > 0
    boxes = box[valid].double().cpu().numpy() * scale
    return Boxes(boxes, label[valid].cpu().numpy(), best[valid].double().cpu().numpy())


@object_detector("puppet_boxes", source=SOURCE)
def puppet_boxes(weights: Weights) -> ObjectDetector:
    """Puppets and nine kinds of props in single frames."""
    if not isinstance(weights, dict):
        raise BadValue(f"puppet_boxes: weights are tensors by name, not {weights!r}; read the file first")
    if HEAD not in weights:
        raise CheckpointError(f"puppet_boxes: the weights belong to another network: they have no {HEAD}", fault="F54")
    network = BoxNetwork(len(weights[HEAD]))
    load_weights("puppet_boxes", network, weights)
    network.eval()
    return ObjectDetector(network, PeakBoxes(network), classes=CLASSES, name="puppet_boxes")
