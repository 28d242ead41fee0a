"""Early end of a run whose score is no mean over videos: intervals at a few planned looks.

After an eighth, a quarter, a half and three quarters of the videos, in random order, every condition is measured with
an interval over these videos. Each look spends an equal part of the probability of a wrong decision (alpha spending by
Bonferroni's inequality), and half of it is kept for the check of the whole run if no look decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from jostle.errors import BadValue, DataError
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import RunAnalysis, analyse_run
from jostle.evaluation.run_folder.metadata import EarlyDecision, StoppedEarly
from jostle.gate.budget import Budget, Condition
from jostle.gate.early_stopping import describe_end, random_order
from jostle.gate.evidence import enough_draws, measure_condition
from jostle.gate.gaps import Scope
from jostle.metrics.metric import Metric

FRACTIONS = (1 / 8, 1 / 4, 1 / 2, 3 / 4)  # of the videos, at which one looks
FEWEST_VIDEOS = 20  # at a look: fewer seldom decide anything, and every look spends a part of the error


def planned_looks(videos: int) -> tuple[int, ...]:
    """Return after how many of the videos one looks.

    >>> planned_looks(213), planned_looks(60), planned_looks(20)
    ((27, 54, 107, 160), (30, 45), ())
    """
    counts = sorted({math.ceil(fraction * videos) for fraction in FRACTIONS})
    return tuple(count for count in counts if FEWEST_VIDEOS <= count < videos)


def check_intervals(name: str, metric: Metric) -> None:
    """Raise BadValue if a metric has no intervals, so that no look at a part of the videos decides anything."""
    if not metric.has_intervals:
        raise BadValue(
            f"{name} cannot stop early: its score, {metric.name}, has no intervals; run all of it, then `jostle check`"
        )


class GroupSequentialStop:
    """Rule of `run_benchmark` that decides a budget at planned looks, for mAP and other scores of all videos together.

    The statement is about videos of the kind of the data set's, which the processed ones are drawn from. With level L
    a look is wrong with probability (1 - L) / 2 at most on either side, divided by the numbers of looks and conditions.

    Args:
        scope: cells of the run.
        videos: all videos of the run.
        against: the reference run, on all of these videos.
        fail_fast: whether a run may stop as soon as one condition has failed.
        blocked: whether nothing can be decided, as videos are missing.

    Raises:
        BadValue: if a reference is missing, or the videos are too few for a look.
    """

    method = "planned looks"

    def __init__(
        self,
        scope: Scope,
        videos: Sequence[str],
        budget: Budget,
        against: RunRecord | None = None,
        *,
        seed: int = 0,
        fail_fast: bool = False,
        blocked: bool = False,
    ) -> None:
        if against is None and any(condition.against_reference for condition in budget.condition):
            raise BadValue("conditions against a reference need one; give the reference run (against=, --against)")
        self.order = random_order(videos, seed)
        self.looks = planned_looks(len(self.order))
        if not self.looks:
            raise BadValue(
                f"{len(self.order)} videos are too few to stop early, as an interval needs {FEWEST_VIDEOS}; run all of "
                "them, then `jostle check`"
            )
        for condition in budget.condition:
            scope.of_condition(condition)  # a name that is not there is an error before the work begins
        self._scope, self._cells = scope, set(scope.cells)
        self._budget, self._against, self._seed = budget, against, seed
        self._finished: set[str] = set()
        self._fail_fast, self._blocked = fail_fast, blocked
        self._next_look = 0
        self._decisions: dict[Condition, EarlyDecision] = {}

    @property
    def due(self) -> bool:
        """Whether all videos of the next look are finished."""
        return (
            not self._blocked
            and not self.decided
            and self._next_look < len(self.looks)
            and self._finished.issuperset(self.order[: self.looks[self._next_look]])
        )

    @property
    def decided(self) -> bool:
        """Whether every condition is decided, or one has failed if that is enough."""
        decisions = [one.decision for one in self._decisions.values()]
        whole = len(decisions) == len(self._budget.condition) and "undecided" not in decisions
        return not self._blocked and (whole or (self._fail_fast and "fail" in decisions))

    def add(self, name: str, scores: Mapping[str, float | None] | None) -> None:
        """Note that a video is finished, or with None that it could not be used."""
        self._blocked = self._blocked or scores is None  # `check` does not speak of a part: all others are needed
        if scores is not None and scores.keys() >= self._cells:
            self._finished.add(name)

    def read(self, folder: Path) -> None:
        """Decide at every look that is due, by the predictions in the run folder."""
        record = RunRecord.read(folder)
        while self.due:
            self._look(record)

    def replay(self, record: RunRecord, videos: Sequence[str]) -> list[EarlyDecision]:
        """Return the decisions at the looks that the first of the videos in order allow."""
        while self._next_look < len(self.looks) and self.looks[self._next_look] <= len(videos):
            self._look(record)
        return [self._decisions.get(condition) or _unmeasured(condition) for condition in self._budget.condition]

    def to_record(self) -> StoppedEarly:
        """Return why the run stopped, for its record."""
        decisions = tuple(self._decisions.get(one) or _unmeasured(one) for one in self._budget.condition)
        count = self.looks[self._next_look - 1]
        return StoppedEarly(
            reason=f"{describe_end(decisions, count, len(self.order))}, at one of {len(self.looks)} planned looks",
            videos=count,
            of=len(self.order),
            about="videos of the kind of this data set, of which those that were processed are a random part",
            against=None if self._against is None else str(self._against.folder),
            conditions=decisions,
        )

    def _look(self, record: RunRecord) -> None:
        """Measure all conditions that are not decided at the next look."""
        videos = self.order[: self.looks[self._next_look]]
        levels = [condition.level for condition in self._budget.condition]
        shares, averaged = len(self.looks) * len(levels), bool(record.metric.mean_over)
        draws = enough_draws(levels, shares, len(videos), averaged=averaged)
        analyses = [
            analyse_run(one, videos=videos, draws=draws, seed=self._seed, unseen=True)
            for one in (record, self._against)
            if one is not None
        ]
        for condition in self._budget.condition:
            before = self._decisions.get(condition)
            if before is None or before.decision == "undecided":
                self._decide(condition, analyses)
        self._next_look += 1

    def _level(self, condition: Condition) -> float:
        """Return the level of a condition's interval at one look."""
        return 1 - (1 - condition.level) / (len(self.looks) * len(self._budget.condition))

    def _decide(self, condition: Condition, analyses: Sequence[RunAnalysis]) -> None:
        """Decide a condition at a look if its interval lies on one side of the limit."""
        try:
            measured = measure_condition(condition, self._scope, analyses, self._seed)
        except DataError:  # no value with so few videos, as of a class without an action
            return
        interval = measured.interval(self._level(condition))
        low, high = interval or (-math.inf, math.inf)
        self._decisions[condition] = EarlyDecision(
            name=condition.title,
            metric=condition.metric,
            limit=condition.limit,
            decision="pass" if low >= condition.limit else "fail" if high < condition.limit else "undecided",
            videos=len(analyses[0].videos),
            value=measured.run,
            reference=measured.reference,
            level=condition.level,
        )


def _unmeasured(condition: Condition) -> EarlyDecision:
    """Return the record of a condition that had no value at any look."""
    return EarlyDecision(condition.title, condition.metric, condition.limit, "undecided", 0, 0.0, None, condition.level)
