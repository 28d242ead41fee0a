"""Early end of a run whose score is no mean over videos: bootstrap intervals at a few planned looks.

After an eighth, a quarter, a half and three quarters of the videos, in random order, every condition is measured with a
bootstrap over these videos. Each look spends an equal part of the probability of a wrong decision (alpha spending by
Bonferroni's inequality), and half of it is kept for the check of the whole run if no look decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import NormalDist

from jostle.errors import BadValue, DataError
from jostle.evaluation.recipes.recipe import Cell, Recipe
from jostle.evaluation.run_folder.metadata import EarlyDecision, StoppedEarly
from jostle.metrics.metric import metrics
from jostle.reporting.analysis.early_stopping import random_order
from jostle.reporting.analysis.gate import TAIL_DRAWS, Budget, Condition, measure_condition
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.run_analysis import DRAWS, RunAnalysis, analyse_run

FRACTIONS = (1 / 8, 1 / 4, 1 / 2, 3 / 4)  # of the videos, at which one looks
FEWEST_VIDEOS = 20  # at a look: intervals from fewer draws of videos are too narrow


def planned_looks(videos: int) -> tuple[int, ...]:
    """Return after how many of the videos one looks.

    >>> planned_looks(213), planned_looks(60), planned_looks(20)
    ((27, 54, 107, 160), (30, 45), ())
    """
    counts = sorted({math.ceil(fraction * videos) for fraction in FRACTIONS})
    return tuple(count for count in counts if FEWEST_VIDEOS <= count < videos)


def widened_level(level: float, videos: int) -> float:
    """Return the level at which a bootstrap over few videos covers what an interval of this level should.

    Percentiles of draws of n videos are too narrow by sqrt((n - 1) / n), and have normal quantiles where Student's are
    due (Hesterberg, 2015).

    >>> round(widened_level(0.95, 20), 3), round(widened_level(0.95, 2000), 3)
    (0.968, 0.95)
    """
    from scipy.special import stdtrit  # type: ignore[import-untyped, unused-ignore]

    quantile = float(stdtrit(videos - 1, (1 + level) / 2))
    return 2 * NormalDist().cdf(quantile * math.sqrt(videos / (videos - 1))) - 1


class GroupSequentialStop:
    """Rule of `run_benchmark` that decides a budget at planned looks, for mAP and other scores of all videos together.

    The statement is about videos of the kind of the data set's, which a bootstrap draws from. With level L a look is
    wrong with probability (1 - L) / 2 at most on either side, divided by the numbers of looks and of conditions.

    Args:
        cells: of the run, the clean one among them.
        videos: all videos of the run.
        against: the reference run, on all of these videos.

    Raises:
        BadValue: if the metric has no bootstrap, a reference is missing, or the videos are too few for a look.
    """

    def __init__(
        self,
        recipe: Recipe,
        cells: Sequence[Cell],
        videos: Sequence[str],
        budget: Budget,
        against: RunRecord | None = None,
        *,
        seed: int = 0,
    ) -> None:
        if recipe.task == "recognition" or metrics.part(recipe.metric) is not None:
            raise BadValue(
                f"{recipe.name} cannot stop early: its score, {recipe.metric}, has no intervals; run all of it, then "
                "`jostle check`"
            )
        if against is None and any(condition.against_reference for condition in budget.condition):
            raise BadValue("conditions against a reference need one; give the reference run (against=, --against)")
        self.order = random_order(videos, seed)
        self.looks = planned_looks(len(self.order))
        if not self.looks:
            raise BadValue(
                f"{len(self.order)} videos are too few to stop early, as an interval needs {FEWEST_VIDEOS}; run all of "
                "them, then `jostle check`"
            )
        self._cells = {cell.name for cell in cells}
        self._budget, self._against, self._seed = budget, against, seed
        self._finished: set[str] = set()
        self._failed = False
        self._next_look = 0
        self._decisions: dict[Condition, EarlyDecision] = {}

    @property
    def due(self) -> bool:
        """Whether all videos of the next look are finished."""
        return (
            not self._failed
            and not self.decided
            and self._next_look < len(self.looks)
            and self._finished.issuperset(self.order[: self.looks[self._next_look]])
        )

    @property
    def decided(self) -> bool:
        """Whether every condition is decided."""
        return not self._failed and len(self._decisions) == len(self._budget.condition)

    def add(self, name: str, scores: Mapping[str, float | None] | None) -> None:
        """Note that a video is finished, or with None that it could not be used."""
        self._failed = self._failed or scores is None  # `check` does not speak of a part, so that all others are needed
        if scores is not None and scores.keys() >= self._cells:
            self._finished.add(name)

    def read(self, folder: Path) -> None:
        """Decide at every look that is due, by the predictions in the run folder."""
        record = RunRecord.read(folder)
        while self.due:
            videos = self.order[: self.looks[self._next_look]]
            analyses = [
                analyse_run(one, videos=videos, draws=self._draws, seed=self._seed)
                for one in (record, self._against)
                if one is not None
            ]
            for condition in self._budget.condition:
                if condition not in self._decisions:
                    self._decide(condition, analyses)
            self._next_look += 1

    def to_record(self) -> StoppedEarly:
        """Return why the run stopped, for its record."""
        decisions = tuple(self._decisions[condition] for condition in self._budget.condition)
        count = max(one.videos for one in decisions)
        return StoppedEarly(
            reason=f"every condition is decided after {count} of {len(self.order)} videos in random order, at one of "
            f"{len(self.looks)} planned looks",
            videos=count,
            of=len(self.order),
            about="videos of the kind of this data set, by a bootstrap over those that were processed",
            against=None if self._against is None else str(self._against.folder),
            conditions=decisions,
        )

    def _level(self, condition: Condition) -> float:
        """Return the level of a condition's interval at one look."""
        return 1 - (1 - condition.level) / (len(self.looks) * len(self._budget.condition))

    @property
    def _draws(self) -> int:
        """Draws that leave some beyond each end of the widest interval."""
        fewest = self.looks[0]
        tail = min((1 - widened_level(self._level(condition), fewest)) / 2 for condition in self._budget.condition)
        return max(DRAWS, math.ceil(TAIL_DRAWS / tail))

    def _decide(self, condition: Condition, analyses: Sequence[RunAnalysis]) -> None:
        """Decide a condition at a look if its interval lies on one side of the limit."""
        try:
            measured = measure_condition(condition, analyses, self._seed)
        except DataError:  # no value with so few videos, as of a class without an action
            return
        videos = len(analyses[0].videos)
        interval = measured.interval(widened_level(self._level(condition), videos))
        if interval is None or interval[0] < condition.limit <= interval[1]:
            return
        self._decisions[condition] = EarlyDecision(
            name=condition.title,
            metric=condition.metric,
            limit=condition.limit,
            decision="pass" if interval[0] >= condition.limit else "fail",
            videos=videos,
            value=measured.run,
            reference=measured.reference,
            level=condition.level,
        )
