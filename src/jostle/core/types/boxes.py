"""Boxes of objects in one frame, true or detected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jostle.core.types.columns import Floats, Ints
from jostle.errors import BadValue


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of one frame, true or detected.

    Attributes:
        box: (N, 4) float64 x1, y1, x2, y2; (0,) if there is none.
        label: (N,) int64 class numbers.
        score: (N,) float64, larger is more confident; None for the truth.

    >>> Boxes([[0, 0, 10, 10]], [3], [0.9]).box.shape
    (1, 4)
    """

    box: Floats
    label: Ints
    score: Floats | None = None

    def __post_init__(self) -> None:
        box = np.asarray(self.box, np.float64)
        box = box.reshape(0, 4) if not box.size else box
        label = np.asarray(self.label, np.int64)
        score = None if self.score is None else np.asarray(self.score, np.float64)
        if box.ndim != 2 or box.shape[1] != 4 or label.shape != box.shape[:1]:
            raise BadValue(f"boxes must be (N, 4) and labels (N,), got {box.shape} and {label.shape}")
        if score is not None and score.shape != label.shape:
            raise BadValue(f"{len(label)} boxes need as many scores, got shape {score.shape}")
        if not np.isfinite(box).all() or (score is not None and not np.isfinite(score).all()):
            raise BadValue("boxes and scores must be finite", fault="F40")
        for name, values in (("box", box), ("label", label), ("score", score)):
            object.__setattr__(self, name, values)

    @property
    def sure(self) -> Floats:
        """(N,) scores; raises BadValue if there are none."""
        if self.score is None:
            raise BadValue("these boxes have no scores; true ones have none, and detections need them")
        return self.score

    def __len__(self) -> int:
        return len(self.label)


@dataclass(frozen=True, eq=False)
class FrameBoxes:
    """Boxes that a detector found in frames.

    Attributes:
        boxes: by frame; a frame in which nothing was found has empty boxes.
        classes: names of the classes that the detector knows.
    """

    boxes: Mapping[str, Boxes]
    classes: tuple[str, ...]
