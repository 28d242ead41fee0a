"""Check of a run folder: checksums, coverage and completeness, without the data or the model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jostle.core.formatting import join_names
from jostle.core.results import Result
from jostle.core.tables import Table, findings_table
from jostle.errors import DataError, JostleError
from jostle.evaluation.recipes.recipe import CLEAN, slugify
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.run_folder.journal import read_events
from jostle.evaluation.runner.state import State
from jostle.evaluation.tasks.task import tasks
from jostle.io.video.source import file_fingerprint


@dataclass(frozen=True)
class RunCheck(Result):
    """Result of checking a run folder."""

    folder: Path
    cells: tuple[str, ...]  # cells with unchanged predictions
    videos: int  # number of videos in every one of them
    of: int  # number of annotated videos
    altered: tuple[str, ...]  # files that changed since the run wrote them, or cannot be read
    lacking: tuple[str, ...]  # what the run has not processed, or could not use

    @property
    def summary(self) -> str:
        """One-line summary of the cells and videos."""
        return f"{len(self.cells)} cells, {self.videos} of {self.of} videos"

    def tables(self) -> tuple[Table, ...]:
        """Return what is altered and what is lacking."""
        return (findings_table(self.summary, self.altered, self.lacking),)


@dataclass(frozen=True)
class StoredPredictions:
    """Predictions in a run folder, held against its journal."""

    state: State
    videos: dict[str, frozenset[str]]  # of each cell with unchanged predictions
    altered: tuple[str, ...]  # files that changed since the run wrote them, or cannot be read


def check_predictions(path: Path) -> StoredPredictions:
    """Compare the predictions in a run folder with the checksums in its journal.

    Raises:
        DataError: if it is not a run folder.
    """
    about = RunFolder(path).read_about()
    folder = RunFolder(path, tasks[about.content.task].suffix)
    altered = []
    try:
        state = State.of(read_events(folder.journal))
    except JostleError as error:
        state, altered = State(), [str(error)]
    videos: dict[str, frozenset[str]] = {}
    known = {slugify(one.cell): one.cell for one in about.content.cells}
    for file in sorted(folder.predictions.glob("[!.]*")):
        written = state.written.get(known.get(file.stem, ""), {})
        event = written.get(file_fingerprint(file)) if file.is_file() else None
        if event is None:
            altered.append(f"predictions/{file.name} is not what the run wrote")
        else:
            videos[event.cell] = state.lists[event.list]
    return StoredPredictions(state, videos, tuple(altered))


def check_run(path: Path) -> RunCheck:
    """Check the files of a run folder.

    Raises:
        DataError: if it is not a run folder.
    """
    about = RunFolder(path).read_about()
    folder = RunFolder(path, tasks[about.content.task].suffix)
    stored, lacking = check_predictions(path), []
    state, whole = stored.state, stored.videos
    for slug, cell in ((slugify(one.cell), one.cell) for one in about.content.cells):
        if cell in state.written and not folder.predictions_of(slug).exists():
            lacking.append(f"predictions/{slug}{folder.suffix} was written and is gone")
    lacking += [f"{video} could not be used: {event.message}" for video, event in state.failed.items()]
    if about.missing:
        what = tasks[about.content.task].words.unit
        lacking.append(f"{len(about.missing)} annotated {what} have no file: {join_names(about.missing)}")
    covered = frozenset.intersection(*whole.values()) if whole else frozenset()
    lacking += [f"{cell} lacks {len(videos ^ covered)} videos" for cell, videos in whole.items() if videos != covered]
    try:
        scored = {CLEAN, *(one.cell for one in folder.read_scores().listed)}
    except DataError as error:
        lacking.append(str(error))
    else:
        unscored = [cell for cell in whole if cell not in scored]
        unwritten = [cell for cell in scored if cell not in whole]
        lacking += [f"scores.json lacks {cell}" for cell in unscored]
        lacking += [f"scores.json has {cell}, which has no predictions" for cell in unwritten]
    return RunCheck(path, tuple(whole), len(covered), about.videos, stored.altered, tuple(lacking))
