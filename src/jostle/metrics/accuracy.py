"""Top-k accuracy with exact confidence intervals (Clopper and Pearson, 1934)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.types.columns import Flags
from jostle.errors import BadValue, DataError
from jostle.metrics.metric import metric
from jostle.metrics.proportion import Interval, clopper_pearson


@dataclass(frozen=True)
class Accuracy:
    """Top-k accuracy with its interval."""

    k: int  # number of guesses per video
    correct: int  # number of videos whose class is among them
    count: int  # number of videos
    accuracy: float  # `correct / count`
    interval: Interval | None  # Clopper-Pearson, 95 %; None with fewer than two videos

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values for JSON; accuracies are fractions."""
        return vars(self) | {"interval": self.interval and list(self.interval), "format": 1}


@metric("top_k_accuracy", task="recognition", cites="clopper1934")
def top_k_accuracy(scores: npt.ArrayLike, labels: npt.ArrayLike, k: int = 1) -> Accuracy:
    """The share of rows whose class is among the k best scores; of equal scores the lower class comes first.

    Args:
        scores: (N, C), higher is better.
        labels: (N,) class numbers from 0.

    >>> found = top_k_accuracy([[0.1, 0.9, 0.0], [0.5, 0.3, 0.2]], [1, 1])
    >>> found.accuracy, top_k_accuracy([[0.1, 0.9, 0.0], [0.5, 0.3, 0.2]], [1, 1], k=2).accuracy
    (0.5, 1.0)
    """
    right = within_top_k(scores, labels, k)
    correct = int(np.count_nonzero(right))
    return Accuracy(k, correct, len(right), correct / len(right), clopper_pearson(correct, len(right)))


def within_top_k(scores: npt.ArrayLike, labels: npt.ArrayLike, k: int = 1) -> Flags:
    """Return (N,) flags of the rows whose class is among the k best scores.

    >>> within_top_k([[0.5, 0.5], [0.2, 0.8]], [1, 1]).tolist()
    [False, True]
    """
    table, truth = np.asarray(scores), np.asarray(labels)
    if table.ndim != 2 or not table.size or truth.shape != table.shape[:1]:
        raise DataError(
            f"scores must be (rows, classes) and labels (rows,), at least one row; got {table.shape} and {truth.shape}"
        )
    if table.dtype.kind not in "iufb":
        raise DataError(f"scores must be real numbers, got {table.dtype}", fault="F130")
    if not 1 <= k <= table.shape[1]:
        raise BadValue(f"k must lie in 1..{table.shape[1]}, the number of classes, got {k}")
    if truth.dtype.kind not in "iu" or truth.min() < 0 or truth.max() >= table.shape[1]:
        raise DataError(f"labels must be whole numbers in 0..{table.shape[1] - 1}, the classes that have a score")
    bad = np.flatnonzero(np.isnan(table).any(axis=1))
    if len(bad):
        raise DataError(f"{len(bad)} of {len(table)} rows have NaN scores, the first is row {bad[0]}", fault="F40")
    own = table[np.arange(len(table)), truth][:, None]
    before = (table == own) & (np.arange(table.shape[1]) < truth[:, None])
    flags: Flags = np.count_nonzero((table > own) | before, axis=1) < k
    return flags
