"""Scores of windows found for sentences: R@1, mean IoU, and the mAP and highlights of QVHighlights' evaluator.

QVHighlights' program (Lei et al., 2021) leaves a query without predicted windows out of its mAP. Here such a query
counts as 0; `reproduce_bugs=("empty-query",)` repeats the program.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from jostle.core.results import Result
from jostle.core.tables import Column, Table, Value
from jostle.core.types.columns import Flags, Floats
from jostle.core.types.language import RANGES, MomentItem, MomentPrediction, MomentPredictions, MomentSet, Window
from jostle.errors import BadValue, DataError
from jostle.metrics.bootstrap import mean_interval, share_interval, warn_of_few
from jostle.metrics.mean_ap import interpolated_ap
from jostle.metrics.measured import MeanOverItems, Measured, sum_by_video
from jostle.metrics.metric import Metric, MetricOptions, metric

RECALL_TIOUS = (0.3, 0.5, 0.7)
RECALL_TIOU = 0.5  # of the value of a cell
MAP_TIOUS = tuple(float(f"{tiou:.2f}") for tiou in np.linspace(0.5, 0.95, 10))
_EXACT_TIOUS = np.linspace(0.5, 0.95, 10).tolist()  # as the original compares them in its average precision
MAX_WINDOWS = 10  # of a sentence, that its average precision counts
HIGHLIGHT_LEVELS = {"fair": 2, "good": 3, "very_good": 4}  # least rating of a highlight
CLIP_S = 2.0  # length of a rated clip

ScorerBug = Literal["empty-query"]


@dataclass(frozen=True)
class WindowScore:
    """mAP and R@1 at each threshold over one group of sentences."""

    count: int  # sentences
    map: tuple[float, ...]  # at `MAP_TIOUS`
    average_map: float
    recall: tuple[float, ...]  # R@1 at `MAP_TIOUS`


@dataclass(frozen=True)
class HighlightScore:
    """Quality of predicted saliency at one level of ratings."""

    mean_ap: float
    hit_at_1: float


@dataclass(frozen=True)
class MomentScore(Result):
    """Scores of predicted windows for a set of sentences."""

    json_keys = (
        *("recall", "recall_intervals", "mean_iou", "mean_iou_interval"),
        *("tious", "average_map", "average_map_interval", "map", "recall_at_tious"),
        *("by_length", "highlights", "count", "empty", "missing", "unknown", "videos", "reproduce_bugs"),
    )

    recall: dict[float, float]  # R@1: share of sentences whose first window overlaps a true one that much
    recall_intervals: dict[float, tuple[float, float] | None]  # 95 %, videos are the independent units
    mean_iou: float  # of the first window with the true one that it matches best
    mean_iou_interval: tuple[float, float] | None
    windows: WindowScore  # by QVHighlights' rules, over all sentences
    average_map_interval: tuple[float, float] | None
    by_length: dict[str, WindowScore]  # the same for true windows of a range of lengths
    highlights: dict[str, HighlightScore]  # by level of ratings; empty without ratings or without saliency
    count: int  # sentences
    empty: int  # sentences with a prediction that holds no window; 0 everywhere
    missing: int  # sentences without a prediction; 0 everywhere
    unknown: int  # predictions for sentences that the set does not have
    videos: int
    reproduce_bugs: tuple[str, ...]

    def tables(self) -> tuple[Table, ...]:
        """Return R@1, mean IoU, mAP and highlights."""
        return (moments_table(("",), (self,)),)

    def notes(self) -> tuple[str, ...]:
        """Return what the intervals lack."""
        few = warn_of_few(self.videos) if self.count > self.videos else None
        return (few,) if few else ()

    @property
    def tious(self) -> tuple[float, ...]:
        """Thresholds of `map` and `recall_at_tious`."""
        return MAP_TIOUS

    @property
    def average_map(self) -> float:
        """Mean average precision over all sentences and thresholds."""
        return self.windows.average_map

    @property
    def map(self) -> tuple[float, ...]:
        """Mean average precision at each threshold."""
        return self.windows.map

    @property
    def recall_at_tious(self) -> tuple[float, ...]:
        """R@1 at each threshold."""
        return self.windows.recall

    def values(self) -> dict[str, tuple[float, tuple[float, float] | Literal[""] | None]]:
        """Return every share with its interval by name; an empty text where none is computed."""
        values: dict[str, Any] = {
            f"R@1, IoU {tiou:g}": (share, self.recall_intervals[tiou]) for tiou, share in self.recall.items()
        }
        values["mean IoU"] = (self.mean_iou, self.mean_iou_interval)
        values["mAP, 0.5 to 0.95"] = (self.average_map, self.average_map_interval)
        values |= {f"mAP, {name} windows": (one.average_map, "") for name, one in self.by_length.items()}
        for level, one in self.highlights.items():
            name = level.replace("_", " ")
            values |= {f"highlights mAP, {name}": (one.mean_ap, ""), f"highlights Hit@1, {name}": (one.hit_at_1, "")}
        return values


def moments_table(names: Sequence[str], scores: Sequence[MomentScore]) -> Table:
    """Return a table of one score, or of several side by side."""
    first, columns = scores[0], [Column("", key="what")]
    for name in names:
        columns += [Column(name, "percent"), Column("95 %", "interval", key=f"{name} 95 %".lstrip())]
    values = [score.values() for score in scores]
    rows: list[tuple[Value, ...]] = [
        (what, *(part for one in values for part in one.get(what, ("", "")))) for what in values[0]
    ]
    lost = f"; {first.empty} without windows and {first.missing} missing count as 0" * (first.empty + first.missing > 0)
    bugs = f"; reproduced: {', '.join(first.reproduce_bugs)}" if first.reproduce_bugs else ""
    title = f"{first.count} sentences about {first.videos} videos{lost}{bugs}"
    return Table(title, tuple(columns), tuple(rows))


def score_moments(
    predictions: MomentPredictions, moments: MomentSet, *, reproduce_bugs: Sequence[ScorerBug] = ()
) -> MomentScore:
    """R@1 at three overlaps, mean IoU, and QVHighlights' mAP over sentences whose windows are known.

    The first window listed counts for R@1, against the true window that it matches best. AP of a sentence is over its
    first ten windows by score; mAP is the mean over sentences at 0.5, 0.55, .. 0.95.

    Args:
        reproduce_bugs: `empty-query` leaves a sentence without windows out of every mean, as the original does for mAP.

    >>> items = (MomentItem("1", "v", "q", ((4.0, 8.0),)), MomentItem("2", "v", "q", ((0.0, 2.0),)))
    >>> found = MomentPredictions({"1": MomentPrediction(((4.0, 7.0, 0.9),)), "2": MomentPrediction(())})
    >>> score = score_moments(found, MomentSet(items))
    >>> score.recall[0.5], score.mean_iou, score.empty
    (0.5, 0.375, 1)
    >>> score_moments(found, MomentSet(items), reproduce_bugs=("empty-query",)).recall[0.5]
    1.0
    """
    unknown_bugs = set(reproduce_bugs) - set(get_args(ScorerBug))
    if unknown_bugs:
        raise BadValue(
            f"the scorer of moments has no bug {min(unknown_bugs)!r}; known: {', '.join(get_args(ScorerBug))}"
        )
    known = _located(moments)
    own = predictions.checked(known).predictions
    items = [item for item in known.items if not reproduce_bugs or (item.id in own and own[item.id].windows)]
    if not items:
        raise DataError("no sentence has a predicted window", fault="F153")
    owners = [item.video for item in items]
    overlaps, table = first_overlaps(own, items), average_precisions(own, items)
    by_length = {
        name: _window_score(first_overlaps(own, group), average_precisions(own, group))
        for name, group in items_by_length(items).items()
    }
    hits = {tiou: overlaps >= tiou for tiou in RECALL_TIOUS}
    return MomentScore(
        recall={tiou: float(flags.mean()) for tiou, flags in hits.items()},
        recall_intervals={tiou: share_interval(owners, flags) for tiou, flags in hits.items()},
        mean_iou=float(overlaps.mean()),
        mean_iou_interval=mean_interval(owners, overlaps),
        windows=_window_score(overlaps, table),
        average_map_interval=mean_interval(owners, table.mean(axis=1)),
        by_length=by_length,
        highlights=_highlights([item for item in known.items if item.clips], own),
        count=len(items),
        empty=sum(item.id in own and not own[item.id].windows for item in known.items),
        missing=len(known) - len(own),
        unknown=sum(name not in moments.by_id for name in predictions.predictions),
        videos=len(set(owners)),
        reproduce_bugs=tuple(reproduce_bugs),
    )


def moment_map(predictions: MomentPredictions, moments: MomentSet) -> float:
    """QVHighlights' mAP: the mean over sentences and over overlaps of 0.5, 0.55, .. 0.95; see `score_moments`.

    >>> items = MomentSet((MomentItem("1", "v", "q", ((4.0, 8.0),)),))
    >>> moment_map(MomentPredictions({"1": MomentPrediction(((4.0, 7.0, 0.9),))}), items)
    0.6
    """
    return score_moments(predictions, moments).windows.average_map


class MomentMetric(Metric):
    """Metric of windows whose value is a mean over sentences."""

    task = "moments"
    cites = "lei2021"
    mean_over = "sentences"
    has_intervals = True
    share: ClassVar[bool]  # whether sentences are right or wrong

    def classes(self, truth: MomentSet) -> tuple[str, ...]:
        return tuple(items_by_length(truth.items))

    @abstractmethod
    def values(self, windows: Mapping[str, MomentPrediction], items: Sequence[MomentItem]) -> Floats:
        """Return the (N, T) values of each sentence, over which the value of a cell is the mean."""

    @abstractmethod
    def of_score(self, score: MomentScore) -> tuple[float, tuple[float, float] | None]:
        """Return the value and its interval in the scores of a cell."""

    def measure(self, truth: MomentSet, predictions: MomentPredictions, options: MetricOptions) -> Measured:
        return _MeasuredWindows(self, _located(truth), predictions)


@metric("moment_recall")
class MomentRecall(MomentMetric):
    """Share of sentences whose first window overlaps a true one by at least a half."""

    function = staticmethod(score_moments)
    share = True

    def label(self, options: MetricOptions) -> str:
        return f"R@1, IoU {RECALL_TIOU:g}"

    def values(self, windows: Mapping[str, MomentPrediction], items: Sequence[MomentItem]) -> Floats:
        return np.asarray(first_overlaps(windows, items)[:, None] >= RECALL_TIOU, np.float64)

    def of_score(self, score: MomentScore) -> tuple[float, tuple[float, float] | None]:
        return score.recall[RECALL_TIOU], score.recall_intervals[RECALL_TIOU]


@metric("moment_map")
class MomentMeanAP(MomentMetric):
    """Mean average precision of the windows of sentences, by QVHighlights' rules."""

    function = staticmethod(moment_map)
    share = False

    def label(self, options: MetricOptions) -> str:
        return "mAP"

    def values(self, windows: Mapping[str, MomentPrediction], items: Sequence[MomentItem]) -> Floats:
        return average_precisions(windows, items)

    def of_score(self, score: MomentScore) -> tuple[float, tuple[float, float] | None]:
        return score.windows.average_map, score.average_map_interval


