"""Classification of untrimmed videos as in ActivityNet's toolkit: mean AP and hits among the k best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.core.results import Result
from jostle.core.tables import Column, Table
from jostle.core.types.columns import Floats, Ints
from jostle.core.types.score_table import ScoreTable
from jostle.core.types.video_labels import VideoLabels
from jostle.errors import BadValue, DataError
from jostle.metrics.accuracy import guesses, videos_within_top_k
from jostle.metrics.mean_ap import interpolated_ap
from jostle.metrics.measured import Measured
from jostle.metrics.metric import Metric, MetricOptions, metric


@dataclass(frozen=True)
class ClassificationScore(Result):
    """Scores of predicted classes of whole videos."""

    mean_ap: float  # mean of `per_class`
    per_class: dict[str, float]  # average precision of each class that some video has
    hit_at_k: float  # share of videos with any of their classes among the k best
    average_hit_at_k: float  # mean over videos of the share of their classes among the k best
    k: int  # number of guesses per video
    videos: int  # videos with a class; one without a prediction counts as a miss
    pairs: int  # different (video, class) pairs of the truth
    unknown_label: int  # predictions of classes that the truth does not have; they still take up guesses
    outside: int  # predictions for videos that the truth does not have
    one_score: bool  # whether all predictions have one score, so that their order is that of the file

    def tables(self) -> tuple[Table, ...]:
        """Return mean AP and hits."""
        rows = (
            ("mean AP", self.mean_ap),
            (f"hit@{self.k}", self.hit_at_k),
            (f"average hit@{self.k}", self.average_hit_at_k),
        )
        ignored = f", {self.unknown_label} predictions of unknown classes" if self.unknown_label else ""
        title = f"{self.videos} videos, {self.pairs} labels{ignored}"
        return (Table(title, (Column("", key="what"), Column("", "percent", key="value")), rows),)

    def notes(self) -> tuple[str, ...]:
        """Return what makes the ranking meaningless."""
        return ("all predictions have one score, so their ranking is arbitrary",) if self.one_score else ()


def video_classification(predicted: VideoLabels, truth: VideoLabels, *, k: int = 3) -> ClassificationScore:
    """Mean AP over classes, and how often the classes of a video are among its k best predictions.

    Repeated pairs of the truth count once. In the AP of a class the first prediction of a pair is a hit, a repeated one
    a false alarm. Of equal scores the later row comes first, as in the toolkit.

    >>> truth = VideoLabels(("a", "b"), ("Jump", "Run"), [0, 0, 1], [0, 1, 1])
    >>> predicted = VideoLabels(("a", "b"), ("Run", "Jump"), [0, 1, 1], [0, 1, 0], [0.9, 0.8, 0.3])
    >>> result = video_classification(predicted, truth, k=1)
    >>> result.mean_ap, result.hit_at_k, result.average_hit_at_k
    (0.5, 0.5, 0.25)
    """
    if predicted.score is None:
        raise DataError("these predictions have no scores; they look like ground truth")
    if not len(truth):
        raise DataError("the ground truth holds no (video, class) pair; check the subset", fault="F29")
    if k < 1:
        raise BadValue(f"k must be at least 1, got {k}")
    if predicted.numbered and not truth.numbered:
        raise DataError(
            "the predictions number their classes but the ground truth names them; give the list of class names",
            fault="F45",
        )
    classes = len(truth.classes)
    pairs = np.unique(truth.video.astype(np.int64) * classes + truth.label)
    video, label = _align_labels(predicted, truth)
    unknown = int(np.count_nonzero(label < 0))
    if 2 * unknown > len(label):
        raise DataError(
            f"{unknown} of {len(label)} predictions are of classes that the ground truth does not have; "
            "use class names of the same dataset",
            fault="F45",
        )
    order = np.lexsort((np.arange(len(video))[::-1], -predicted.score))
    key = np.where((video >= 0) & (label >= 0), video * classes + label, -1)
    right = _first_hits(key[order], pairs)
    positives = np.bincount(pairs % classes, minlength=classes)
    per_class = {}
    for i in np.flatnonzero(positives).tolist():
        hits = np.flatnonzero(right[label[order] == i])
        per_class[truth.classes[i]] = interpolated_ap(hits, int(positives[i]))
    hit_counts, owned = _count_among_best(video, label, order, pairs, classes, k)
    return ClassificationScore(
        mean_ap=float(np.mean(list(per_class.values()))),
        per_class=per_class,
        hit_at_k=float(np.mean(hit_counts > 0)),
        average_hit_at_k=float(np.mean(hit_counts / owned)),
        k=k,
        videos=len(owned),
        pairs=len(pairs),
        unknown_label=unknown,
        outside=int(np.count_nonzero(video < 0)),
        one_score=len(predicted.score) > 1 and float(predicted.score.min()) == float(predicted.score.max()),
    )


def _align_labels(predicted: VideoLabels, truth: VideoLabels) -> tuple[Ints, Ints]:
    """Return videos and labels of the predictions as indices into the truth, -1 for unknown ones."""
    videos = {name: i for i, name in enumerate(truth.videos)}
    classes = {name: i for i, name in enumerate(truth.classes)}
    to_video = np.array([videos.get(name, -1) for name in predicted.videos], np.int64)
    to_label = np.array([classes.get(name, -1) for name in predicted.classes], np.int64)
    return to_video[predicted.video], to_label[predicted.label]


def _first_hits(key: Ints, pairs: Ints) -> Ints:
    """Return (n,) 1 where a true pair is predicted for the first time, in the given order."""
    _, first = np.unique(key, return_index=True)
    hits = np.zeros(len(key), np.int64)
    hits[first] = np.isin(key[first], pairs)
    return hits


def _count_among_best(video: Ints, label: Ints, order: Ints, pairs: Ints, classes: int, k: int) -> tuple[Ints, Ints]:
    """Return for each labelled video how many of its classes are among its k best, and how many it has."""
    by_video = order[np.argsort(video[order], kind="stable")]  # the most confident first inside each video
    grouped = video[by_video]
    rank = np.arange(len(grouped)) - np.searchsorted(grouped, grouped)
    best = by_video[(rank < k) & (grouped >= 0) & (label[by_video] >= 0)]
    correct = np.intersect1d(video[best] * classes + label[best], pairs)
    owners, owned = np.unique(pairs // classes, return_counts=True)
    return np.bincount(np.searchsorted(owners, correct // classes), minlength=len(owners)), owned


@metric("video_mean_ap")
class VideoMeanAP(Metric):
    """Mean average precision of classes of whole videos."""

    task = "recognition"
    cites = "caba2015"
    function = staticmethod(video_classification)

    def measure(self, truth: VideoLabels, predictions: ScoreTable, options: MetricOptions) -> Measured:
        return _MeasuredVideos(truth, predictions, guesses(options, predictions.scores.shape[1]))


class _MeasuredVideos(Measured):
    """Mean average precision over classes; a video by itself is right if one of its classes is among its k best."""

    def __init__(self, truth: VideoLabels, table: ScoreTable, k: int) -> None:
        self._truth, self._table, self._k = truth, table, k
        video, label = np.indices(table.scores.shape, np.int32)
        scores = table.scores.astype(np.float64).ravel()
        predicted = VideoLabels(tuple(table.names), truth.classes, video.ravel(), label.ravel(), scores)
        self._score = video_classification(predicted, truth, k=k)
        super().__init__(self._score.mean_ap, table.names, {f"hit_at_{k}": self._score.hit_at_k})

    @property
    def by_class(self) -> dict[str, float]:
        return self._score.per_class

    @property
    def by_video(self) -> Floats:
        return videos_within_top_k(self._truth, self._table, self._k).astype(np.float64)
