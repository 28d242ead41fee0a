"""Leaderboards of runs, and the small records that make a row of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

Progress = Callable[[int, int], None]


def board(
    runs: str | Path | Iterable[str | Path],
    out: str | Path,
    *,
    title: str = "Leaderboard",
    draws: int = 1000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Path:
    """Write a static leaderboard: an index and one page a benchmark, which open from disk and need no network.

    Args:
        runs: run folders, and records that `export_run` wrote.
        out: a folder; pages of the same names are replaced.
        title: its heading.
        draws: draws of the videos for the intervals of run folders; 0 for none.
        seed: of the draws.
        progress: called with (runs read, runs in all).

    Returns:
        The path of the index.

    Raises:
        Tampered: if a record is not as it was written.
        DataError: if a run is not finished.
    """
    from jostle.pages.board import write_board
    from jostle.progress import shown_progress

    sources = [runs] if isinstance(runs, str | Path) else list(runs)
    paths = [Path(source) for source in sources]
    with shown_progress("reading runs", progress) as told:
        return write_board(paths, Path(out), title=title, draws=draws, seed=seed, progress=told)


def export_run(
    run: str | Path,
    out: str | Path,
    *,
    partial: bool = False,
    draws: int = 1000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Path:
    """Write what a leaderboard says of a run, a few kilobytes of JSON with a checksum, to be sent to whoever keeps one.

    Args:
        run: a run folder.
        out: a file.
        partial: also of a run that lacks videos or cells; boards mark it.
        draws: draws of the videos for the intervals; 0 for none.
        seed: of the draws.
        progress: called with (cells done, cells in all).

    Raises:
        DataError: if the run is not finished, or lacks something.
    """
    from jostle.findings.record import RunRecord
    from jostle.findings.summary import check_whole, summary_of, write_summary
    from jostle.findings.survey import survey
    from jostle.progress import shown_progress

    record = RunRecord.read(run)
    if not partial:
        check_whole(record)
    with shown_progress("measuring", progress) as told:
        write_summary(summary_of(survey(record, draws=draws, seed=seed, progress=told)), Path(out))
    return Path(out)