class _MeasuredWindows(MeanOverItems):
    """Windows of some sentences, by a metric."""

    def __init__(
        self, metric: MomentMetric, moments: MomentSet, predictions: MomentPredictions, length: str = ""
    ) -> None:
        self._metric, self._moments, self._predictions = metric, moments, predictions
        items: Sequence[MomentItem] = items_by_length(moments.items).get(length, []) if length else moments.items
        values = metric.values(predictions.predictions, items) if items else np.zeros((0, 1))
        summed = sum_by_video(moments.videos, [item.video for item in items], values.mean(axis=1))
        # Summed first over sentences, then over thresholds, as the scores of a cell are.
        value = None if length else float(values.mean(axis=0).mean())
        super().__init__(moments.videos, *summed, share=metric.share, value=value)

    @property
    def more(self) -> dict[str, Any]:
        score = score_moments(self._predictions, self._moments)
        interval = self._metric.of_score(score)[1]
        more: dict[str, Any] = {"interval": interval and list(interval)} | score.to_dict()
        for key in ("format", "videos", "unknown", "reproduce_bugs"):
            del more[key]
        return more

    @property
    def by_class(self) -> dict[str, float]:
        return {length: self.of_class(length).value for length in self._metric.classes(self._moments)}

    def of_class(self, name: str) -> Measured:
        return _MeasuredWindows(self._metric, self._moments, self._predictions, name)


