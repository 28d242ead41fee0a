"""Gate for a release: conditions on a run, each decided by an interval, alone or against a reference run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jostle.core.config import make_settings, read_toml
from jostle.core.formatting import between, percent, signed
from jostle.core.types.columns import Floats
from jostle.corruptions.engine.corruption import corruptions
from jostle.errors import BadValue, DataError, Incomparable, UnknownName
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.run_folder.metadata import StoppedEarly
from jostle.metrics.accuracy import clopper_pearson
from jostle.metrics.bootstrap import bias_corrected, video_weights
from jostle.reporting.analysis.cell_scores import class_scores
from jostle.reporting.analysis.comparison import Standing, check_comparable
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.run_analysis import DRAWS, LEVEL, Progress, RunAnalysis, analyse_run, processed_videos
from jostle.reporting.analysis.tables import Column, Table

Decision = Literal["pass", "fail", "undecided"]
METRICS = ("clean", "mean_corrupted", "relative_robustness", "cell:SPEC", "family:NAME", "class:NAME")
SMALLEST_P = 1e-6  # what an interval can show at most
TAIL_DRAWS = 10  # draws beyond each end of an interval, at least


@dataclass(frozen=True)
class Condition:
    """A condition on a run: a metric, and the least value of it or the greatest loss against a reference run."""

    metric: str  # one of `METRICS`
    at_least: float | None = None  # fraction
    at_most_below_reference: float | None = None  # fraction: 0.02 allows a loss of two points
    level: float = LEVEL  # of the interval that decides
    name: str = ""  # in tables and reports; by default the metric and the limit

    def __post_init__(self) -> None:
        kind, _, part = self.metric.partition(":")
        if self.metric not in METRICS[:3] and (kind not in ("cell", "family", "class") or not part):
            raise BadValue(f"metric is one of {', '.join(METRICS)}, not {self.metric[:80]!r}", fault="F59")
        if (self.at_least is None) == (self.at_most_below_reference is None):
            raise BadValue(f"{self.metric}: give at_least or at_most_below_reference, one of the two", fault="F59")
        if not 0.5 <= self.level < 1:
            raise BadValue(f"{self.metric}: level must be at least 0.5 and below 1, not {self.level}", fault="F59")
        limit = self.at_least if self.at_least is not None else self.at_most_below_reference
        assert limit is not None
        if not 0 <= limit <= 1 and not (self.metric == METRICS[2] and self.at_least is not None and limit > 0):
            raise BadValue(f"{self.metric}: limits are fractions from 0 to 1, not {limit:g}", fault="F59")

    @property
    def against_reference(self) -> bool:
        """Whether it needs a reference run."""
        return self.at_most_below_reference is not None

    @property
    def limit(self) -> float:
        """Least value that is allowed; of a difference from the reference where it is against one."""
        return self.at_least if self.at_least is not None else -(self.at_most_below_reference or 0.0)

    @property
    def title(self) -> str:
        """Name in tables and reports."""
        if self.name:
            return self.name
        if self.against_reference:
            return f"{self.metric}, at most {percent(-self.limit, 1)} points below the reference"
        return f"{self.metric}, at least {percent(self.limit, 1)} %"


@dataclass(frozen=True)
class Budget:
    """Conditions of a gate, as a budget file lists them."""

    condition: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        if not self.condition:
            raise BadValue("a budget needs at least one [[condition]]", fault="F59")
        titles = [one.title for one in self.condition]
        if len(set(titles)) < len(titles):
            twice = next(title for title in titles if titles.count(title) > 1)
            raise BadValue(f"the condition {twice!r} is there twice; name one of them otherwise", fault="F59")


# A fall of the clean score can raise relative robustness, so both scores that it is a ratio of are checked.
AGAINST_REFERENCE = Budget(
    (Condition("clean", at_most_below_reference=0.02), Condition("mean_corrupted", at_most_below_reference=0.02))
)


@dataclass(frozen=True)
class DecidedCondition:
    """A condition and its decision."""

    name: str
    metric: str
    value: float  # of the run; against a reference, the run less the reference
    interval: tuple[float, float] | None  # that decided, at `interval_level`; None where it cannot be had
    limit: float  # least value that is allowed
    decision: Decision
    level: float  # of the budget
    interval_level: float  # after the correction for several conditions
    run: float  # value of the run
    reference: float | None = None  # value of the reference run; None for a condition without one

    @property
    def text(self) -> str:
        """What was found, in words."""
        number = percent(self.value) if self.reference is None else f"{signed(self.value)} points"
        ends = between(self.interval) or "no interval"
        limit = percent(self.limit) if self.reference is None else signed(self.limit)
        return f"{number} {ends}, limit {limit}: {self.decision}"

    def to_dict(self) -> dict[str, Any]:
        """Return the condition as plain values for JSON."""
        return vars(self) | {"interval": None if self.interval is None else list(self.interval)}


@dataclass(frozen=True)
class Check:
    """Decisions on the conditions of a gate."""

    benchmark: str
    run: str  # its folder
    against: str | None  # folder of the reference run
    conditions: tuple[DecidedCondition, ...]
    videos: int
    draws: int
    remarks: tuple[str, ...] = field(default=())

    @property
    def decision(self) -> Decision:
        """`fail` if a condition fails, else `undecided` if one is, else `pass`."""
        found = {one.decision for one in self.conditions}
        return "fail" if "fail" in found else "undecided" if "undecided" in found else "pass"

    @property
    def passed(self) -> bool:
        """Whether every condition of the budget passes."""
        return self.decision == "pass"

    @property
    def summary(self) -> str:
        """The decision and how many conditions it rests on, in one line."""
        counts = [
            f"{count} {name}"
            for name in ("pass", "fail", "undecided")
            if (count := sum(one.decision == name for one in self.conditions))
        ]
        return f"{self.decision}: {', '.join(counts)} of {len(self.conditions)} conditions"

    def table(self) -> Table:
        """Return a table with one row a condition."""
        columns = tuple(Column(name) for name in ("condition", "value", "interval", "limit", "decision"))
        rows = []
        for one in self.conditions:
            form = percent if one.reference is None else signed
            rows.append((one.name, form(one.value), between(one.interval), form(one.limit), one.decision))
        return Table(f"{self.benchmark}: {self.decision}", columns, tuple(rows))

    def to_dict(self) -> dict[str, Any]:
        """Return the check as plain values for JSON."""
        return {
            "format": 1,
            "decision": self.decision,
            "passed": self.passed,
            "benchmark": self.benchmark,
            "run": self.run,
            "against": self.against,
            "videos": self.videos,
            "draws": self.draws,
            "conditions": [one.to_dict() for one in self.conditions],
            "remarks": list(self.remarks),
        }


def read_budget(source: str | Path | Mapping[str, Any] | Budget | None) -> Budget | None:
    """Read the conditions of a gate from a TOML file or a mapping of the same form."""
    if source is None or isinstance(source, Budget):
        return source
    if isinstance(source, Mapping):
        return make_settings(Budget, source, where="budget")
    try:
        return make_settings(Budget, read_toml(source), where=str(source))
    except BadValue as error:
        message = str(error)
        raise BadValue(message if str(source) in message else f"{source}: {message}", fault=error.fault) from None


def check_run(
    run: RunRecord,
    against: RunRecord | None = None,
    budget: Budget | None = None,
    *,
    draws: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Check:
    """Decide the conditions of a budget on a finished run.

    Args:
        against: the reference run; it must be of the same benchmark, on the same videos and cells.
        budget: by default, with a reference, at most two points lost of the clean and of the mean corrupted score.
        draws: draws of the videos; by default enough for the intervals of all conditions.

    Raises:
        DataError: if a run does not cover its benchmark, or a condition names what it does not have.
        Incomparable: if the runs cannot be compared.
    """
    if run.about.stopped_early is not None:
        return _early_check(run, run.about.stopped_early, budget)
    if budget is None:
        if against is None:
            raise BadValue("nothing to check: give a budget, a reference run to compare with, or both")
        budget = AGAINST_REFERENCE
    conditions = budget.condition
    lacking = [one.title for one in conditions if one.against_reference]
    if against is None and lacking:
        raise BadValue(f"{lacking[0]!r} needs a reference run; give one with --against (against=)")
    for record in (run,) if against is None else (run, against):
        check_coverage(record)
    if against is not None:
        check_same(run, against)
    count = draws if draws is not None else enough_draws(conditions)
    records = (run,) if against is None else (run, against)
    total = sum(len(record.cells) for record in records)
    analyses: list[RunAnalysis] = []
    for record in records:
        before = sum(len(done.cells) for done in analyses)
        report = None if progress is None else (lambda done, _, before=before: progress(before + done, total))
        analyses.append(analyse_run(record, videos=processed_videos(run), draws=count, seed=seed, progress=report))
    same = len(analyses) == 2 and _same_predictions(analyses)
    measured = [measure_condition(condition, analyses, seed, same=same) for condition in conditions]
    remarks = _remarks(conditions, analyses, measured, same=same)
    return Check(
        benchmark=run.about.benchmark,
        run=str(run.folder),
        against=None if against is None else str(against.folder),
        conditions=tuple(_decide(conditions, measured)),
        videos=len(analyses[0].videos),
        draws=count,
        remarks=tuple(remarks),
    )


def _early_check(run: RunRecord, early: StoppedEarly, budget: Budget | None) -> Check:
    """Return the decisions of a run that stopped as soon as its own budget was decided."""
    decided = {(one.name, one.metric, one.limit, one.level) for one in early.conditions}
    if budget is not None and {(one.title, one.metric, one.limit, one.level) for one in budget.condition} != decided:
        raise DataError(
            f"{run.folder}: stopped early, when the conditions of another budget were decided; the same `jostle run` "
            "without --until-decided does the rest",
            fault="F150",
        )
    conditions = [
        DecidedCondition(
            one.name,
            one.metric,
            one.value - (one.reference or 0.0),
            None,
            one.limit,
            one.decision,
            one.level,
            one.level,
            one.value,
            one.reference,
        )
        for one in early.conditions
    ]
    remarks = (f"decided early: {early.reason}", f"the decisions are about {early.about}")
    return Check(run.about.benchmark, str(run.folder), early.against, tuple(conditions), early.videos, 0, remarks)


def check_coverage(record: RunRecord) -> None:
    """Raise DataError unless a run covers all videos and cells of its benchmark, which a gate speaks of."""
    coverage, counted = record.scores.coverage, record.scores.counted
    if coverage.videos < coverage.of or counted.cells < counted.of:
        raise DataError(
            f"{record.folder}: on {coverage.videos} of {coverage.of} videos and {counted.cells} of {counted.of} cells, "
            "and a part decides nothing about the benchmark; the same `jostle run` does the rest",
            fault="F150",
        )


def check_same(run: RunRecord, against: RunRecord) -> None:
    """Raise Incomparable unless both runs are of one benchmark, on the same videos and cells."""
    check_comparable((run, against))
    for what, own, theirs in (
        ("videos", set(processed_videos(run)), set(processed_videos(against))),
        ("cells", set(run.cells), set(against.cells)),
    ):
        if own != theirs:
            name = sorted(own ^ theirs)[0]
            raise Incomparable(
                f"{run.folder} and {against.folder} are not on the same {what}: only one has {name!r}; run both on all",
                fault="F150",
            )
    if run.about.seed != against.about.seed:
        raise Incomparable(
            f"{run.folder} and {against.folder} have corruptions of different seeds, {run.about.seed} and "
            f"{against.about.seed}; run both with one seed",
            fault="F150",
        )


def enough_draws(conditions: Sequence[Condition]) -> int:
    """Return how many draws leave some beyond each end of the widest interval."""
    tail = min((1 - one.level) / 2 for one in conditions) / len(conditions)
    return max(DRAWS, math.ceil(TAIL_DRAWS / tail))


IntervalAt = Callable[[float], tuple[float, float] | None]  # from a level


@dataclass(frozen=True)
class MeasuredCondition:
    """Value of a condition, and its interval at any level."""

    value: float
    interval: IntervalAt
    run: float
    reference: float | None = None


@dataclass(frozen=True, eq=False)
class _Metric:
    """A metric of one run: its value, its value in each draw, and how many answers it is a share of."""

    value: float
    drawn: Floats
    trials: int | None = None  # videos with one answer each, where the value is the share of right ones in one cell
    units: int = 0  # videos


def measure_condition(
    condition: Condition, analyses: Sequence[RunAnalysis], seed: int, *, same: bool = False
) -> MeasuredCondition:
    """Measure the metric of a condition, and its interval.

    Args:
        analyses: of the run, and of the reference run where there is one.
        seed: of the draws in the analyses.
        same: whether the predictions of both runs are the same to the last bit.

    Raises:
        DataError: if the metric has no value in a run.
    """
    own, *others = (_metric(condition.metric, analysis, seed) for analysis in analyses)
    if not condition.against_reference:
        return MeasuredCondition(own.value, _interval_of(own), own.value)
    reference = others[0]
    gap, drawn = own.value - reference.value, own.drawn - reference.drawn
    known = drawn[np.isfinite(drawn)]

    def interval(level: float) -> tuple[float, float] | None:
        if own.units < 2 or len(known) < 2:
            return None
        if known.min() < known.max():
            return bias_corrected(known, gap, level)
        if same:
            return gap, gap
        # No video's score differs: as many may do so as could have escaped so many videos.
        exact = clopper_pearson(0, own.units, level)
        return None if exact is None else (gap - exact[1], gap + exact[1])

    return MeasuredCondition(gap, interval, own.value, reference.value)


def _interval_of(metric: _Metric) -> IntervalAt:
    known = metric.drawn[np.isfinite(metric.drawn)]

    def interval(level: float) -> tuple[float, float] | None:
        if metric.units < 2 or len(known) < 2:
            return None
        if metric.trials is not None:
            return clopper_pearson(round(metric.value * metric.trials), metric.trials, level)
        if known.min() < known.max():
            return bias_corrected(known, metric.value, level)
        # All videos agree: the other kind may be as frequent as could have escaped so many.
        share = clopper_pearson(0, metric.units, level)
        return None if share is None else (metric.value - share[1], metric.value + share[1])

    return interval


def _same_predictions(analyses: Sequence[RunAnalysis]) -> bool:
    """Whether two runs predict the same to the last bit in every cell, as two runs of one model do."""
    one, other = (analysis.record for analysis in analyses)
    return all(
        one.predictions_file(cell).read_bytes() == other.predictions_file(cell).read_bytes() for cell in one.cells
    )


def _metric(name: str, analysis: RunAnalysis, seed: int) -> _Metric:
    """Return a metric of a run in all its draws."""
    kind, _, part = name.partition(":")
    units = len(analysis.videos)
    if kind == "clean" or kind == "cell":
        cell = CLEAN if kind == "clean" else _cell(analysis, part)
        return _Metric(
            _known(analysis.of(cell).value, name), analysis.drawn[:, analysis.place[cell]], analysis.trials, units
        )
    if kind == "class":
        return _class_metric(analysis, part, seed)
    cells = analysis.counted if kind != "family" else _family(analysis, part)
    if not cells:
        raise DataError(f"{analysis.record.folder}: has no corrupted cells, which {name} is the mean of", fault="F150")
    at = analysis.columns(cells)
    if kind == "relative_robustness":
        if Standing.of(analysis).guesses:
            raise DataError(
                f"{analysis.record.folder}: its clean score is at chance level, so that relative robustness means "
                "nothing; check clean and mean_corrupted",
                fault="F150",
            )
        clean = analysis.drawn[:, [analysis.place[CLEAN]]]
        with np.errstate(invalid="ignore", divide="ignore"):
            return _Metric(
                _known(analysis.relative().value, name), (analysis.drawn[:, at] / clean).mean(axis=1), None, units
            )
    return _Metric(_known(analysis.corrupted(cells).value, name), analysis.drawn[:, at].mean(axis=1), None, units)


def _class_metric(analysis: RunAnalysis, name: str, seed: int) -> _Metric:
    """Return the mean corrupted score of one class."""
    if name not in analysis.classes:
        raise UnknownName("class of the run", name, analysis.classes)
    weights = video_weights(analysis.videos, len(analysis.drawn), seed)
    scores = [class_scores(analysis.record, cell, analysis.videos, weights, name) for cell in analysis.counted]
    if not scores:
        raise DataError(
            f"{analysis.record.folder}: has no corrupted cells, which class:{name} is the mean of", fault="F150"
        )
    value = float(np.mean([value for value, _, _ in scores]))
    return _Metric(
        _known(value, f"class:{name}"), np.mean([drawn for _, drawn, _ in scores], axis=0), None, scores[0][2]
    )


def _known(value: float | None, name: str) -> float:
    if value is None or not math.isfinite(value):
        raise DataError(f"{name} has no value in this run; check another metric", fault="F150")
    return value


def _cell(analysis: RunAnalysis, name: str) -> str:
    if name not in analysis.place:
        raise UnknownName("cell of the run", name, [cell for cell in analysis.cells if cell != CLEAN])
    return name


def _family(analysis: RunAnalysis, name: str) -> tuple[str, ...]:
    """Return the counted cells of a family of corruptions."""
    families = {cell: _family_of(analysis, cell) for cell in analysis.counted}
    chosen = tuple(cell for cell, family in families.items() if family == name)
    if not chosen:
        raise UnknownName("family of corruptions in the run", name, {family for family in families.values() if family})
    return chosen


def _family_of(analysis: RunAnalysis, cell: str) -> str:
    """Return the family of a cell's corruptions; empty if they are of several, or of a plugin that is not here."""
    content = analysis.record.about.content.cell(cell)
    names = [] if content is None else [step.corruption for step in content.done]
    families = {corruptions[name].family if name in corruptions else "" for name in names}
    return families.pop() if len(families) == 1 else ""


