"""Files of a run as it goes on: results of videos, predictions of cells, failures and the diagnosis.

A file gets its final name first and its line of the journal second, except for predictions: there the journal comes
first, so that any file with that name is recorded.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from jostle.errors import JostleError, SourceChanged
from jostle.evaluation.inference.jobs import VideoJob, VideoResult
from jostle.evaluation.recipes.recipe import CLEAN, Cell
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.run_folder.journal import (
    CellWritten,
    DamagedFrames,
    Event,
    VideoFailed,
    VideoKept,
    VideoList,
    event_to_dict,
)
from jostle.evaluation.runner.state import (
    Plan,
    State,
    load_complete_results,
    load_results,
    results_file,
    to_ranges,
    usable_videos,
    write_results,
)
from jostle.evaluation.tasks.task import Task
from jostle.io.files.atomic import write_text
from jostle.io.files.ledger import Ledger
from jostle.io.video.source import file_fingerprint, source_state

CELLS_AT_ONCE = 8  # merged in one pass over the files of videos; more are faster and take more memory


class RunStore:
    """What a run has stored in its folder, and how it stores more.

    Args:
        journal: the open journal of the folder.

    Attributes:
        state: what the journal says, up to date.
    """

    def __init__(self, folder: RunFolder, task: Task[Any, Any], journal: Ledger[Event]) -> None:
        self._folder, self._task, self._journal = folder, task, journal
        self.state = State.of(journal.read())

    def note(self, event: Event) -> None:
        """Add an event to the journal and to the state."""
        self._journal.add(event)
        self.state.add(event)

    @property
    def usable(self) -> list[str]:
        """The videos with annotations that did not fail."""
        return [name for name in usable_videos(self._task) if name not in self.state.failed]

    def finished_videos(self, cells: Sequence[Cell]) -> list[str]:
        """Return the videos whose results for every cell are stored."""
        needed = {cell.name for cell in cells}
        return [name for name in self.usable if needed <= self._complete_results(name).keys()]

    def video_scores(self, name: str) -> dict[str, float | None] | None:
        """Return the scores of a video by finished cell, None if it could not be used."""
        if name in self.state.failed:
            return None
        outputs = self._complete_results(name)
        return {cell: self._task.video_score(name, output) for cell, output in outputs.items()}

    def _complete_results(self, name: str) -> dict[str, Any]:
        return load_complete_results(self._folder, self.state, self._task, name)

    def record_failure(self, job: VideoJob, error: JostleError) -> None:
        """Record that a video, or a portion of it, could not be used."""
        self.note(VideoFailed(job.name, type(error).__name__, str(error), error.fault, job.portion))

    def store_results(self, job: VideoJob, result: VideoResult[Any]) -> None:
        """Store the results of a video durably: first the file, then the line of the journal."""
        task, before = self._task, self.state.videos.get((job.name, job.portion))
        new_outputs = {cell.name: result.outputs[cell.name] for cell in job.cells}
        outputs = load_results(self._folder, self.state, task, job.name, job.portion) | new_outputs
        file = results_file(self._folder, job.name, job.portion)
        checksum = write_results(file, *task.pack(outputs))
        mended = histories = None
        if result.mended is not None:
            earlier = {} if before is None or before.mended is None else before.mended
            new = {cell: DamagedFrames.of(one.damaged, left=one.left) for cell, one in result.mended.items()}
            mended = {cell: one for cell, one in (earlier | new).items() if cell in outputs}
        if result.adaptation is not None:
            known = {} if before is None or before.histories is None else before.histories
            histories = {cell: one for cell, one in (known | result.adaptation.histories).items() if cell in outputs}
        self.note(
            VideoKept(
                job.name,
                str(job.path.absolute()),
                checksum,
                kept=source_state(file),
                cells=tuple(to_ranges(i for i, cell in enumerate(task.recipe.cells) if cell.name in outputs)),
                **({} if result.source is None else asdict(result.source)),
                fps=None if job.fps is None else str(job.fps),
                portion=job.portion,
                shown=None if result.frame_indices is None else " ".join(map(str, result.frame_indices)),
                cost={"clean": asdict(result.clean), "cells": asdict(result.cells)},
                mended=mended,
                histories=histories,
            )
        )

    def write_failures(self) -> tuple[dict[str, str], ...]:
        """Write and return the videos that could not be used, in the order of the annotations."""
        failed = self.state.failed
        events = [event_to_dict(failed[name]) for name in usable_videos(self._task) if name in failed]
        failures = tuple({key: one[key] for key in ("video", "error", "message", "fault")} for one in events)
        write_text(self._folder.failures, [json.dumps(failure) + "\n" for failure in failures])
        return failures

    def write_predictions(self, plan: Plan, names: list[str]) -> None:
        """Write the predictions of cells that lack a file or a video."""
        lacking = [cell for cell in plan.cells if plan.there.get(cell.name) != frozenset(names)]
        for cells in _chunks(lacking, CELLS_AT_ONCE):
            merged = self._merge(plan, cells, names)
            for cell in cells:
                self._write_cell(cell, merged[cell.name], names)

    def _merge(self, plan: Plan, cells: Sequence[Cell], names: list[str]) -> dict[str, dict[str, Any]]:
        """Return the outputs for videos by cell, from the files of cells or else of videos."""
        before = {
            cell.name: self._task.read(self._folder.predictions_of(cell.slug)) if cell.name in plan.there else {}
            for cell in cells
        }
        outputs: dict[str, dict[str, Any]] = {cell.name: {} for cell in cells}
        for name in names:
            stored: dict[str, Any] | None = None
            for cell in cells:
                if name in before[cell.name]:
                    outputs[cell.name][name] = before[cell.name][name]
                    continue
                if stored is None:
                    stored = self._complete_results(name)
                if cell.name not in stored:
                    raise SourceChanged(self._altered_message(name, cell))
                outputs[cell.name][name] = stored[cell.name]
        return outputs

    def _write_cell(self, cell: Cell, outputs: dict[str, Any], names: list[str]) -> None:
        path = self._folder.predictions_of(cell.slug)
        new = path.with_name(f".{path.stem}.new{path.suffix}")
        self._task.write(new, outputs)
        key = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
        if key not in self.state.lists:
            self.note(VideoList(key, tuple(names)))
        self.note(CellWritten(cell.name, file_fingerprint(new), key))
        os.replace(new, path)

    def _altered_message(self, name: str, cell: Cell) -> str:
        """Return the message that names the results file that changed since the run began."""
        bad = next(
            one
            for one in self._task.portions(name)
            if cell.name not in load_results(self._folder, self.state, self._task, name, one)
        )
        path = results_file(self._folder, name, bad)
        return f"{path}: not what this run wrote; delete it, and its video is processed again"

    def write_diagnosis(self, plan: Plan, names: list[str]) -> None:
        """Write the diagnosis of the clean videos, with those of all other cells under `cells`."""
        diagnoses = {
            cell.name: self._task.diagnose(self._folder.predictions_of(cell.slug), names) for cell in plan.cells
        }
        clean = diagnoses.pop(CLEAN)
        if clean is not None:
            write_text(self._folder.diagnosis, [json.dumps(clean | {"cells": diagnoses}), "\n"])


def _chunks(cells: Sequence[Cell], size: int) -> Iterator[Sequence[Cell]]:
    for lo in range(0, len(cells), size):
        yield cells[lo : lo + size]
