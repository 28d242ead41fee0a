"""Early end of a run: videos are processed in random order until every condition of a budget is decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from jostle.core.random import rng_for
from jostle.core.types.video_labels import VideoLabels
from jostle.corruptions.engine.corruption import corruptions
from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes.recipe import CLEAN, Cell
from jostle.evaluation.run_folder.metadata import EarlyDecision, StoppedEarly
from jostle.metrics.sequential import ABOVE, BELOW, OPEN, SequentialMean
from jostle.reporting.analysis.cell_scores import right_answers
from jostle.reporting.analysis.gate import Budget, Condition
from jostle.reporting.analysis.record import RunRecord

VideoScores = Mapping[str, float]  # of one video by cell
DECISIONS = {ABOVE: "pass", BELOW: "fail", OPEN: "undecided"}


def random_order(videos: Sequence[str], seed: int) -> list[str]:
    """Return the videos in the random order that a seed gives."""
    names = sorted(videos)
    return [names[i] for i in rng_for(seed, "order of videos", *names).permutation(len(names))]


@dataclass(eq=False)
class _ConditionTest:
    """Sequential test of one condition."""

    condition: Condition
    value: Callable[[VideoScores], float]  # of one video, whose mean is held against the limit
    test: SequentialMean
    videos: frozenset[str]  # that the condition is about
    metric: Callable[[VideoScores], float]  # of one video: the metric itself, or what relative robustness is a part of
    reference: Mapping[str, float] | None = None  # value of each video in the reference run
    total: float = 0.0  # of the metric, and of what it is a share of: videos, or clean scores for relative robustness
    whole: float = 0.0
    reference_total: float = 0.0

    def add(self, name: str, scores: VideoScores) -> None:
        if name in self.videos and self.test.decision == OPEN:
            reference = 0.0 if self.reference is None else self.reference[name]
            self.test.add(self.value(scores) - reference)
            self.total += self.metric(scores)
            self.whole += scores[CLEAN] if self.condition.metric == "relative_robustness" else 1.0
            self.reference_total += reference

    def to_record(self) -> EarlyDecision:
        looks = self.test.looks
        return EarlyDecision(
            name=self.condition.title,
            metric=self.condition.metric,
            limit=self.condition.limit,
            decision=DECISIONS[int(self.test.decision)],  # type: ignore[arg-type]
            videos=looks,
            value=self.total / self.whole if self.whole else 0.0,
            reference=None if self.reference is None else self.reference_total / max(looks, 1),
            level=self.condition.level,
        )


class SequentialStop:
    """Rule of `run_benchmark` that decides a budget by tests after each video, for scores that are means over videos.

    The statement is about the videos of the data set: the mean over all of them, of which some are processed in random
    order. With level L a condition is decided wrongly with probability 1 - L at most on either side, divided by the
    number of conditions, however often one looks.

    Args:
        videos: all videos of the run.
        labels: their classes.
        against: the reference run, on all of these videos.

    Raises:
        BadValue: if a condition is not about the mean over videos.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        videos: Sequence[str],
        labels: VideoLabels,
        budget: Budget,
        against: RunRecord | None = None,
        *,
        seed: int = 0,
    ) -> None:
        self.order = random_order(videos, seed)
        self._cells, self._labels, self._budget, self._against = cells, labels, budget, against
        self._tests = [self._make_test(condition, len(budget.condition)) for condition in budget.condition]
        self._scores: dict[str, VideoScores] = {}
        self._next = 0
        self._failed = ""

    due = False  # scores of single videos are enough

    def read(self, folder: Path) -> None:
        """Do nothing: predictions are not needed."""

    def add(self, name: str, scores: Mapping[str, float | None] | None) -> None:
        """Take the scores of a video by cell, None if it could not be used."""
        if scores is None:
            self._failed = self._failed or name  # the set that the statement is about is not known any more
            return
        self._scores[name] = {cell: score for cell, score in scores.items() if score is not None}
        # In the order drawn, whichever video is finished first: short ones would come too soon.
        while self._next < len(self.order) and self.order[self._next] in self._scores:
            video = self.order[self._next]
            for one in self._tests:
                one.add(video, self._scores[video])
            self._next += 1

    @property
    def decided(self) -> bool:
        """Whether every condition is decided."""
        return not self._failed and all(one.test.decision != OPEN for one in self._tests)

    def to_record(self) -> StoppedEarly:
        """Return why the run stopped, for its record."""
        decisions = tuple(one.to_record() for one in self._tests)
        looks = max(one.videos for one in decisions)
        return StoppedEarly(
            reason=f"every condition is decided after {looks} of {len(self.order)} videos in random order",
            videos=looks,
            of=len(self.order),
            about="the mean over the videos of this data set, drawn without replacement",
            against=None if self._against is None else str(self._against.folder),
            conditions=decisions,
        )

    def _make_test(self, condition: Condition, count: int) -> _ConditionTest:
        kind, _, part = condition.metric.partition(":")
        weights = self._weights(condition)
        videos = frozenset(self.order)
        if kind == "class":
            if part not in self._labels.classes:
                raise UnknownName("class of the data set", part, self._labels.classes)
            own = self._labels.video[self._labels.label == self._labels.classes.index(part)]
            videos &= {self._labels.videos[i] for i in own.tolist()}
        alpha, limit = (1 - condition.level) / count, condition.limit
        low, high, plain = 0.0, 1.0, dict(weights)
        if kind == "relative_robustness":
            # Corrupted at least r times clean is the same as a mean of (corrupted - r clean) of at least 0.
            ratio = limit
            weights, low, limit = {**weights, CLEAN: weights.get(CLEAN, 0.0) - ratio}, -ratio, 0.0

        value, metric = partial(_weighted, weights), partial(_weighted, plain)
        reference = None
        if condition.against_reference:
            low, reference = -1.0, self._reference(weights, value)
        test = SequentialMean(limit, len(videos), low=low, high=high, alpha=alpha)
        return _ConditionTest(condition, value, test, videos, metric, reference)

    def _weights(self, condition: Condition) -> dict[str, float]:
        """Return the weight of each cell in the metric of a condition."""
        kind, _, part = condition.metric.partition(":")
        counted = [cell for cell in self._cells if cell.counted]
        if kind == "clean":
            return {CLEAN: 1.0}
        if kind == "cell":
            if part not in {cell.name for cell in self._cells}:
                raise UnknownName("cell of the run", part, [cell.name for cell in self._cells])
            return {part: 1.0}
        if kind == "family":
            families = {
                cell.name: {corruptions[one.entry.corruption].family for one in cell.parsed} for cell in counted
            }
            counted = [cell for cell in counted if families[cell.name] == {part}]
            if not counted:
                raise UnknownName("family of corruptions", part, {name for own in families.values() for name in own})
        if kind == "relative_robustness" and condition.against_reference:
            raise BadValue(
                "relative robustness against a reference is no mean over videos, so that it cannot be decided early; "
                "use clean and mean_corrupted"
            )
        if not counted:
            raise BadValue(f"{condition.metric} is a mean over corrupted cells, and there are none")
        return {cell.name: 1 / len(counted) for cell in counted}

    def _reference(self, weights: Mapping[str, float], value: Callable[[VideoScores], float]) -> dict[str, float]:
        if self._against is None:
            raise BadValue("conditions against a reference need one; give the reference run (against=, --against)")
        rows = {cell: right_answers(self._against, cell, self.order).astype(np.float64) for cell in weights}
        return {name: value({cell: rows[cell][i] for cell in weights}) for i, name in enumerate(self.order)}


def _weighted(weights: Mapping[str, float], scores: VideoScores) -> float:
    return sum(weight * scores[cell] for cell, weight in weights.items())
