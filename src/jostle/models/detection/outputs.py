"""Raw outputs of detectors, their losses and their candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from torch import Tensor

from jostle.models.detection.blocks.pyramid import Points


@dataclass(frozen=True)
class Outputs:
    """Raw outputs at the points of all levels, one level after the other.

    Attributes:
        points: where they are; `points.sizes` cuts the columns below into levels.
        mask: (B, N) points inside their video.
        logits: (B, N, K) before the sigmoid.
        offsets: what the regression tower says: (B, N, 2) distances to start and end in strides; of TriDet
            (B, N, 2, bins + 1) bins, which `offsets_at` turns into distances.
        padded: points of each level in the original's padded sequence.
    """

    points: Points
    mask: Tensor
    logits: Tensor
    offsets: Tensor
    padded: tuple[int, ...]


@dataclass(frozen=True)
class Losses:
    """Losses of a batch; detectors of points divide each by the running number of positives.

    Attributes:
        total: what to descend: the terms, each by its weight.
        classification: of the classes; focal loss over valid points where detectors answer at points.
        regression: of the ends; distance-IoU loss over positives there.
        positives: how many points answered for an action.
        others: further terms by name, unweighted.
    """

    total: Tensor
    classification: Tensor
    regression: Tensor
    positives: Tensor
    others: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Candidates:
    """Segments of one video before suppression, on the feature grid, level after level, each by falling score.

    Attributes:
        segments: (n, 2) start and end.
        scores: (n,) probabilities.
        labels: (n,) class numbers.
    """

    segments: npt.NDArray[np.float32]
    scores: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.scores)
