"""Top-k accuracy of classes of videos, with exact confidence intervals (Clopper and Pearson, 1934)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.results import Result
from jostle.core.tables import Column, Table
from jostle.core.types.columns import Flags, Floats, Ints
from jostle.core.types.score_table import ScoreTable
from jostle.core.types.video_labels import VideoLabels
from jostle.errors import BadValue, DataError
from jostle.metrics.measured import MeanOverItems, Measured
from jostle.metrics.metric import Chance, Metric, MetricOptions, metric
from jostle.metrics.proportion import Interval, clopper_pearson

ALSO = 5  # top-5 is reported besides top-1


@dataclass(frozen=True)
class Accuracy(Result):
    """Top-k accuracy with its interval."""

    k: int  # number of guesses per video
    correct: int  # number of videos whose class is among them
    count: int  # number of videos
    accuracy: float  # `correct / count`
    interval: Interval | None  # Clopper-Pearson, 95 %; None with fewer than two videos

    def tables(self) -> tuple[Table, ...]:
        """Return the accuracy with its interval."""
        columns = (Column("", key="what"), Column("", "percent", key="value"), Column("95 %", "interval"))
        return (Table("", columns, ((f"top-{self.k} accuracy", self.accuracy, self.interval),)),)


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


def videos_within_top_k(truth: VideoLabels, table: ScoreTable, k: int) -> Flags:
    """Return (N,) flags of the videos of a table that have any of their classes among the k best scores."""
    owner = _rows(truth, table)
    own = owner >= 0
    right = np.zeros(len(table), np.bool_)
    np.logical_or.at(right, owner[own], within_top_k(table.scores[owner[own]], truth.label[own], k))
    return right


def guesses(options: MetricOptions, classes: int) -> int:
    """Return how many guesses a benchmark allows per video; raises BadValue if there are fewer classes."""
    k = options.k or 1
    if k > classes:
        raise BadValue(f"{options.name} allows {k} guesses per video, and there are only {classes} classes")
    return k


@metric("top_k_accuracy")
class TopKAccuracy(Metric):
    """Share of videos with any of their classes among the k best scores."""

    task = "recognition"
    cites = "clopper1934"
    function = staticmethod(top_k_accuracy)
    mean_over = "videos"
    has_intervals = True

    def label(self, options: MetricOptions) -> str:
        return f"top-{options.k} accuracy"

    def chance(self, truth: VideoLabels, predictions: Callable[[], ScoreTable], options: MetricOptions) -> Chance:
        classes = len(truth.classes)
        return Chance((options.k or 1) / classes, len(truth.videos)) if classes else Chance(0.0, None)

    def measure(self, truth: VideoLabels, predictions: ScoreTable, options: MetricOptions) -> Measured:
        return _MeasuredAccuracy(truth, predictions, guesses(options, predictions.scores.shape[1]))


class _MeasuredAccuracy(MeanOverItems):
    """Top-k accuracy of the videos of a table."""

    def __init__(self, truth: VideoLabels, table: ScoreTable, k: int) -> None:
        self._truth, self._table, self._k = truth, table, k
        self._right = videos_within_top_k(truth, table, k)
        super().__init__(table.names, self._right.astype(np.float64), np.ones(len(table)))

    @property
    def more(self) -> dict[str, Any]:
        scores, correct = self._table.scores, int(np.count_nonzero(self._right))
        interval = clopper_pearson(correct, len(self._right))
        more: dict[str, Any] = {"interval": interval and list(interval), "chance": self._k / scores.shape[1]}
        if constant := int(np.count_nonzero(scores.min(axis=1) == scores.max(axis=1))):
            more["constant"] = constant  # videos whose answer is the first class, because all score the same
        if self._k < ALSO < scores.shape[1]:
            more[f"top_{ALSO}"] = float(videos_within_top_k(self._truth, self._table, ALSO).mean())
        return more

    @property
    def by_class(self) -> dict[str, float]:
        owner = _rows(self._truth, self._table)
        label, own = self._truth.label[owner >= 0], owner[owner >= 0]
        classes = len(self._truth.classes)
        count, hits = np.bincount(label, minlength=classes), np.bincount(label, self._right[own], classes)
        return {name: float(hits[i] / count[i]) for i, name in enumerate(self._truth.classes) if count[i]}

    def of_class(self, name: str) -> Measured:
        owner = _rows(self._truth, self._table)
        own = owner[(self._truth.label == self._truth.classes.index(name)) & (owner >= 0)]
        has: Floats = np.zeros(len(self._table))
        has[own] = 1
        return MeanOverItems(self.videos, self._right * has, has)


def _rows(truth: VideoLabels, table: ScoreTable) -> Ints:
    """Return (labels,) the row of a table that each label is of, -1 for none."""
    index = {name: row for row, name in enumerate(table.names)}
    return np.array([index.get(name, -1) for name in truth.videos], np.int64)[truth.video]
