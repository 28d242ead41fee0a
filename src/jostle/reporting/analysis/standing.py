"""Comparison of a run with chance level, which decides whether a verdict is meaningful."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jostle.evaluation.recipes.recipe import CLEAN
from jostle.metrics.accuracy import clopper_pearson
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.resampling import Estimate
from jostle.reporting.analysis.run_analysis import RunAnalysis, processed_videos


@dataclass(frozen=True)
class Chance:
    """Expected score of random guessing.

    Attributes:
        score: the share of right answers, all classes as likely; 0 where no answers are counted.
        answers: how many are counted as right or wrong; None where a score is no share of such.
    """

    score: float
    answers: int | None

    def explains(self, estimate: Estimate) -> bool:
        """Whether a clean score is compatible with guessing: by an exact test for counts, else by its interval."""
        if estimate.value is None:
            return False
        exact = None if self.answers is None else clopper_pearson(round(estimate.value * self.answers), self.answers)
        return (exact or estimate.interval or (estimate.value,))[0] <= self.score


@dataclass(frozen=True)
class Standing:
    """Numbers that a verdict on a run is based on.

    Attributes:
        metric: its name.
        clean: the score on clean video.
        corrupted: the mean over the cells that count; None without any.
        relative: what is left of the clean score; None where that is 0.
        cells: the value of each cell that counts.
        tried: whether there is any cell but the clean one.
        chance: what guesses would score.
    """

    metric: str
    clean: Estimate
    corrupted: float | None
    relative: float | None
    cells: Mapping[str, float]
    tried: bool
    chance: Chance

    @property
    def guesses(self) -> bool:
        """Whether the run is at chance level, so that its relative robustness has no meaning."""
        return self.chance.explains(self.clean)

    @classmethod
    def of(cls, run: RunAnalysis | RunRecord) -> Standing:
        """By a survey, which may be of fewer videos than the run; by the run's own scores where there is none yet."""
        if isinstance(run, RunRecord):
            scores = run.scores
            return cls(
                scores.metric,
                Estimate(scores.clean, scores.clean_more.interval),
                scores.mean_corrupted,
                scores.relative_robustness,
                {one.cell: one.value for one in scores.cells},
                len(run.values) > 1,
                chance_of(run),
            )
        return cls(
            run.record.scores.metric,
            run.of(CLEAN),
            run.corrupted().value,
            run.relative().value,
            {cell: own for cell in run.counted if (own := run.of(cell).value) is not None},
            len(run.cells) > 1,
            chance_of(run),
        )


def chance_of(run: RunAnalysis | RunRecord) -> Chance:
    """Return the score of guessing with all classes equally likely.

    A guess of pm-k must be right on every frame of a set, so that its share is even smaller than one class in all.
    """
    record = run if isinstance(run, RunRecord) else run.record
    videos = processed_videos(record) if isinstance(run, RunRecord) else run.videos
    if record.task == "frames":
        names = set(videos)
        anchors = sum(anchor.rpartition("/")[0] in names for anchor in record.frames.sets)
        return Chance(1 / record.table(CLEAN)[1].shape[1], anchors)
    if record.task == "recognition" and record.about.content.metric == "top_k_accuracy":
        classes = record.labels.classes if isinstance(run, RunRecord) else run.classes
        if classes:
            return Chance((record.about.content.k or 1) / len(classes), len(videos))
    return Chance(0.0, None)