def _located(moments: MomentSet) -> MomentSet:
    known = moments.located
    if not len(known):
        raise DataError("no window is known for any sentence; the predictions cannot be scored here", fault="F29")
    return known


def window_overlap(one: Window, other: Window) -> float:
    """Return the intersection of two windows over their union; 0 if both have no length.

    >>> window_overlap((0, 2), (1, 3))
    0.3333333333333333
    """
    shared = max(0.0, min(one[1], other[1]) - max(one[0], other[0]))
    union = max(one[1], other[1]) - min(one[0], other[0]) if shared else (one[1] - one[0]) + (other[1] - other[0])
    return shared / union if union > 0 else 0.0


def _overlap(windows: Sequence[Window], prediction: MomentPrediction | None) -> float:
    """Return the overlap of the first predicted window with the true window that it matches best."""
    if prediction is None or not prediction.windows:
        return 0.0
    first = prediction.windows[0][:2]
    return max(window_overlap(first, window) for window in windows)


def first_overlaps(predictions: Mapping[str, MomentPrediction], items: Sequence[MomentItem]) -> Floats:
    """Return (N,) the overlap of each sentence's first window with the true one that it matches best."""
    return np.array([_overlap(item.windows, predictions.get(item.id)) for item in items])


def average_precisions(predictions: Mapping[str, MomentPrediction], items: Sequence[MomentItem]) -> Floats:
    """Return (N, T) the average precision of each sentence at each threshold of `MAP_TIOUS`."""
    return np.array([_average_precisions(item.windows, predictions.get(item.id)) for item in items])


