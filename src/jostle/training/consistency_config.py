"""Settings of the consistency loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jostle.errors import BadValue

Form = Literal["released", "paper"]
Selection = Literal["centre", "action", "video"]
Divergence = Literal["js", "kl", "mse"]


@dataclass(frozen=True)
class ConsistencyConfig:
    """Settings of the consistency loss.

    Attributes:
        form: `released` compares 1 - tIoU point by point at the positives; `paper` compares the tIoU of the `nearest`
            predictions of each action, chosen separately on both sides.
        selection: points of the released form: near the `centre` of an action as the detector's own targets,
            anywhere in the `action`, or in the whole `video` wherever the action that a point refers to covers it.
        divergence: `js` as in the paper, or its alternatives `kl` and `mse`.
        weight: of the term in the loss.
        nearest: K of the paper's form, which the paper does not give.
        normalise: how the K values of the paper's form become a distribution: divided by their `sum`, by `softmax`, or
            `none`. The paper does not say.
        epsilon: values are kept above it, so that no logarithm is infinite; the released program has none.
        reproduce_bugs: repeat three faults of the released program: TriDet's targets lose their centre radius under
            `centre` and `video`, its `video` reads the offsets of class 0 and counts padding, and the running number
            of positives moves twice a step.
    """

    form: Form = "released"
    selection: Selection = "centre"
    divergence: Divergence = "js"
    weight: float = 1.0
    nearest: int = 10
    normalise: Literal["sum", "softmax", "none"] = "sum"
    epsilon: float = 1e-6
    reproduce_bugs: bool = False

    def __post_init__(self) -> None:
        if self.nearest < 1:
            raise BadValue(f"consistency: nearest must be at least 1, got {self.nearest}")
        if not 0 < self.epsilon < 0.1:
            raise BadValue(f"consistency: epsilon lies above 0 and below 0.1, got {self.epsilon}")
        if self.weight < 0:
            raise BadValue(f"consistency: weight must not be below 0, got {self.weight}")
