"""Video stitching: a short video beside itself, stretched, so that short actions are seen at two scales.

Zhao, Thabet, Ghanem: "Video Self-Stitching Graph Network for Temporal Action Localization", ICCV 2021.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from jostle.detectors.blocks.assignment import Actions

SHORT = 0.4  # videos up to this share of a window are stitched


@dataclass(frozen=True)
class Stitching:
    """What stands where in a window of `length` steps: the video, and of short ones after a gap a stretched copy.

    Attributes:
        length: steps of the window.
        gap: empty steps between video and copy.
        rows: (B,) steps of each video.
        stitched: (B,) which videos have a copy.
    """

    length: int
    gap: int
    rows: Tensor
    stitched: Tensor

    @classmethod
    def of(cls, rows: Tensor, length: int, gap: int, *, on: bool) -> Stitching:
        """Of videos of so many rows; without `on` none has a copy."""
        return cls(length, gap, rows, (rows <= SHORT * length) & on)

    @property
    def begin(self) -> Tensor:
        """(B,) where the copy begins."""
        return self.rows + self.gap

    @property
    def stretch(self) -> Tensor:
        """(B,) steps of the copy."""
        return self.length - self.begin

    def fill(self, features: Tensor) -> Tensor:
        """(B, C, length) the window, from features (B, C, T) with zeros after each video."""
        made = F.pad(features, (0, self.length - features.shape[-1]))
        if not self.stitched.any():
            return made
        made = made.clone()
        for i in self.stitched.nonzero()[:, 0].tolist():
            rows, begin = int(self.rows[i]), int(self.begin[i])
            copy = F.interpolate(features[i : i + 1, :, :rows], self.length - begin, mode="linear", align_corners=True)
            made[i, :, begin:] = copy[0]
        return made

    def place(self, actions: Actions) -> Actions:
        """The actions, and those of the copies, rounded to whole steps as in the original."""
        whole = replace(actions, segments=actions.segments.round())
        if not self.stitched.any():
            return whole
        rows, stretch, begin = (x[:, None, None] for x in (self.rows, self.stretch, self.begin))
        copies = (actions.segments / rows * stretch).round() + begin
        present = actions.present & self.stitched[:, None]
        return Actions(
            torch.cat([whole.segments, copies], 1),
            torch.cat([actions.labels, actions.labels], 1),
            torch.cat([actions.present, present], 1),
        )

    def back(self, boxes: Tensor) -> Tensor:
        """(B, N, 2) boxes of the window on the rows of the video, inside it; what begins after it is the copy's."""
        rows, stretch, begin = (x[:, None, None].to(boxes) for x in (self.rows, self.stretch, self.begin))
        copied = (boxes[..., :1] >= rows) & self.stitched[:, None, None]
        boxes = torch.where(copied, (boxes - begin) / stretch * rows, boxes)
        return boxes.clamp(min=0).minimum(rows - 1)
