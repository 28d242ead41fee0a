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
from jostle.reporting.analysis.run_analysis import Progress, Survey, looked_at, survey
from jostle.reporting.analysis.standing import Standing

_VERSIONS = "versions of a benchmark"


@dataclass(frozen=True)
class Difference:
    """What a second run has over a first.

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
        """Whether the interval leaves 0 out."""
        ends = self.difference.interval
        return ends is not None and (ends[0] > 0 or ends[1] < 0)


@dataclass(frozen=True)
class Comparison:
    """Two runs.

    Attributes:
        clean, corrupted, relative: the three numbers, over the cells that both have.
        cells: every cell that both have, the clean one left away.
        guesses: whether the first, and the second, cannot be told from guessing on clean video. What is left of such a
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
    """The videos that every run has looked at, in the order of the first.

    Raises:
        DataError: if there is none.
    """
    wanted = set.intersection(*(set(looked_at(record)) for record in records))
    found = tuple(name for name in looked_at(records[0]) if name in wanted)
    if not found:
        raise DataError(f"{' and '.join(str(record.folder) for record in records)} have no video in common")
    return found


def surveys_of(
    records: Sequence[RunRecord],
    *,
    draws: int = 0,
    seed: int = 0,
    any_truth: bool = False,
    any_data: bool = False,
    progress: Progress | None = None,
) -> list[Survey]:
    """A survey of every run on the videos that all of them have looked at, with the same draws.

    Args:
        any_truth: let ground truths differ; each run is then measured by its own.
        any_data: let the data differ, too; each run is then measured on all of its own videos, with draws of its own.

    Raises:
        Incomparable: if they are not runs of one benchmark on one ground truth.
    """
    check_comparable(records, any_truth=any_truth, any_data=any_data)
    videos = None if any_data else common_videos(records)
    total = sum(len(record.cells) for record in records)
    made: list[Survey] = []
    for record in records:
        before = sum(len(done.cells) for done in made)

        def tell(done: int, _: int, before: int = before) -> None:
            if progress is not None:
                progress(before + done, total)

        made.append(survey(record, videos=videos, draws=draws, seed=seed, progress=tell))
    return made


def compared(one: Survey, other: Survey, *, paired: bool = True) -> Comparison:
    """The second run less the first; both surveys are of the same videos and the same draws, if they are paired."""
    if (paired and one.videos != other.videos) or len(one.drawn) != len(other.drawn):
        raise DataError("the two surveys are not of the same videos and draws; make them with surveys_of")
    shared = [cell for cell in one.cells if cell in other.place and cell != CLEAN]
    counted = [cell for cell in shared if cell in set(one.counted) & set(other.counted)]
    guesses = (Standing.of(one).guesses, Standing.of(other).guesses)
    relative = _difference("relative robustness", *(_relative(found, counted) for found in (one, other)))
    return Comparison(
        clean=_difference(CLEAN, *(_of(found, CLEAN) for found in (one, other))),
        corrupted=_difference("mean corrupted", *(_mean(found, counted) for found in (one, other))),
        relative=replace(relative, difference=Estimate(None), share_below=None) if any(guesses) else relative,
        cells=tuple(_difference(cell, *(_of(found, cell) for found in (one, other))) for cell in shared),
        guesses=guesses,
    )


Drawn = tuple[float | None, Floats]  # a value, and what it is in each draw


def _of(found: Survey, cell: str) -> Drawn:
    return found.of(cell).value, found.drawn[:, found.place[cell]]


def _mean(found: Survey, cells: Sequence[str]) -> Drawn:
    return found.corrupted(cells).value, found.drawn[:, found.columns(cells)].sum(axis=1) / max(len(cells), 1)


def _relative(found: Survey, cells: Sequence[str]) -> Drawn:
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = _mean(found, cells)[1] / found.drawn[:, found.place[CLEAN]]
    return found.relative(cells).value, drawn


def _difference(what: str, one: Drawn, other: Drawn) -> Difference:
    if one[0] is None or other[0] is None:
        return Difference(what, one[0], other[0], Estimate(None), None)
    drawn = other[1] - one[1]
    known = drawn[np.isfinite(drawn)]
    share = float(np.mean(known < 0)) if len(known) else None
    return Difference(what, one[0], other[0], estimate(other[0] - one[0], drawn), share)


def _short(value: str) -> str:
    return value[:19] if value.startswith("sha256:") else repr(value)
