"""Verdict of a gate: each condition of a budget decided by an interval, or left undecided with the reason."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from jostle.core.formatting import between, percent, signed
from jostle.core.results import Result
from jostle.core.tables import Column, Table
from jostle.errors import BadValue
from jostle.evaluation.results.comparison import condition_differences
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import Progress, RunAnalysis, analyse_run, processed_videos
from jostle.evaluation.run_folder.metadata import EarlyDecision
from jostle.gate.budget import AGAINST_REFERENCE, Budget, Condition
from jostle.gate.early_stopping import SequentialStop
from jostle.gate.evidence import Evidence, enough_draws, measure_condition, videos_needed
from jostle.gate.gaps import Gap, Scope, find_gaps, find_unpaired
from jostle.gate.group_sequential import GroupSequentialStop, check_intervals

Decision = Literal["pass", "fail", "undecided"]
SMALLEST_P = 1e-6  # what an interval can show at most


@dataclass(frozen=True)
class DecidedCondition:
    """A condition and its decision."""

    name: str
    metric: str
    value: float | None  # of the run; against a reference, the run less the reference; None where it was not measured
    interval: tuple[float, float] | None  # that decided, at `interval_level`; None where it cannot be had
    limit: float  # least value that is allowed
    decision: Decision
    level: float  # of the budget
    interval_level: float  # after the correction for several conditions
    run: float | None = None  # value of the run
    reference: float | None = None  # value of the reference run; None for a condition without one
    videos: int = 0  # that decided it
    method: str = ""  # how it was decided, in words
    reason: str = ""  # why it is undecided; else empty
    gap: bool = False  # whether it is undecided because something could not be looked at

    @property
    def is_difference(self) -> bool:
        """Whether the value is a difference from the reference run."""
        return self.limit < 0 or self.reference is not None

    @property
    def text(self) -> str:
        """Value, interval, limit and decision in words, and why it is undecided."""
        number = f"{signed(self.value)} points" if self.is_difference else percent(self.value)
        ends = between(self.interval) or "no interval"
        limit = signed(self.limit) if self.is_difference else percent(self.limit)
        return f"{number} {ends}, limit {limit}: {self.decision}" + (f" ({self.reason})" if self.reason else "")


@dataclass(frozen=True)
class Check(Result):
    """Decisions on the conditions of a gate."""

    json_keys = (
        *("decision", "passed", "benchmark", "run", "against", "videos", "draws"),
        *("conditions", "gaps", "remarks"),
    )

    benchmark: str
    run: str  # its folder
    against: str | None  # folder of the reference run
    conditions: tuple[DecidedCondition, ...]
    videos: int
    draws: int
    remarks: tuple[str, ...] = field(default=())
    gaps: tuple[str, ...] = field(default=())  # what could not be looked at

    @property
    def decision(self) -> Decision:
        """`fail` if a condition fails, else `undecided` if one is, else `pass`."""
        decisions = {one.decision for one in self.conditions}
        return "fail" if "fail" in decisions else "undecided" if "undecided" in decisions else "pass"

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

    def notes(self) -> tuple[str, ...]:
        """Remarks, gaps, and why conditions are undecided, each once, as lines below the table."""
        reasons = [f"{one.name}: {one.reason}" for one in self.conditions if one.reason and not one.gap]
        return tuple(dict.fromkeys((*self.gaps, *reasons, *self.remarks)))

    def tables(self) -> tuple[Table, ...]:
        """Return a row a condition; values are percentages, or points where there is a reference."""
        numbers = (Column("value", "points"), Column("interval", "interval"), Column("limit", "points"))
        columns = (Column("condition"), *numbers, Column("videos", "count"), Column("decision", "decision"))
        rows = []
        for one in self.conditions:
            form = signed if one.is_difference else percent
            value, limit = form(one.value), form(one.limit)  # the sign says which it is
            rows.append((one.name, value, one.interval or "", limit, one.videos, one.decision))
        return (Table("", columns, tuple(rows), (self.summary,)),)


def check_run(
    run: RunRecord,
    against: RunRecord | None = None,
    budget: Budget | None = None,
    *,
    cells: Collection[str] | None = None,
    draws: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Check:
    """Decide the conditions of a budget on a run.

    What the runs lack makes the conditions that it concerns undecided. A run that stopped early is decided again from
    its predictions, in the order in which its videos were drawn.

    Args:
        against: the reference run; it must be of the same benchmark, on the same videos and cells. For a run that
            stopped early it is by default the one that it was held against.
        budget: by default that of a run that stopped early, else, with a reference, at most two points lost of the
            clean and of the mean corrupted score.
        cells: cells that the gate is about; by default all of the benchmark that count.
        draws: draws of the videos; by default enough for the intervals of all conditions.

    Raises:
        DataError: if a metric of a condition has no value.
        Tampered: if predictions changed since they were written.
        Incomparable: if the runs cannot be compared.
    """
    conditions = _conditions(run, against, budget)
    against, lost = _reference(run, against, conditions)
    scope = Scope.of(run.about.content, cells)
    records = (run,) if against is None else (run, against)
    gaps_of = _gaps_by_condition(run, against, lost, scope, conditions)
    decidable = tuple(one for one in conditions if not gaps_of[one])
    decided = {one: _left_open(one, gaps_of[one][0].reason, gap=True) for one in conditions if gaps_of[one]}
    remarks = [] if against is None else condition_differences(run, against)
    videos = len(processed_videos(run))
    levels = [one.level for one in conditions]
    averaged = bool(run.metric.mean_over)
    count = draws if draws is not None else enough_draws(levels, len(levels), videos, averaged=averaged)
    if decidable and any(record.about.stopped_early is not None for record in records):
        replayed, remark = _replay(records, scope, decidable)
        decided |= replayed
        remarks.append(remark)
    elif decidable:
        measured, analyses, same = _measure_all(records, scope, decidable, count, seed, progress)
        decided |= dict(zip(decidable, _decide(decidable, measured), strict=True))
        remarks += _remarks(decidable, analyses, same=same)
    if cells is not None:
        remarks.append(f"about {len(scope.corrupted)} of {len(run.about.content.cells) - 1} corrupted cells, as given")
    gaps = dict.fromkeys(gap.reason for one in conditions for gap in gaps_of[one])
    return Check(
        benchmark=run.about.benchmark,
        run=str(run.folder),
        against=None if against is None else str(against.folder),
        conditions=tuple(decided[one] for one in conditions),
        videos=videos,
        draws=count,
        remarks=tuple(remarks),
        gaps=tuple(gaps),
    )


def _conditions(run: RunRecord, against: RunRecord | None, budget: Budget | None) -> tuple[Condition, ...]:
    """Return the conditions of a budget, by default those that a run stopped by, or those against a reference."""
    if budget is not None:
        return budget.condition
    if run.about.stopped_early is not None:
        return Budget(tuple(map(_recorded_condition, run.about.stopped_early.conditions))).condition
    if against is None:
        raise BadValue("nothing to check: give a budget, a reference run to compare with, or both")
    return AGAINST_REFERENCE.condition


def _reference(
    run: RunRecord, against: RunRecord | None, conditions: Sequence[Condition]
) -> tuple[RunRecord | None, list[Gap]]:
    """Return the reference run, by default that of a run that stopped early, and the gap that its loss leaves."""
    needing = [one.title for one in conditions if one.against_reference]
    if against is not None or not needing:
        return against, []
    early = run.about.stopped_early
    if early is None or early.against is None:
        raise BadValue(f"{needing[0]!r} needs a reference run; give one with --against (against=)")
    if Path(early.against).is_dir():
        return RunRecord.read(early.against), []
    return None, [Gap(f"the reference run {early.against} is not there; give it with --against (against=)")]


def _gaps_by_condition(
    run: RunRecord, against: RunRecord | None, lost: Sequence[Gap], scope: Scope, conditions: Sequence[Condition]
) -> dict[Condition, list[Gap]]:
    """Return what leaves each condition undecided; what the reference lacks concerns those that need it only."""
    about = {one: scope.of_condition(one) for one in conditions}
    named = {cell for one in about.values() for cell in one}
    own = find_gaps(run, scope, named)
    theirs = [] if against is None else [*find_gaps(against, scope, named), *find_unpaired(run, against)]
    return {
        one: [gap for gap in (*own, *((*theirs, *lost) if one.against_reference else ())) if gap.concerns(about[one])]
        for one in conditions
    }


def _measure_all(
    records: Sequence[RunRecord],
    scope: Scope,
    conditions: Sequence[Condition],
    draws: int,
    seed: int,
    progress: Progress | None,
) -> tuple[list[Evidence], list[RunAnalysis], bool]:
    """Return the evidence for each condition on whole runs, the analyses, and whether the predictions are the same."""
    total = sum(len(record.cells) for record in records)
    videos = processed_videos(records[0])
    # Where only the conditions without a reference can be decided, the reference may lack videos.
    records = [one for one in records if set(processed_videos(one)) == set(videos)]
    analyses: list[RunAnalysis] = []
    for record in records:
        before = sum(len(done.cells) for done in analyses)
        report = None if progress is None else (lambda done, _, before=before: progress(before + done, total))
        analyses.append(analyse_run(record, videos=videos, draws=draws, seed=seed, unseen=True, progress=report))
    same = len(analyses) == 2 and _same_predictions(records[0], records[1], scope.cells)
    return [measure_condition(one, scope, analyses, seed, same=same) for one in conditions], analyses, same


def _recorded_condition(one: EarlyDecision) -> Condition:
    """Return the condition that a run stopped by, from its record."""
    limits = {"at_least": one.limit} if one.reference is None else {"at_most_below_reference": -one.limit}
    return Condition(one.metric, level=one.level, name=one.name, **limits)


def _replay(
    records: Sequence[RunRecord], scope: Scope, conditions: Sequence[Condition]
) -> tuple[dict[Condition, DecidedCondition], str]:
    """Decide conditions on runs of which one stopped early, in the order in which its videos were drawn."""
    run, *others = records
    against = others[0] if others else None
    stopped = next(record for record in records if record.about.stopped_early is not None)
    content, seed = run.about.content, stopped.about.seed
    decided: dict[Condition, DecidedCondition] = {}
    budget = Budget(tuple(conditions))
    try:
        rule: SequentialStop | GroupSequentialStop
        names = tuple(run.task.videos)
        if run.metric.mean_over == "videos":
            rule = SequentialStop(scope, names, run.annotations, budget, against, seed=seed)
        else:
            check_intervals(content.name, run.metric)
            rule = GroupSequentialStop(scope, names, budget, against, seed=seed)
    except BadValue as error:
        for one in conditions:
            decided[one] = _left_open(one, str(error), gap=False)
        return decided, f"{stopped.folder} stopped early"
    known = set.intersection(*(set(processed_videos(record)) for record in records))
    prefix = []
    for name in rule.order:
        if name not in known:
            break
        prefix.append(name)
    seen = f"{len(prefix)} of {len(rule.order)} videos in random order"
    for one, found in zip(conditions, rule.replay(run, prefix), strict=True):
        value = None if not found.videos else found.value - (found.reference or 0.0)
        reason = ""
        if found.decision == "undecided":
            reason = f"not decided by {seen}; the same `jostle run` without --until-decided does the rest"
        decided[one] = DecidedCondition(
            name=one.title,
            metric=one.metric,
            value=value,
            interval=None,
            limit=one.limit,
            decision=found.decision,
            level=one.level,
            interval_level=one.level,
            run=found.value if found.videos else None,
            reference=found.reference,
            videos=found.videos,
            method=f"{rule.method}, {found.videos} of {len(rule.order)} in random order",
            reason=reason,
        )
    about = stopped.about.stopped_early
    assert about is not None
    return decided, f"{stopped.folder} stopped early, and is decided by {seen}; this is about {about.about}"


def _same_predictions(one: RunRecord, other: RunRecord, cells: Collection[str]) -> bool:
    """Whether two runs predict the same to the last bit in every cell, as two runs of one model do."""
    files = [(one.predictions_file(cell), other.predictions_file(cell)) for cell in cells]
    return all(a.exists() and b.exists() and a.read_bytes() == b.read_bytes() for a, b in files)


def _left_open(condition: Condition, reason: str, *, gap: bool) -> DecidedCondition:
    """Return a condition that was not measured."""
    return DecidedCondition(
        condition.title,
        condition.metric,
        None,
        None,
        condition.limit,
        "undecided",
        condition.level,
        condition.level,
        reason=reason,
        gap=gap,
    )


def _decide(conditions: Sequence[Condition], measured: Sequence[Evidence]) -> list[DecidedCondition]:
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
            one.videos,
            one.method(level) if interval is not None else "",
            "" if decision != "undecided" else _why_undecided(condition, one, interval),
        )
    return [decided[i] for i in range(len(conditions))]


def _why_undecided(condition: Condition, measured: Evidence, interval: tuple[float, float] | None) -> str:
    """Return why a condition is undecided, and about how many videos would decide it."""
    if interval is None:
        few = "too few draws" if len(measured.low) else "the metric has no intervals"
        return f"{few}, so that nothing is decided"
    if not interval[0] < condition.limit <= interval[1]:
        return "a less clear condition is undecided at its level, by Holm's method"
    needed = videos_needed(measured.videos, measured.value, interval, condition.limit)
    if needed is None:
        return f"the value of {measured.videos} videos is at the limit"
    return f"{measured.videos} videos are too few; about {needed} would decide it if the value stays as it is"


def _p_value(measured: Evidence, limit: float) -> float:
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


def _remarks(conditions: Sequence[Condition], analyses: Sequence[RunAnalysis], *, same: bool) -> list[str]:
    remarks = []
    if len(conditions) > 1:
        remarks.append(f"{len(conditions)} conditions: the levels of their intervals are corrected by Holm's method")
    if {one.metric for one in conditions} == {"relative_robustness"}:
        remarks.append(
            "relative robustness can rise when the clean score falls; add conditions on clean and mean_corrupted"
        )
    if same:
        remarks.append("the predictions of both runs are the same to the last bit")
    return remarks
