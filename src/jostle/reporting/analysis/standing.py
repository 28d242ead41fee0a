"""What a verdict on a run goes by, and whether it says more than guesses would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jostle.evaluation.recipes.recipe import CLEAN
from jostle.metrics.accuracy import clopper_pearson
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.resampling import Estimate
from jostle.reporting.analysis.run_analysis import Survey, looked_at


@dataclass(frozen=True)
class Chance:
    """What guesses would score.

    Attributes:
        score: the share of right answers, all classes as likely; 0 where no answers are counted.
        answers: how many are counted as right or wrong; None where a score is no share of such.
    """

    score: float
    answers: int | None

    def explains(self, found: Estimate) -> bool:
        """Whether a score on clean video might be a guess: exactly where answers are counted, else by its interval."""
        if found.value is None:
            return False
        exact = None if self.answers is None else clopper_pearson(round(found.value * self.answers), self.answers)
        return (exact or found.interval or (found.value,))[0] <= self.score


@dataclass(frozen=True)
class Standing:
    """What a verdict on a run goes by.

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
        """Whether the run cannot be told from guessing, so that what is left of its score says nothing."""
        return self.chance.explains(self.clean)

    @classmethod
    def of(cls, found: Survey | RunRecord) -> Standing:
        """By a survey, which may be of fewer videos than the run; by the run's own scores where there is none yet."""
        if isinstance(found, RunRecord):
            scores = found.scores
            return cls(
                scores.metric,
                Estimate(scores.clean, scores.clean_more.interval),
                scores.mean_corrupted,
                scores.relative_robustness,
                {one.cell: one.value for one in scores.cells},
                len(found.values) > 1,
                chance_of(found),
            )
        return cls(
            found.record.scores.metric,
            found.of(CLEAN),
            found.corrupted().value,
            found.relative().value,
            {cell: own for cell in found.counted if (own := found.of(cell).value) is not None},
            len(found.cells) > 1,
            chance_of(found),
        )


def chance_of(found: Survey | RunRecord) -> Chance:
    """What guesses would score, all classes as likely.

    A guess of pm-k must be right on every frame of a set, so that its share is even smaller than one class in all.
    """
    record = found if isinstance(found, RunRecord) else found.record
    videos = looked_at(record) if isinstance(found, RunRecord) else found.videos
    if record.task == "frames":
        kept = set(videos)
        anchors = sum(anchor.rpartition("/")[0] in kept for anchor in record.frames.sets)
        return Chance(1 / record.table(CLEAN)[1].shape[1], anchors)
    if record.task == "recognition" and record.about.content.metric == "top_k_accuracy":
        classes = record.labels.classes if isinstance(found, RunRecord) else found.classes
        if classes:
            return Chance((record.about.content.k or 1) / len(classes), len(videos))
    return Chance(0.0, None)
