"""Early end of a run: videos are processed in random order until every condition of a budget is decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jostle.core.random import rng_for
from jostle.core.types.truth import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.cell_scores import video_values
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import processed_videos
from jostle.evaluation.run_folder.metadata import EarlyDecision, StoppedEarly
from jostle.gate.budget import Budget, Condition
from jostle.gate.gaps import Scope
from jostle.metrics.sequential import ABOVE, BELOW, OPEN, SequentialMean

VideoScores = Mapping[str, float]  # of one video by cell
DECISIONS = {ABOVE: "pass", BELOW: "fail", OPEN: "undecided"}


def random_order(videos: Sequence[str], seed: int) -> list[str]:
    """Return the videos in the random order that a seed gives."""
    names = sorted(videos)
    return [names[i] for i in rng_for(seed, "order of videos", *names).permutation(len(names))]


def describe_end(decisions: Sequence[EarlyDecision], videos: int, of: int) -> str:
    """Return why a run stopped early, in words."""
    drawn = f"after {videos} of {of} videos in random order"
    if any(one.decision == "undecided" for one in decisions):
        failed = next(one.name for one in decisions if one.decision == "fail")
        return f"{failed!r} has failed {drawn}"
    return f"every condition is decided {drawn}"


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
    number of conditions, however often one looks, and whatever else ends the run.

    Args:
        scope: cells of the run.
        videos: all videos of the data set.
        annotations: of these videos, whose classes conditions can be on.
        against: the reference run; conditions against it are tested on the videos that it has.
        fail_fast: whether a run may stop as soon as one condition has failed.
        blocked: whether nothing can be decided, as videos are missing.

    Raises:
        BadValue: if a condition is not about the mean over videos.
    """

    method = "bets after each video"

    def __init__(
        self,
        scope: Scope,
        videos: Sequence[str],
        annotations: Any,
        budget: Budget,
        against: RunRecord | None = None,
        *,
        seed: int = 0,
        fail_fast: bool = False,
        blocked: bool = False,
    ) -> None:
        self.order = random_order(videos, seed)
        self._scope, self._annotations, self._budget, self._against = scope, annotations, budget, against
        self._tests = [self._make_test(condition, len(budget.condition)) for condition in budget.condition]
        self._scores: dict[str, VideoScores] = {}
        self._next = 0
        self._fail_fast, self._blocked = fail_fast, blocked

    due = False  # scores of single videos are enough

    def read(self, folder: Path) -> None:
        """Do nothing: predictions are not needed."""

    def replay(self, record: RunRecord, videos: Sequence[str]) -> list[EarlyDecision]:
        """Return the decisions after the first of the videos in order, by the predictions of a run."""
        cells = [cell for cell in self._scope.cells if cell in record.cells and videos]
        values = {cell: video_values(record, cell, videos) for cell in cells}
        for name in videos:
            self.add(name, {cell: values[cell][name] for cell in cells})
        return [one.to_record() for one in self._tests]

    def add(self, name: str, scores: Mapping[str, float | None] | None) -> None:
        """Take the scores of a video by cell, None if it could not be used."""
        if scores is None:
            self._blocked = True  # the set that the statement is about is not known any more
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
        """Whether every condition is decided, or one has failed if that is enough."""
        decisions = [one.test.decision for one in self._tests]
        return not self._blocked and (OPEN not in decisions or (self._fail_fast and BELOW in decisions))

    def to_record(self) -> StoppedEarly:
        """Return why the run stopped, for its record."""
        decisions = tuple(one.to_record() for one in self._tests)
        looks = max(one.videos for one in decisions)
        return StoppedEarly(
            reason=describe_end(decisions, looks, len(self.order)),
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
            labels = self._annotations
            known = labels.classes if isinstance(labels, VideoLabels | Truth) else ()
            if part not in known:
                raise UnknownName("class of the data set", part, known)
            own = labels.video[labels.label == known.index(part)]
            videos &= {labels.videos[i] for i in own.tolist()}
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
        test = SequentialMean(limit, max(len(videos), 1), low=low, high=high, alpha=alpha)
        return _ConditionTest(condition, value, test, videos, metric, reference)

    def _weights(self, condition: Condition) -> dict[str, float]:
        """Return the weight of each cell in the metric of a condition."""
        cells = self._scope.of_condition(condition)
        if condition.metric == "relative_robustness":
            if condition.against_reference:
                raise BadValue(
                    "relative robustness against a reference is no mean over videos, so that it cannot be decided "
                    "early; use clean and mean_corrupted"
                )
            cells = tuple(cell for cell in cells if cell != CLEAN)
        return {cell: 1 / len(cells) for cell in cells}

    def _reference(self, weights: Mapping[str, float], value: Callable[[VideoScores], float]) -> dict[str, float]:
        if self._against is None:
            raise BadValue("conditions against a reference need one; give the reference run (against=, --against)")
        known = set(processed_videos(self._against))
        names = [name for name in self.order if name in known]
        values = {cell: video_values(self._against, cell, names) for cell in weights}
        return {name: value({cell: values[cell][name] for cell in weights}) for name in names}


def _weighted(weights: Mapping[str, float], scores: VideoScores) -> float:
    return sum(weight * scores[cell] for cell, weight in weights.items())
