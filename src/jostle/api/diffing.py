"""Two runs side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jostle.findings.run_diff import RunDiff

Progress = Callable[[int, int], None]


def diff(
    first: str | Path,
    second: str | Path,
    *,
    draws: int = 1000,
    seed: int = 0,
    any_truth: bool = False,
    any_data: bool = False,
    progress: Progress | None = None,
) -> RunDiff:
    """What a second run has over a first, cell by cell, on the videos and cells that both have.

    Args:
        first: a run folder, as `jostle run` filled it.
        second: another, of the same benchmark.
        draws: draws of the videos for the intervals, the same for both runs; 0 for no intervals.
        seed: of the draws.
        any_truth: also compare runs that were scored by different ground truths, each by its own.
        any_data: compare runs of one recipe on different data, each on its own videos, with draws of its own: what a
            model loses on UCF101-DS of what it has on UCF101.
        progress: called with (cells done, cells in all).

    Raises:
        Incomparable: if they are runs of different benchmarks, or of different ground truths.
        DataError: if one is not finished, or they have no video in common.
    """
    from jostle.findings.record import RunRecord
    from jostle.findings.run_diff import diff_runs
    from jostle.progress import shown_progress

    records = (RunRecord.read(first), RunRecord.read(second))
    with shown_progress("comparing", progress) as told:
        return diff_runs(*records, draws=draws, seed=seed, any_truth=any_truth, any_data=any_data, progress=told)
