"""Scoring of detections by a named protocol, and paired comparison of two scores, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jostle.core.results import Result, plain
from jostle.core.tables import Column, Table, Value, data_frame
from jostle.core.types.columns import Floats
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.errors import DataError
from jostle.metrics.alignment import Aligned, align, pluralize
from jostle.metrics.bootstrap import Interval, Resamples, bootstrap_interval, warn_of_few
from jostle.metrics.matching import Matches, match
from jostle.metrics.mean_ap import average_precisions, mean_over_classes
from jostle.metrics.measured import Draws, Measured, Weights
from jostle.metrics.metric import Metric, MetricOptions, metric
from jostle.metrics.protocol import Protocol, check_tious, protocols


@dataclass(frozen=True, eq=False)
class Score(Result):
    """Score of detections by one protocol."""

    protocol: str  # name of the protocol
    tious: Floats  # (n,) thresholds
    map: Floats  # (n,) mean average precision at each
    average_map: float  # its mean over the thresholds
    per_class: dict[str, Floats]  # (n,) average precision by class, for classes with an instance
    interval: Interval | None  # bootstrap interval over videos, or None if it was not requested or is undefined
    truth: Truth = field(repr=False)  # the ground truth, after the protocol's own rules
    predictions: dict[str, int]  # counts of predictions: `count`, `videos`, `unknown_label`, `outside_subset`
    remarks: tuple[str, ...] = field(repr=False)  # messages for the user
    matches: Matches = field(repr=False)  # matched predictions and instances, for further analysis
    resamples: Resamples = field(repr=False)  # the same in the form that resampling needs

    def tables(self) -> tuple[Table, ...]:
        """Return mean average precision at every threshold, then by class."""
        return score_tables(("",), (self,))

    def notes(self) -> tuple[str, ...]:
        """Return the remarks on the predictions and the ground truth."""
        return self.remarks

    def to_dict(self) -> dict[str, Any]:
        """Return the score as plain values for JSON: fractions, never NaN."""
        names = ("protocol", "tious", "map", "average_map", "per_class", "truth", "predictions", "interval", "remarks")
        values = {name: getattr(self, name) for name in names} | {"truth": truth_facts(self.truth)}
        return {"format": 1, **plain(values)}

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each threshold: mAP and all classes, as fractions.

        Raises:
            MissingExtra: if pandas is not installed.
        """
        return data_frame({"tiou": self.tious, "map": self.map, **self.per_class})

    def __repr__(self) -> str:
        return f"Score({self.protocol}: average mAP {100 * self.average_map:.2f} over {len(self.tious)} thresholds)"


