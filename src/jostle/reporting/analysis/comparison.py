"""Runs of one benchmark side by side: how far apart they are, with intervals from drawing the same videos for both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jostle.core.types.columns import Floats
from jostle.errors import DataError, Incomparable
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.resampling import Estimate, estimate
from jostle.reporting.analysis.run_analysis import Progress, RunAnalysis, processed_videos, survey
from jostle.reporting.analysis.standing import Standing

_VERSIONS = "versions of a benchmark"


@dataclass(frozen=True)
class Difference:
    """Difference of a second run from a first, with its interval.

    Attributes:
        what: a cell, `mean corrupted` or `relative robustness`.
        one: the first run's value, as `other` the second's.
        difference: second less first, with its paired interval.
        share_below: share of the draws in which the second is below the first; None without draws.
    """

    what: str
    one: float | None
    other: float | None
    difference: Estimate
    share_below: float | None

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


def check_comparable(records: Sequence[RunRecord], *, any_truth: bool = False, any_data: bool = False) -> None:
    """Raise Incomparable unless all are runs of one benchmark on one ground truth.

    Args:
        any_truth: let ground truths differ.
        any_data: let one recipe be on different data.
    """
    first = records[0]
    same = [("recipe", "recipes")] if any_data else [("benchmark", "benchmarks"), ("fingerprint", _VERSIONS)]
    for other in records[1:]:
        for key, what in same:
            own, theirs = getattr(first.about, key), getattr(other.about, key)
            if own != theirs:
                raise Incomparable(
                    f"{first.folder} and {other.folder} are runs of different {what}, {_short(own)} and "
                    f"{_short(theirs)}; give runs of one",
                    fault="F48",
                )
        if first.about.truth != other.about.truth and not any_truth and not any_data:
            raise Incomparable(
                f"{first.folder} and {other.folder} were scored by different ground truths, "
                f"{_short(first.about.truth)} and {_short(other.about.truth)}; run both on one",
                fault="F48",
            )


def common_videos(records: Sequence[RunRecord]) -> tuple[str, ...]:
    """Return the videos that every run has processed, in the order of the first.

    Raises:
        DataError: if there is none.
    """
    shared = set.intersection(*(set(processed_videos(record)) for record in records))
    names = tuple(name for name in processed_videos(records[0]) if name in shared)
    if not names:
        raise DataError(f"{' and '.join(str(record.folder) for record in records)} have no video in common")
    return names


def surveys_of(
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

        analyses.append(survey(record, videos=videos, draws=draws, seed=seed, progress=report_cell))
    return analyses


def compared(one: RunAnalysis, other: RunAnalysis, *, paired: bool = True) -> RunComparison:
    """The second run less the first; both surveys are of the same videos and the same draws, if they are paired."""
    if (paired and one.videos != other.videos) or len(one.drawn) != len(other.drawn):
        raise DataError("the two surveys are not of the same videos and draws; make them with surveys_of")
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
    return value[:19] if value.startswith("sha256:") else repr(value)
