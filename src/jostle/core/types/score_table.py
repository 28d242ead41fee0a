"""Class scores of videos or frames as a table with a row for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.errors import BadValue


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores of all classes for videos or frames.

    Attributes:
        names: of the videos or frames.
        scores: (names, classes), higher is better.

    >>> ScoreTable(("a", "b"), [[0.9, 0.1], [0.3, 0.7]]).of(["b"]).scores.tolist()
    [[0.3, 0.7]]
    """

    names: Sequence[str]
    scores: npt.NDArray[Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "scores", np.asarray(self.scores))
        if self.scores.ndim != 2 or len(self.scores) != len(self.names):
            raise BadValue(f"{len(self.names)} names need as many rows of scores, got shape {self.scores.shape}")

    def of(self, names: Sequence[str]) -> ScoreTable:
        """Return the rows of some names, in their order."""
        if tuple(names) == self.names:
            return self
        rows = {name: row for row, name in enumerate(self.names)}
        return ScoreTable(tuple(names), self.scores[[rows[name] for name in names]])

    def __len__(self) -> int:
        return len(self.names)