def _decide(conditions: Sequence[Condition], measured: Sequence[MeasuredCondition]) -> list[DecidedCondition]:
    """Decide every condition, by Holm's step-down method: the clearest first, at the level of all of them."""
    p_values = [_p_value(one, condition.limit) for condition, one in zip(conditions, measured, strict=True)]
    decided: dict[int, DecidedCondition] = {}
    remaining, stopped = len(conditions), False
    for i in sorted(range(len(conditions)), key=lambda i: p_values[i]):
        condition, one = conditions[i], measured[i]
        level = 1 - (1 - condition.level) / remaining
        interval = one.interval(level)
        decision: Decision = "undecided"
        if interval is not None and not stopped:
            decision = (
                "pass" if interval[0] >= condition.limit else "fail" if interval[1] < condition.limit else "undecided"
            )
        # Once one is undecided, so are those that are less clear; their intervals stay at its level.
        stopped = stopped or decision == "undecided"
        remaining -= not stopped
        decided[i] = DecidedCondition(
            condition.title,
            condition.metric,
            one.value,
            interval,
            condition.limit,
            decision,
            condition.level,
            level,
            one.run,
            one.reference,
        )
    return [decided[i] for i in range(len(conditions))]


def _p_value(measured: MeasuredCondition, limit: float) -> float:
    """Return the smallest 1 - level at which the interval excludes the limit; 1 where there is none."""

    def excluded(p: float) -> bool:
        interval = measured.interval(1 - p)
        return interval is not None and (interval[0] >= limit or interval[1] < limit)

    low, high = SMALLEST_P, 1 - SMALLEST_P
    if excluded(low):
        return low
    if not excluded(high):
        return 1.0
    for _ in range(30):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if excluded(middle) else (middle, high)
    return high


def _remarks(
    conditions: Sequence[Condition],
    analyses: Sequence[RunAnalysis],
    measured: Sequence[MeasuredCondition],
    *,
    same: bool,
) -> list[str]:
    remarks = []
    if len(conditions) > 1:
        remarks.append(f"{len(conditions)} conditions: the levels of their intervals are corrected by Holm's method")
    if all(one.interval(LEVEL) is None for one in measured):
        remarks.append(f"{len(analyses[0].videos)} videos give no intervals, so that nothing is decided")
    relative_only = {one.metric for one in conditions} == {"relative_robustness"}
    if relative_only:
        remarks.append(
            "relative robustness can rise when the clean score falls; add conditions on clean and mean_corrupted"
        )
    if same:
        remarks.append("the predictions of both runs are the same to the last bit")
    return remarks