def items_by_length(items: Sequence[MomentItem]) -> dict[str, list[MomentItem]]:
    """Return the sentences of each range of lengths in `RANGES`, with the true windows of that length alone.

    >>> item = MomentItem("1", "v", "q", ((0.0, 4.0), (5.0, 25.0)))
    >>> {name: [one.windows for one in group] for name, group in items_by_length([item]).items()}
    {'short': [((0.0, 4.0),)], 'middle': [((5.0, 25.0),)]}
    """
    groups: dict[str, list[MomentItem]] = {}
    for name, (low, high) in RANGES.items():
        for item in items:
            if windows := tuple(window for window in item.windows if low < window[1] - window[0] <= high):
                groups.setdefault(name, []).append(replace(item, windows=windows))
    return groups


def _window_score(overlaps: Floats, table: Floats) -> WindowScore:
    means = table.mean(axis=0)
    recall = tuple(float((overlaps >= tiou).mean()) for tiou in MAP_TIOUS)
    return WindowScore(len(table), tuple(means.tolist()), float(means.mean()), recall)


def _average_precisions(windows: Sequence[Window], prediction: MomentPrediction | None) -> list[float]:
    """Return the average precision at each threshold of `MAP_TIOUS`.

    Predictions choose in order of score the best true window that is left, as ActivityNet's do.
    """
    if prediction is None or not prediction.windows:
        return [0.0] * len(MAP_TIOUS)
    ranked = sorted(prediction.windows[:MAX_WINDOWS], key=lambda window: -window[2])
    overlaps = [[window_overlap(window[:2], true) for true in windows] for window in ranked]
    best_first = [sorted(range(len(windows)), key=lambda i, row=row: (-row[i], -i)) for row in overlaps]  # type: ignore[misc]
    precisions = []
    for tiou in _EXACT_TIOUS:
        left = set(range(len(windows)))
        hits = []
        for rank, row in enumerate(overlaps):
            best = next((i for i in best_first[rank] if row[i] >= tiou and i in left), None)
            if best is not None:
                left.discard(best)
                hits.append(rank)
        precisions.append(interpolated_ap(np.array(hits, np.int64), len(windows)) if hits else 0.0)
    return precisions


def _highlights(items: Sequence[MomentItem], own: Any) -> dict[str, HighlightScore]:
    """Return mAP and Hit@1 of predicted saliency at each level; sentences without a prediction count as 0."""
    if not any(item.id in own and own[item.id].saliency for item in items):
        return {}
    scores = {}
    for name, least in HIGHLIGHT_LEVELS.items():
        precisions, hits = [], []
        for item in items:
            ratings = np.zeros((max(int((item.duration or 0) / CLIP_S), max(item.clips) + 1), len(item.saliency[0])))
            ratings[list(item.clips)] = item.saliency
            right = ratings >= least
            saliency = own[item.id].saliency if item.id in own else ()
            if not saliency:
                precisions.append(0.0)
                hits.append(False)
                continue
            padded = np.zeros(len(right))
            padded[: min(len(saliency), len(right))] = saliency[: len(right)]
            precisions.append(float(np.mean([_clip_precision(column, padded) for column in right.T])))
            best = int(np.argmax(saliency))
            hits.append(best < len(right) and bool(right[best].any()))
        scores[name] = HighlightScore(float(np.mean(precisions)), float(np.mean(hits)))
    return scores


def _clip_precision(right: Flags, saliency: Floats) -> float:
    """Return the mean, over scores at which recall rises, of the best precision at that or any higher recall.

    Clips of equal scores are one point of the curve, as in the original.

    >>> _clip_precision(np.array([True, False, True, False]), np.array([0.9, 0.8, 0.7, 0.1]))
    0.8333333333333333
    """
    if not right.any():
        return 0.0
    if right.all():
        return 1.0
    order = np.argsort(-saliency, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(saliency[order])), len(order) - 1)  # the last clip of each score
    hits = np.cumsum(right[order])[ends]
    precision = np.maximum.accumulate((hits / (ends + 1))[::-1])[::-1]
    rises = np.diff(hits, prepend=0) > 0
    return float(precision[rises].mean())
