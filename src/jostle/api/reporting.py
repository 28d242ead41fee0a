"""Reports: what runs say, on one page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

Progress = Callable[[int, int], None]


def report(
    runs: str | Path | Iterable[str | Path],
    out: str | Path = "report.html",
    *,
    csv: str | Path | None = None,
    latex: str | Path | None = None,
    latex_intervals: bool = False,
    draws: int = 1000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Path:
    """Write one page about runs of one benchmark; it opens from disk, with nothing else and no network.

    Args:
        runs: run folders, as `jostle run` filled them; the others are compared with the first.
        out: the page.
        csv: a file for the table of all cells as well.
        latex: a folder for tables in the layouts of the papers as well.
        latex_intervals: whether those have intervals.
        draws: draws of the videos for the intervals; 0 for none.
        seed: of the draws.
        progress: called with (steps done, steps in all).

    Returns:
        The path of the page.

    Raises:
        DataError: if a run is not finished, or they are not runs of one benchmark on one ground truth.
    """
    from jostle.pages.report import write_report
    from jostle.progress import shown_progress

    folders = [runs] if isinstance(runs, str | Path) else list(runs)
    with shown_progress("writing the report", progress) as told:
        return write_report(
            [Path(folder) for folder in folders],
            Path(out),
            csv=None if csv is None else Path(csv),
            latex=None if latex is None else Path(latex),
            latex_intervals=latex_intervals,
            draws=draws,
            seed=seed,
            progress=told,
        )
