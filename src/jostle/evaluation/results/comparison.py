"""Runs beside each other and beside chance.

Runs of one benchmark are compared with intervals from drawing the same videos for both. Whether a run is above chance
level decides whether a verdict is meaningful.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from jostle.core.types.columns import Floats
from jostle.errors import DataError, Incomparable
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.cell_scores import predictions_of
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import (
    Estimate,
    Progress,
    RunAnalysis,
    analyse_run,
    estimate,
    processed_videos,
)
from jostle.metrics.metric import Chance


@dataclass(frozen=True)
class Standing:
    """Numbers that a verdict on a run is based on."""

    metric: str  # its name
    clean: Estimate  # the score on clean video
    corrupted: float | None  # the mean over the cells that count; None without any
    relative: Estimate  # what is left of the clean score; no value where that is 0
    cells: Mapping[str, float]  # the value of each cell that counts
    tried: bool  # whether there is any cell but the clean one
    chance: Chance  # what guesses would score

    @property
    def guesses(self) -> bool:
        """Whether the run is at chance level, so that its relative robustness has no meaning."""
        return self.chance.explains(self.clean.value, self.clean.interval)

    @classmethod
    def of(cls, run: RunAnalysis | RunRecord) -> Standing:
        """Return that of an analysis, which may be of fewer videos than the run, or of the scores of a run."""
        if isinstance(run, RunRecord):
            scores = run.scores
            return cls(
                scores.metric,
                Estimate(scores.clean, scores.clean_more.interval),
                scores.mean_corrupted,
                Estimate(scores.relative_robustness),
                {one.cell: one.value for one in scores.cells},
                len(run.values) > 1,
                chance_of(run),
            )
        return cls(
            run.record.scores.metric,
            run.of(CLEAN),
            run.corrupted().value,
            _point_or_interval(run),
            {cell: own for cell in run.counted if (own := run.of(cell).value) is not None},
            len(run.cells) > 1,
            chance_of(run),
        )


def _point_or_interval(run: RunAnalysis) -> Estimate:
    """Return relative robustness; where every draw of several videos gives the same, that is its interval."""
    relative = run.relative()
    if relative.value is not None and relative.interval is None and len(run.drawn) and len(run.videos) > 1:
        return Estimate(relative.value, (relative.value, relative.value))
    return relative


def chance_of(run: RunAnalysis | RunRecord) -> Chance:
    """Return the score of guessing with all classes, or all options of a question, equally likely."""
    record = run if isinstance(run, RunRecord) else run.record
    videos = processed_videos(record) if isinstance(run, RunRecord) else run.videos
    read = partial(predictions_of, record, CLEAN, videos)
    return record.metric.chance(record.task.truth_of(videos), read, record.about.content)


_VERSIONS = "versions of a benchmark"


@dataclass(frozen=True)
class Difference:
    """Difference of a second run from a first, with its interval."""

    what: str  # a cell, `mean corrupted` or `relative robustness`
    one: float | None  # the first run's value, as `other` the second's
    other: float | None
    difference: Estimate  # second less first, with its paired interval
    share_below: float | None  # share of the draws in which the second is below the first; None without draws

    @property
    def clear(self) -> bool:
        """Whether the difference is significant: the interval excludes 0."""
        ends = self.difference.interval
        return ends is not None and (ends[0] > 0 or ends[1] < 0)


@dataclass(frozen=True)
class RunComparison:
    """Comparison of two runs on the same videos.

    Attributes:
        clean, corrupted, relative: the three numbers, over the cells that both have.
        cells: every cell that both have, the clean one left away.
        guesses: whether the first, and the second, are at chance level on clean video. The relative score of such a
            score says nothing, so that `relative` has no difference then.
    """

    clean: Difference
    corrupted: Difference
    relative: Difference
    cells: tuple[Difference, ...]
    guesses: tuple[bool, bool] = (False, False)

    @property
    def relative_comparable(self) -> bool:
        """Whether relative values compare: the clean scores do not differ significantly.

        A model that is worse on clean video has less to lose, so that its relative robustness can rise.
        """
        return not self.clean.clear


def check_comparable(records: Sequence[RunRecord], *, any_truth: bool = False, any_data: bool = False) -> None:
    """Raise Incomparable unless all are runs of one benchmark on one ground truth, or those may differ."""
    first = records[0]
    same = [("recipe", "recipes")] if any_data else [("benchmark", "benchmarks"), ("fingerprint", _VERSIONS)]
    for other in records[1:]:
        for key, what in same:
            own, theirs = getattr(first.about, key), getattr(other.about, key)
            if own != theirs:
                raise Incomparable(
                    f"{first.folder} and {other.folder} are runs of different {what}, {_quoted(own)} and "
                    f"{_quoted(theirs)}; give runs of one",
                    fault="F48",
                )
        if first.about.truth != other.about.truth and not any_truth and not any_data:
            raise Incomparable(
                f"{first.folder} and {other.folder} were scored by different ground truths, "
                f"{_quoted(first.about.truth)} and {_quoted(other.about.truth)}; run both on one",
                fault="F48",
            )


def condition_differences(run: RunRecord, reference: RunRecord) -> list[str]:
    """Return what differs between the conditions of two runs, with both sides, as remarks on their comparison."""
    own, theirs = run.about.conditions(), reference.about.conditions()
    return [
        f"{what}: {_short(own[what])} in {run.folder}, {_short(theirs[what])} in {reference.folder}"
        for what in own
        if own[what] != theirs[what]
    ]


def common_videos(records: Sequence[RunRecord]) -> tuple[str, ...]:
    """Return the videos that every run has processed, in the order of the first; raises DataError if there is none."""
    shared = set.intersection(*(set(processed_videos(record)) for record in records))
    names = tuple(name for name in processed_videos(records[0]) if name in shared)
    if not names:
        raise DataError(f"{' and '.join(str(record.folder) for record in records)} have no video in common")
    return names


def analyse_runs(
    records: Sequence[RunRecord],
    *,
    draws: int = 0,
    seed: int = 0,
    any_truth: bool = False,
    any_data: bool = False,
    progress: Progress | None = None,
) -> list[RunAnalysis]:
    """Analyse every run on the videos that all of them have, with the same bootstrap draws.

    Args:
        any_truth: let ground truths differ; each run is then measured by its own.
        any_data: let the data differ, too; each run is then measured on all of its own videos, with draws of its own.

    Raises:
        Incomparable: if they are not runs of one benchmark on one ground truth.
    """
    check_comparable(records, any_truth=any_truth, any_data=any_data)
    videos = None if any_data else common_videos(records)
    total = sum(len(record.cells) for record in records)
    analyses: list[RunAnalysis] = []
    for record in records:
        before = sum(len(done.cells) for done in analyses)

        def report_cell(done: int, _: int, before: int = before) -> None:
            if progress is not None:
                progress(before + done, total)

        analyses.append(analyse_run(record, videos=videos, draws=draws, seed=seed, progress=report_cell))
    return analyses


def compared(one: RunAnalysis, other: RunAnalysis, *, paired: bool = True) -> RunComparison:
    """The second run less the first; both analyses are of the same videos and the same draws, if they are paired."""
    if (paired and one.videos != other.videos) or len(one.drawn) != len(other.drawn):
        raise DataError("the two analyses are not of the same videos and draws; make them with analyse_runs")
    shared = [cell for cell in one.cells if cell in other.place and cell != CLEAN]
    counted = [cell for cell in shared if cell in set(one.counted) & set(other.counted)]
    guesses = (Standing.of(one).guesses, Standing.of(other).guesses)
    relative = _difference("relative robustness", *(_relative(analysis, counted) for analysis in (one, other)))
    return RunComparison(
        clean=_difference(CLEAN, *(_of(analysis, CLEAN) for analysis in (one, other))),
        corrupted=_difference("mean corrupted", *(_mean(analysis, counted) for analysis in (one, other))),
        relative=replace(relative, difference=Estimate(None), share_below=None) if any(guesses) else relative,
        cells=tuple(_difference(cell, *(_of(analysis, cell) for analysis in (one, other))) for cell in shared),
        guesses=guesses,
    )


Drawn = tuple[float | None, Floats]  # a value, and what it is in each draw


def _of(analysis: RunAnalysis, cell: str) -> Drawn:
    return analysis.of(cell).value, analysis.drawn[:, analysis.place[cell]]


def _mean(analysis: RunAnalysis, cells: Sequence[str]) -> Drawn:
    return analysis.corrupted(cells).value, analysis.drawn[:, analysis.columns(cells)].sum(axis=1) / max(len(cells), 1)


def _relative(analysis: RunAnalysis, cells: Sequence[str]) -> Drawn:
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = _mean(analysis, cells)[1] / analysis.drawn[:, analysis.place[CLEAN]]
    return analysis.relative(cells).value, drawn


def _difference(what: str, one: Drawn, other: Drawn) -> Difference:
    if one[0] is None or other[0] is None:
        return Difference(what, one[0], other[0], Estimate(None), None)
    drawn = other[1] - one[1]
    known = drawn[np.isfinite(drawn)]
    share = float(np.mean(known < 0)) if len(known) else None
    return Difference(what, one[0], other[0], estimate(other[0] - one[0], drawn), share)


def _short(value: str) -> str:
    return value[:19] if value.startswith("sha256:") else value


def _quoted(value: str) -> str:
    return _short(value) if value.startswith("sha256:") else repr(value)
