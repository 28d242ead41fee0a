"""pm-k: accuracy of frame classifiers on a frame together with similar frames near it (Shankar et al. 2021)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from jostle.core.results import Result
from jostle.core.tables import Column, Table
from jostle.core.types.columns import Flags, Ints
from jostle.core.types.frame_sets import FrameSets
from jostle.core.types.score_table import ScoreTable
from jostle.errors import BadValue, DataError
from jostle.metrics.bootstrap import SHARE_DRAWS, share_interval, warn_of_few
from jostle.metrics.frame_sets import Pairs, Sets, pairs_within, require_frames, video_of
from jostle.metrics.measured import MeanOverItems, Measured, sum_by_video
from jostle.metrics.metric import Chance, Metric, MetricOptions, metric
from jostle.metrics.proportion import Interval

Scores = Mapping[str, npt.ArrayLike]  # scores of each class, or the number of the chosen class
Labels = Mapping[str, Sequence[int] | int]


@dataclass(frozen=True)
class OffsetCount:
    """Neighbours and errors at one offset, of all anchors and of those that are right."""

    frames: int
    errors: int
    frames_anchor_right: int
    errors_anchor_right: int


@dataclass(frozen=True)
class PmK(Result):
    """Result of pm-k for one classifier."""

    k: int  # radius in frames
    anchors: int  # number of anchors, of which all shares are
    accuracy: float  # share of anchors that are right (pm-0)
    accuracy_interval: Interval | None  # 95 %, over videos; None with fewer than two of them, as `pm_k_interval`
    pm_k: float  # share of anchors that are right together with every neighbour within k
    pm_k_interval: Interval | None
    drop: float  # `accuracy - pm_k`
    error_by_offset: dict[int, float]  # share of wrong neighbours at each offset that occurs
    pairs: int  # neighbours within k, over all anchors
    neighbours_median: float  # of the neighbours of an anchor
    correct_by_radius: tuple[int, ...]  # anchors right within 0, 1, .. k frames
    by_offset: dict[int, OffsetCount]  # the counts behind `error_by_offset`
    labels_of: str  # whose labels a neighbour is compared with
    include_anchor: bool  # whether the anchor itself must be right
    videos: int  # number of videos that the anchors are of, the units of the intervals
    interval_method: Literal["exact", "bootstrap"]  # exact where every anchor is of a video of its own

    @property
    def interval_text(self) -> str:
        """What the intervals are, in a sentence."""
        return describe_share_intervals(self.anchors, self.videos)

    def tables(self) -> tuple[Table, ...]:
        """Return accuracy on anchors and within k frames, and the error by offset where there are neighbours."""
        title = f"{self.anchors} anchors, {self.pairs} pairs within {self.k} frames, {self.neighbours_median:g} a set"
        columns = (Column("", key="what"), Column("", "percent", key="value"), Column("95 %", "interval"))
        rows = (
            ("accuracy", self.accuracy, self.accuracy_interval),
            (f"pm-{self.k}", self.pm_k, self.pm_k_interval),
            ("drop", self.drop, ""),
        )
        main = Table(f"{title} (median)", columns, rows, (self.interval_text,))
        return (main, self._errors()) if self.error_by_offset else (main,)

    def _errors(self) -> Table:
        columns = (Column("offset", "count"), Column("error", "percent"))
        return Table("Wrong neighbours", columns, tuple(self.error_by_offset.items()))

    def to_frame(self) -> Any:
        """Return a pandas data frame with the share of wrong neighbours at each offset.

        Raises:
            MissingExtra: if pandas is not installed.
        """
        return self._errors().frame()


def pm_k(
    scores: Scores,
    sets: Sets,
    labels: Labels,
    k: int = 10,
    *,
    labels_of: Literal["own", "anchor"] = "own",
    include_anchor: bool = True,
) -> PmK:
    """Accuracy on anchors, and on anchors together with every kept neighbour within `k` frames.

    A frame is right if the class of its best score (the first of equal ones) is among its labels. An anchor without
    neighbours decides alone. The paper leaves open whether the anchor belongs to its own set; the authors' code says
    yes, and so does the default.

    Args:
        scores: for each frame the scores of all classes, or the number of the class it was given. `-inf` is allowed
            for classes that a model does not know.
        sets: the neighbours of each anchor. Frame keys hold frame numbers, see `frame_sets.frame_number`.
        labels: the classes of each frame; any of them is right.
        labels_of: compare a neighbour with its `own` labels (ImageNet-Vid-Robust) or its `anchor`'s (YTBB-Robust).
        include_anchor: whether the anchor must be right as well.

    >>> sets = {"v/5.jpg": ["v/4.jpg", "v/7.jpg"], "w/5.jpg": []}
    >>> labels = {"v/4.jpg": [0], "v/5.jpg": [0], "v/7.jpg": [0, 1], "w/5.jpg": [1]}
    >>> scores = {"v/4.jpg": [2, 1], "v/5.jpg": [3, 1], "v/7.jpg": [0, 1], "w/5.jpg": [1, 4]}
    >>> found = pm_k(scores, sets, labels)
    >>> found.accuracy, found.pm_k, found.error_by_offset
    (1.0, 1.0, {-1: 0.0, 2: 0.0})
    >>> pm_k(scores, sets, labels, labels_of="anchor").pm_k
    0.5
    """
    return _JudgedAnchors.of(scores, sets, labels, k, labels_of, include_anchor=include_anchor).result()


@dataclass(frozen=True, eq=False)
class _JudgedAnchors:
    """Anchors and neighbours of sets, and which of them are right."""

    k: int
    labels_of: str
    include_anchor: bool
    pairs: Pairs
    anchor_right: Flags  # (anchors,)
    neighbour_right: Flags  # (pairs,)
    right_within: list[Flags]  # which anchors are right within 0, 1, .. k frames

    @classmethod
    def of(
        cls,
        scores: Scores,
        sets: Sets,
        labels: Labels,
        k: int,
        labels_of: Literal["own", "anchor"],
        *,
        include_anchor: bool = True,
    ) -> _JudgedAnchors:
        """Judge every frame of the sets."""
        if labels_of not in ("own", "anchor"):
            raise BadValue(f"labels_of must be 'own' or 'anchor', got {labels_of!r}")
        pairs = pairs_within(sets, k)
        predicted, classes = _predict_classes(scores, pairs.frames)
        labelled = pairs.frames if labels_of == "own" else pairs.frames[: pairs.anchors]
        accepted = _collect_labels(labels, labelled, classes)
        anchor_right = _check_membership(predicted[: pairs.anchors], accepted[: pairs.anchors])
        if labels_of == "own":
            neighbour_right = _check_membership(predicted, accepted)[pairs.neighbour]
        else:
            accepted_near = [accepted[i] for i in pairs.anchor.tolist()]
            neighbour_right = _check_membership(predicted[pairs.neighbour], accepted_near)
        right_within = _right_within(pairs, anchor_right, neighbour_right, k, include_anchor)
        return cls(k, labels_of, include_anchor, pairs, anchor_right, neighbour_right, right_within)

    @property
    def anchors(self) -> tuple[str, ...]:
        """The anchors, in the order of the sets."""
        return self.pairs.frames[: self.pairs.anchors]

    def result(self) -> PmK:
        """Return pm-k with its intervals."""
        pairs = self.pairs
        by_radius = tuple(int(np.count_nonzero(right)) for right in self.right_within)
        by_offset = _by_offset(pairs, self.anchor_right, self.neighbour_right)
        right_alone = int(np.count_nonzero(self.anchor_right))
        owners = [video_of(anchor) for anchor in self.anchors]
        videos = len(set(owners))
        return PmK(
            k=self.k,
            anchors=pairs.anchors,
            accuracy=right_alone / pairs.anchors,
            accuracy_interval=share_interval(owners, self.anchor_right),
            pm_k=by_radius[-1] / pairs.anchors,
            pm_k_interval=share_interval(owners, self.right_within[-1]),
            drop=(right_alone - by_radius[-1]) / pairs.anchors,
            error_by_offset={offset: count.errors / count.frames for offset, count in by_offset.items()},
            pairs=len(pairs.offset),
            neighbours_median=float(np.median(pairs.set_sizes)),
            correct_by_radius=by_radius,
            by_offset=by_offset,
            labels_of=self.labels_of,
            include_anchor=self.include_anchor,
            videos=videos,
            interval_method="exact" if videos == pairs.anchors else "bootstrap",
        )


@metric("pm_k")
class PmKAccuracy(Metric):
    """Share of anchor frames that are right together with every neighbour within k frames."""

    task = "frames"
    cites = "shankar2021"
    function = staticmethod(pm_k)
    mean_over = "anchors"
    recorded = "pm_k"
    has_intervals = True

    def label(self, options: MetricOptions) -> str:
        return f"pm-{options.k}"

    def chance(self, truth: FrameSets, predictions: Callable[[], ScoreTable], options: MetricOptions) -> Chance:
        """Return one class in all; a guess of pm-k must be right on every frame of a set, which is even less."""
        owners = [anchor.rpartition("/")[0] for anchor in truth.sets]
        # Anchors of one video are not independent, so that the interval over videos decides.
        answers = len(owners) if len(set(owners)) == len(owners) else None
        return Chance(1 / predictions().scores.shape[1], answers)

    def measure(self, truth: FrameSets, predictions: ScoreTable, options: MetricOptions) -> Measured:
        return _MeasuredFrames(truth, predictions, options)


class _MeasuredFrames(MeanOverItems):
    """pm-k of the anchors that have scores."""

    def __init__(self, truth: FrameSets, table: ScoreTable, options: MetricOptions) -> None:
        assert options.k is not None
        assert options.labels_of is not None
        self._table, known = table, set(table.names)
        sets = truth.without([frame for frame in truth.frames if frame not in known])
        scores = dict(zip(table.names, table.scores, strict=True))
        self._judged = _JudgedAnchors.of(scores, sets.sets, sets.labels, options.k, options.labels_of)
        owners = [anchor.rpartition("/")[0] for anchor in self._judged.anchors]
        videos = tuple(dict.fromkeys(owners))
        super().__init__(videos, *sum_by_video(videos, owners, self._judged.right_within[-1].astype(np.float64)))

    @property
    def more(self) -> dict[str, Any]:
        result = self._judged.result()
        interval = result.pm_k_interval and list(result.pm_k_interval)
        return {"interval": interval, "pm_k": result.to_dict(), "chance": 1 / self._table.scores.shape[1]}


def describe_share_intervals(anchors: int, videos: int) -> str:
    """Say what the intervals of shares of anchors are.

    >>> describe_share_intervals(20, 20)
    'intervals: 95 %, exact (Clopper and Pearson), each anchor is of a video of its own'
    >>> describe_share_intervals(20, 5)
    'intervals: 95 %, from 1000 draws of the 5 videos, each with all its anchors, and too narrow, as videos are few'
    """
    if anchors == videos:
        return "intervals: 95 %, exact (Clopper and Pearson), each anchor is of a video of its own"
    few = ", and too narrow, as videos are few" if warn_of_few(videos) else ""
    return f"intervals: 95 %, from {SHARE_DRAWS} draws of the {videos} videos, each with all its anchors{few}"


def _predict_classes(scores: Scores, frames: tuple[str, ...]) -> tuple[Ints, int | None]:
    """Return the predicted class of each frame, and the number of classes if scores are given."""
    require_frames(frames, scores, "scores")
    rows: list[Any] = [scores[frame] for frame in frames]
    lengths = [len(row) if hasattr(row, "__len__") else -1 for row in rows]
    if len(set(lengths)) > 1:
        other = next(i for i, length in enumerate(lengths) if length != lengths[0])
        descriptions = ["one class" if length < 0 else f"{length} scores" for length in (lengths[0], lengths[other])]
        raise DataError(
            f"{frames[0]} has {descriptions[0]} but {frames[other]} has {descriptions[1]}; give all frames alike"
        )
    if lengths[0] == 0:
        raise DataError(f"{frames[0]} has no scores of any class")
    try:
        table = np.array(rows)
    except ValueError as error:
        raise DataError(f"scores must be one number a class: {error}") from error
    if lengths[0] < 0:
        if table.dtype.kind not in "iu" or table.min() < 0:
            raise DataError(
                "where a frame has one class it must be a whole number from 0; give class numbers or scores"
            )
        return table.astype(np.int64), None
    if table.dtype.kind not in "iuf" or table.ndim != 2:
        raise DataError(f"scores must be one number a class, got {rows[0]!r} for {frames[0]}")
    bad = np.flatnonzero(np.isnan(table).any(axis=1) | ~np.isfinite(table.max(axis=1)))
    if len(bad):
        raise DataError(
            f"{len(bad)} of {len(frames)} frames have NaN scores or no finite best one, the first: {frames[bad[0]]}; "
            "such a frame has no predicted class",
            fault="F40",
        )
    return table.argmax(axis=1), lengths[0]


def _collect_labels(labels: Labels, frames: tuple[str, ...], classes: int | None) -> list[frozenset[int]]:
    """Return the accepted classes of each frame."""
    require_frames(frames, labels, "labels")
    label_sets = []
    for frame in frames:
        frame_labels = labels[frame]
        accepted = (
            frozenset(frame_labels) if isinstance(frame_labels, Sequence | np.ndarray) else frozenset([frame_labels])
        )
        wrong = [label for label in accepted if not _is_class(label, classes)]
        if wrong or not accepted:
            what = f"label {wrong[0]!r}" if wrong else "no label at all"
            kind = "a whole number from 0" if classes is None else f"a class from 0 to {classes - 1}"
            raise DataError(f"{frame} has {what}; every label must be {kind}")
        label_sets.append(accepted)
    return label_sets


def _is_class(label: object, classes: int | None) -> bool:
    whole = isinstance(label, int | np.integer) and not isinstance(label, bool)
    return whole and label >= 0 and (classes is None or label < classes)  # type: ignore[operator]


def _check_membership(predicted: Ints, accepted: Sequence[frozenset[int]]) -> Flags:
    return np.array([prediction in right for prediction, right in zip(predicted.tolist(), accepted, strict=True)], bool)


def _right_within(
    pairs: Pairs, anchor_right: Flags, neighbour_right: Flags, k: int, include_anchor: bool
) -> list[Flags]:
    """Return which anchors are right within 0, 1, .. k frames."""
    distance = np.abs(pairs.offset)
    never = k + 1
    nearest = np.full(pairs.anchors, never)
    np.minimum.at(nearest, pairs.anchor, distance)
    nearest_wrong = np.full(pairs.anchors, never)
    np.minimum.at(nearest_wrong, pairs.anchor[~neighbour_right], distance[~neighbour_right])
    last = min(k, int(distance.max(initial=0)))  # constant beyond the farthest neighbour
    flags = []
    for radius in range(last + 1):
        right = nearest_wrong > radius
        right &= anchor_right if include_anchor else anchor_right | (nearest <= radius)
        flags.append(right)
    return flags + flags[-1:] * (k - last)


def _by_offset(pairs: Pairs, anchor_right: Flags, neighbour_right: Flags) -> dict[int, OffsetCount]:
    offsets, index = np.unique(pairs.offset, return_inverse=True)
    anchor_was_right = anchor_right[pairs.anchor]
    columns = [
        np.bincount(index[selected], minlength=len(offsets)).tolist()
        for selected in (
            np.ones(len(index), bool),
            ~neighbour_right,
            anchor_was_right,
            anchor_was_right & ~neighbour_right,
        )
    ]
    return {offset: OffsetCount(*row) for offset, row in zip(offsets.tolist(), zip(*columns, strict=True), strict=True)}