def score(
    predictions: Predictions,
    truth: Truth,
    *,
    protocol: str | Protocol = "activitynet",
    tious: Sequence[float] | Floats | None = None,
    bootstrap: int = 0,
    level: float = 0.95,
    seed: int = 0,
    blocked: Collection[str] = (),
    strict: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Score:
    """Mean average precision of detections by the rules of one public evaluator.

    Args:
        protocol: `activitynet`, `thumos14`, `thumos14-official` or `opentad`.
        tious: thresholds; by default the protocol's own.
        bootstrap: resamples of videos for the interval; 0 for none.
        level: of the interval.
        blocked: ids of videos that are left out on both sides.
        strict: refuse predictions of a class the truth lacks instead of ignoring them.
        progress: called with (resamples done, total resamples).

    Raises:
        DataError: if there is no instance, or the two are of different datasets.

    >>> truth = Truth(("a",), ("Jump",), [0], [1.0], [3.0], [0])
    >>> found = Predictions(("a",), ("Jump",), [0, 0], [1.0, 7.0], [2.8, 8.0], [0, 0], [0.9, 0.8])
    >>> score(found, truth, protocol="thumos14", tious=[0.5, 0.95]).map.tolist()
    [1.0, 0.0]
    """
    rules = protocols[protocol] if isinstance(protocol, str) else protocol
    grid = check_tious(rules.tious if tious is None else tious)
    scored_truth = prepare_truth(truth, rules, blocked)
    aligned = align(predictions, scored_truth, blocked=blocked, strict=strict)
    matches = match(aligned, scored_truth, rules, grid)
    by_class = average_precisions(matches, rules)
    means = mean_over_classes(by_class)
    interval = None
    remarks = [*_remarks_on(truth, scored_truth), *aligned.remarks]
    resamples = Resamples.from_matches(aligned, matches, scored_truth, rules)
    if bootstrap:
        values = resamples.mean_aps(draws=bootstrap, seed=seed, progress=progress)
        interval = bootstrap_interval(values, means, level=level, seed=seed)
        if interval is None:
            remarks.append(
                "no interval: resampling the videos cannot move the score, as there are too few or all agree"
            )
        elif few := warn_of_few(len(resamples.videos)):
            remarks.append(few)
    duplicates = count_duplicates(aligned, matches)
    if duplicates:
        remarks.append(f"{pluralize(duplicates, 'prediction')} equal to another in everything, counted as false alarms")
    return Score(
        protocol=rules.name,
        tious=grid,
        map=means,
        average_map=float(means.mean()),
        per_class={name: by_class[i] for i, name in enumerate(scored_truth.classes) if not np.isnan(by_class[i, 0])},
        interval=interval,
        truth=scored_truth,
        predictions=aligned.counts | {"duplicates": duplicates},
        remarks=tuple(remarks),
        matches=matches,
        resamples=resamples,
    )


@metric("mean_ap")
class MeanAP(Metric):
    """Mean average precision of detections, over the thresholds of a benchmark."""

    task = "detection"
    cites = "caba2015"
    function = staticmethod(score)
    has_intervals = True

    def label(self, options: MetricOptions) -> str:
        return "mAP@" + ":".join(f"{tiou:g}" for tiou in sorted({options.tious[0], options.tious[-1]}))

    def measure(self, truth: Truth, predictions: Predictions, options: MetricOptions) -> Measured:
        assert options.protocol is not None
        result = score(predictions, truth, protocol=options.protocol, tious=options.tious)
        return _MeasuredDetections(result.average_map, result.resamples, result)


class _MeasuredDetections(Measured):
    """Mean average precision of detections, or with a part of the resamples of one class."""

    def __init__(self, value: float, resamples: Resamples, result: Score) -> None:
        super().__init__(value, resamples.videos)
        self._resamples, self._result = resamples, result

    @property
    def by_class(self) -> dict[str, float]:
        return {name: float(values.mean()) for name, values in self._result.per_class.items()}

    @property
    def by_video(self) -> Floats:
        return self._resamples.by_video()

    def drawn(self, weights: Weights) -> Draws:
        return self._resamples.drawn(weights)

    def of_class(self, name: str) -> Measured:
        if name not in self._result.per_class:
            return Measured(float("nan"), self.videos)
        part = self._resamples.of_class(self._result.truth.classes.index(name))
        return _MeasuredDetections(float(self._result.per_class[name].mean()), part, self._result)


def operating_score(scores: Floats, instances: int) -> float:
    """Return the score from which on there are as many predictions as instances.

    A detector gives hundreds of unsure detections a video, which matter to average precision and to nobody's eye.

    >>> operating_score(np.array([0.1, 0.9, 0.4, 0.8]), 2)
    0.8
    """
    if len(scores) <= instances or not instances:
        return float(scores.min(initial=0.0))
    return float(np.partition(scores, -instances)[-instances])


def truth_facts(truth: Truth) -> dict[str, Any]:
    """Return the facts of the truth that belong to every score: counts, subset and fingerprint."""
    return {
        "videos": len(truth.videos),
        "instances": len(truth),
        "classes": int(np.count_nonzero(truth.counts)),
        "subset": truth.subset,
        "fingerprint": truth.fingerprint,
        "left_out": dict(truth.left_out),
    }


def prepare_truth(truth: Truth, rules: Protocol, blocked: Collection[str] = ()) -> Truth:
    """Return the instances that the protocol counts.

    Raises:
        DataError: if none is left.
    """
    if blocked:
        remaining = truth.of_videos([name for name in truth.videos if name not in blocked])
        dropped = len(truth) - len(remaining)
        truth = replace(
            remaining, left_out=dict(remaining.left_out) | ({"in a blocked video": dropped} if dropped else {})
        )
    prepared = rules.prepare(truth)
    if not len(prepared):
        raise DataError(
            "the ground truth has no instance to score by; check the subset and what was left out", fault="F29"
        )
    return prepared


def count_duplicates(aligned: Aligned, matches: Matches) -> int:
    """Count predictions that repeat another exactly: video, class, segment and score."""
    order = matches.ranking.order
    ranked = aligned.score[order]
    tied = np.zeros(len(ranked) + 1, bool)
    tied[1:-1] = ranked[1:] == ranked[:-1]
    rows = order[tied[1:] | tied[:-1]]
    if not len(rows):
        return 0
    columns = [values[rows] for values in (aligned.end, aligned.start, aligned.video, aligned.label, aligned.score)]
    by_value = np.lexsort(columns)
    same = np.logical_and.reduce([values[by_value][1:] == values[by_value][:-1] for values in columns])
    return int(np.count_nonzero(same))


def _remarks_on(truth: Truth, counted: Truth) -> list[str]:
    remarks = [f"{pluralize(count, 'instance')} left out: {why}" for why, count in counted.left_out.items()]
    empty = [name for name, count in zip(counted.classes, counted.counts, strict=True) if not count]
    if empty:
        remarks.append(f"classes without an instance do not count in the mean: {', '.join(empty)}")
    late = np.isfinite(truth.duration[truth.video]) & (truth.end > truth.duration[truth.video])
    if late.any():
        remarks.append(f"{pluralize(int(late.sum()), 'instance')} past the end of the video, counted as annotated")
    if len(set(truth.subsets)) > 1:
        remarks.append(
            f"the ground truth holds several subsets, and all count: {', '.join(sorted(set(truth.subsets)))}"
        )
    return remarks


@dataclass(frozen=True, eq=False)
class Comparison(Result):
    """Difference of two runs: the second minus the first."""

    protocol: str
    tious: Floats  # (n,) thresholds
    map: Floats  # (n,) difference in mean average precision at each
    average_map: float  # difference of the averages
    per_class: dict[str, Floats]  # (n,) difference by class
    interval: Interval | None  # paired bootstrap over videos, or None
    share_worse: float | None  # share of the draws in which the second is below the first; None without draws

    def tables(self) -> tuple[Table, ...]:
        """Return the change at every threshold, in points."""
        note = "The second run less the first; the interval is over the same draws of videos for both."
        interval = self.interval
        columns = (Column("", key="what"), Column("change", "points"), Column("95 %", "interval"))
        rows = [
            (f"mAP at tIoU {tiou:g}", float(self.map[i]), None if interval is None else interval.map[i])
            for i, tiou in enumerate(self.tious)
        ]
        rows.append(("average mAP", self.average_map, None if interval is None else interval.average_map))
        return (Table(f"{self.protocol} protocol", columns, tuple(rows), (note,)),)


def score_tables(
    names: Sequence[str],
    scores: Sequence[Score],
    change: Comparison | None = None,
    *,
    variant: str | None = None,
) -> tuple[Table, ...]:
    """Return mean average precision at every threshold and on average, then by class, of one score or of two.

    Args:
        names: columns of the scores.
        change: of the second score, with its intervals.
        variant: known variant of the data set that the ground truth is.
    """
    first = scores[0]
    interval = first.interval if change is None else change.interval
    columns = [Column("", key="what"), *(Column(name, "percent") for name in names)]
    columns += [Column("change", "points")] if change is not None else []
    columns += [Column("95 %", "interval")] if interval is not None else []

    def row(what: str, values: Sequence[float], ends: Value) -> tuple[Value, ...]:
        gap = [] if change is None else [values[1] - values[0]]
        return (what, *values, *gap, *([ends] if interval is not None else []))

    each = interval.map if interval is not None else (None,) * len(first.tious)
    rows = [
        row(f"mAP at tIoU {tiou:g}", [float(one.map[i]) for one in scores], each[i])
        for i, tiou in enumerate(first.tious)
    ]
    average = [one.average_map for one in scores]
    rows.append(row("average mAP", average, None if interval is None else interval.average_map))
    classes = [
        row(f"AP of {name}", [float(one.per_class[name].mean()) for one in scores], "") for name in first.per_class
    ]
    counts = [f"{one.predictions['count']} predictions in {one.predictions['videos']} videos" for one in scores]
    title = f"{first.protocol} protocol, {' and '.join(counts)}"
    paired = ("the interval is of the change, over the same draws of videos",) if change and interval else ()
    truth = first.truth
    about = (
        f"{len(truth.videos)} videos, {len(truth)} instances, {np.count_nonzero(truth.counts)} classes"
        f"{f', subset {truth.subset}' if truth.subset else ''}{f'; {variant}' if variant else ''}; "
        f"truth {truth.fingerprint[:19]}"
    )
    return Table(title, tuple(columns), tuple(rows), (about, *paired)), Table(
        "By class", tuple(columns), tuple(classes)
    )


def compare(one: Score, other: Score, *, bootstrap: int = 1000, level: float = 0.95, seed: int = 0) -> Comparison:
    """Return the difference `other - one`, with an interval from drawing the same videos for both.

    Raises:
        DataError: if the two were not scored by one truth, protocol and grid of thresholds.
    """
    if one.truth.fingerprint != other.truth.fingerprint:
        raise DataError(
            f"the two runs were scored by different ground truths, {one.truth.fingerprint[:19]} and "
            f"{other.truth.fingerprint[:19]}; score both by one",
            fault="F48",
        )
    if one.protocol != other.protocol or not np.array_equal(one.tious, other.tious):
        raise DataError(
            f"the two runs were scored by different rules, {one.protocol} at {one.tious.tolist()} and "
            f"{other.protocol} at {other.tious.tolist()}; score both by one",
            fault="F48",
        )
    interval, share = None, None
    if bootstrap:
        everything = {*one.resamples.videos, *other.resamples.videos}
        first = one.resamples.mean_aps(draws=bootstrap, seed=seed, videos=everything)
        differences = other.resamples.mean_aps(draws=bootstrap, seed=seed, videos=everything) - first
        interval = bootstrap_interval(differences, other.map - one.map, level=level, seed=seed)
        share = float(np.mean(differences.mean(axis=1) < 0))
    return Comparison(
        protocol=one.protocol,
        tious=one.tious,
        map=other.map - one.map,
        average_map=other.average_map - one.average_map,
        per_class={name: other.per_class[name] - values for name, values in one.per_class.items()},
        interval=interval,
        share_worse=share,
    )
