"""Scores detections: mean average precision by a named protocol, with an interval."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jostle.core.notebook import data_frame, html_table, percents
from jostle.core.types.columns import Floats
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.errors import DataError
from jostle.metrics.alignment import Aligned, align, counted_as
from jostle.metrics.bootstrap import Interval, Resamples, interval_of
from jostle.metrics.matching import Matches, match
from jostle.metrics.mean_ap import average_precisions, mean_over_classes
from jostle.metrics.metric import metric
from jostle.metrics.protocol import Protocol, checked_tious, protocols


@dataclass(frozen=True, eq=False)
class Score:
    """What detections are worth by one protocol.

    Attributes:
        protocol: whose rules.
        tious: (n,) thresholds.
        map: (n,) mean average precision at each.
        average_map: its mean over the thresholds.
        per_class: (n,) average precision by class, for classes with an instance.
        interval: where the numbers would lie with other videos, or None if it was not asked for or cannot be had.
        truth: the truth it was scored by, after the protocol's own rules.
        predictions: counts of predictions: `count`, `videos`, `unknown_label`, `outside_subset` ...
        remarks: what a reader should know about the numbers.
        matches: who took whom, for what is computed from it later.
        resamples: the same, as drawing videos needs it.
    """

    protocol: str
    tious: Floats
    map: Floats
    average_map: float
    per_class: dict[str, Floats]
    interval: Interval | None
    truth: Truth = field(repr=False)
    predictions: dict[str, int]
    remarks: tuple[str, ...] = field(repr=False)
    matches: Matches = field(repr=False)
    resamples: Resamples = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The score as JSON has it: fractions, never NaN."""
        return {
            "format": 1,
            "protocol": self.protocol,
            "tious": self.tious.tolist(),
            "map": self.map.tolist(),
            "average_map": self.average_map,
            "per_class": {name: values.tolist() for name, values in self.per_class.items()},
            "truth": facts_of(self.truth),
            "predictions": dict(self.predictions),
            "interval": None if self.interval is None else self.interval.to_dict(),
            "remarks": list(self.remarks),
        }

    def to_frame(self) -> Any:
        """A pandas data frame: a row a threshold, mAP and then the classes, fractions.

        Raises:
            MissingExtra: if pandas is not installed.
        """
        return data_frame({"tiou": self.tious, "map": self.map, **self.per_class})

    def _repr_html_(self) -> str:
        ends = self.interval
        rows = [
            [f"{tiou:g}", percents(float(value), None if ends is None else ends.map[i])]
            for i, (tiou, value) in enumerate(zip(self.tious, self.map, strict=True))
        ]
        rows.append(["average", percents(self.average_map, None if ends is None else ends.average_map)])
        said = f"{len(self.truth.videos)} videos, {len(self.truth)} instances, {self.predictions['count']} predictions"
        return html_table(f"{self.protocol} protocol", ["tIoU", "mAP %"], rows, notes=(said, *self.remarks))

    def __repr__(self) -> str:
        return f"Score({self.protocol}: average mAP {100 * self.average_map:.2f} over {len(self.tious)} thresholds)"


@metric("mean_ap", task="detection", cites="caba2015")
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
        progress: called with (resamples done, resamples in all).

    Raises:
        DataError: if there is nothing to score by, or the two are not of one data set.

    >>> truth = Truth(("a",), ("Jump",), [0], [1.0], [3.0], [0])
    >>> found = Predictions(("a",), ("Jump",), [0, 0], [1.0, 7.0], [2.8, 8.0], [0, 0], [0.9, 0.8])
    >>> score(found, truth, protocol="thumos14", tious=[0.5, 0.95]).map.tolist()
    [1.0, 0.0]
    """
    rules = protocols[protocol] if isinstance(protocol, str) else protocol
    grid = checked_tious(rules.tious if tious is None else tious)
    counted = scored_truth(truth, rules, blocked)
    aligned = align(predictions, counted, blocked=blocked, strict=strict)
    matches = match(aligned, counted, rules, grid)
    by_class = average_precisions(matches, rules)
    means = mean_over_classes(by_class)
    interval = None
    remarks = [*_remarks_on(truth, counted), *aligned.remarks]
    resamples = Resamples.of(aligned, matches, counted, rules)
    if bootstrap:
        values = resamples.mean_aps(draws=bootstrap, seed=seed, progress=progress)
        interval = interval_of(values, means, level=level, seed=seed)
        if interval is None:
            remarks.append(
                "no interval: resampling the videos cannot move the score, as there are too few or all agree"
            )
    duplicates = repeated(aligned, matches)
    if duplicates:
        remarks.append(
            f"{counted_as(duplicates, 'prediction')} equal to another in everything, counted as false alarms"
        )
    return Score(
        protocol=rules.name,
        tious=grid,
        map=means,
        average_map=float(means.mean()),
        per_class={name: by_class[i] for i, name in enumerate(counted.classes) if not np.isnan(by_class[i, 0])},
        interval=interval,
        truth=counted,
        predictions=aligned.counts | {"duplicates": duplicates},
        remarks=tuple(remarks),
        matches=matches,
        resamples=resamples,
    )


def facts_of(truth: Truth) -> dict[str, Any]:
    """What a number must carry about the truth it was measured by."""
    return {
        "videos": len(truth.videos),
        "instances": len(truth),
        "classes": int(np.count_nonzero(truth.counts)),
        "subset": truth.subset,
        "fingerprint": truth.fingerprint,
        "left_out": dict(truth.left_out),
    }


def scored_truth(truth: Truth, rules: Protocol, blocked: Collection[str] = ()) -> Truth:
    """The instances the protocol counts.

    Raises:
        DataError: if none is left.
    """
    if blocked:
        left = truth.of_videos([name for name in truth.videos if name not in blocked])
        gone = len(truth) - len(left)
        truth = replace(left, left_out=dict(left.left_out) | ({"in a blocked video": gone} if gone else {}))
    counted = rules.prepare(truth)
    if not len(counted):
        raise DataError(
            "the ground truth has no instance to score by; check the subset and what was left out", fault="F29"
        )
    return counted


def repeated(aligned: Aligned, matches: Matches) -> int:
    """How many predictions repeat another one exactly: video, class, segment and score."""
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
    made = [f"{counted_as(count, 'instance')} left out: {why}" for why, count in counted.left_out.items()]
    empty = [name for name, count in zip(counted.classes, counted.counts, strict=True) if not count]
    if empty:
        made.append(f"classes without an instance do not count in the mean: {', '.join(empty)}")
    late = np.isfinite(truth.duration[truth.video]) & (truth.end > truth.duration[truth.video])
    if late.any():
        made.append(f"{counted_as(int(late.sum()), 'instance')} past the end of the video, counted as annotated")
    if len(set(truth.subsets)) > 1:
        made.append(f"the ground truth holds several subsets, and all count: {', '.join(sorted(set(truth.subsets)))}")
    return made
