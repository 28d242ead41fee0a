"""State of a run folder: results stored per video, and the work that is left to do."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.errors import DataError, JostleError, SourceChanged
from jostle.evaluation.inference.jobs import Output, VideoJob
from jostle.evaluation.recipes.recipe import CLEAN, Cell
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.run_folder.journal import CellWritten, Event, VideoFailed, VideoKept, VideoList
from jostle.evaluation.tasks.task import Task
from jostle.io.files.arrays import read_npz
from jostle.io.files.atomic import write_bytes
from jostle.io.files.ledger import is_unchanged
from jostle.io.files.video_ids import file_name_for, quote_name
from jostle.io.video.source import file_fingerprint, probe

_META = "about"
Array = npt.NDArray[Any]


def write_results(path: Path, arrays: Mapping[str, Array], classes: Sequence[str] = ()) -> str:
    """Write one array per cell and the class names they index; return the checksum of the file."""
    columns: dict[str, Any] = {f"cell{number}": array for number, array in enumerate(arrays.values())}
    columns[_META] = np.frombuffer(json.dumps({"cells": list(arrays), "classes": list(classes)}).encode(), np.uint8)
    packed = io.BytesIO()
    np.savez(packed, **columns)
    data = packed.getvalue()
    write_bytes(path, [data])
    return hashlib.sha256(data).hexdigest()


def read_results(path: Path, sha256: str) -> tuple[dict[str, Array], list[str]] | None:
    """Return the array of each cell and the classes, or None if the file is missing or changed."""
    if not path.is_file():  # reading a pipe might never end
        return None
    try:
        if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
            return None
        columns = read_npz(path)
        about = json.loads(columns[_META].tobytes())
        return {name: columns[f"cell{number}"] for number, name in enumerate(about["cells"])}, about["classes"]
    except (OSError, DataError, ValueError, KeyError, TypeError, RecursionError):
        return None


RESULTS = ".npz"  # suffix of the results of one video
FEW = 2000  # videos up to which stored results are read again for the progress display


@dataclass
class State:
    """State that the journal records; later lines override earlier ones."""

    # The last event of each video, or portion of one, that was processed.
    videos: dict[tuple[str, int | None], VideoKept] = field(default_factory=dict)
    failed: dict[str, VideoFailed] = field(default_factory=dict)  # the last event of each video that could not be used
    # Events of the predictions of each cell, by the checksum of the file.
    written: dict[str, dict[str, CellWritten]] = field(default_factory=dict)
    # Lists of videos by key, as most cells have the same.
    lists: dict[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[Event]) -> State:
        """Return the state after the events of a journal."""
        state = cls()
        for event in events:
            state.add(event)
        return state

    def add(self, event: Event) -> None:
        """Apply one more event to the state."""
        match event:
            case VideoKept():
                self.videos[event.video, event.portion] = event
                if event.video in self.failed and self.failed[event.video].portion == event.portion:
                    del self.failed[event.video]
            case VideoFailed():
                self.failed[event.video] = event
            case VideoList():
                self.lists[event.key] = frozenset(event.videos)
            case CellWritten():
                self.written.setdefault(event.cell, {})[event.sha256] = event


@dataclass(frozen=True)
class Plan:
    """Work that is left to do in a run folder.

    Attributes:
        cells: cells that will be complete in the end: the requested ones, and those the folder has already.
        there: for each cell that has a predictions file, the videos in it.
        orders: videos or portions to process, each with the cells it lacks.
        failed: videos that could not be used before and are not tried again.
    """

    cells: tuple[Cell, ...]
    there: Mapping[str, frozenset[str]]
    video_jobs: tuple[VideoJob, ...]
    failed: tuple[str, ...]

    @property
    def videos(self) -> int:
        """Number of videos to process."""
        return len({job.name for job in self.video_jobs})

    @property
    def looks(self) -> int:
        """Number of videos in cells that the model has to process."""
        return sum(len(job.cells) for job in self.video_jobs)


def usable_videos(task: Task[Any, Any]) -> dict[str, Path]:
    """Return the videos that are annotated and have a file, in the order of the annotations."""
    videos = task.data.videos
    return {name: videos[name] for name in task.videos if name in videos and task.uses_video(name)}


def plan_work(
    folder: RunFolder,
    state: State,
    task: Task[Any, Output],
    cells: Sequence[Cell],
    *,
    seed: int,
    retry_failed: bool,
    on_kept: Callable[[str, dict[str, Output]], None] | None = None,
) -> Plan:
    """Plan the work that is left to do for these cells in a folder.

    Args:
        on_kept: called with the stored results of each video.

    Raises:
        SourceChanged: if a predictions file or a video has changed.
    """
    every = task.recipe.cells
    there = {cell.name: videos for cell in every if (videos := _videos_written(folder, state, cell)) is not None}
    requested = {cell.name for cell in cells} | {CLEAN} | set(there)
    chosen = tuple(cell for cell in every if cell.name in requested)
    video_jobs, failed = [], []
    for name, path in usable_videos(task).items():
        if name in state.failed and not retry_failed:
            failed.append(name)
            continue
        for portion in task.portions(name):
            stored: frozenset[str] = frozenset()
            if (name, portion) in state.videos:
                _check_source(task.make_job(name, path, (), seed, portion), state.videos[name, portion])
                if on_kept is not None and len(state.videos) <= FEW:
                    results = load_results(folder, state, task, name, portion)
                    stored = frozenset(results)
                    on_kept(name, results)
                else:
                    stored = _cells_with_results(folder, state, task, name, portion)
            lacking = tuple(cell for cell in chosen if name not in there.get(cell.name, ()) and cell.name not in stored)
            if lacking:
                video_jobs.append(task.make_job(name, path, lacking, seed, portion))
    return Plan(chosen, there, tuple(video_jobs), tuple(failed))


def order_for_workers(jobs: Sequence[VideoJob]) -> tuple[VideoJob, ...]:
    """Return jobs with the largest files first, so that all workers finish at about the same time.

    Portions of one video stay together, and folders of images come last, as their size takes long to find out.
    """
    return tuple(sorted(jobs, key=lambda job: -file_size(job.path)))


def file_size(path: Path) -> int:
    """Return the size of a file in bytes; 0 for a folder, and for a file that cannot be read."""
    try:
        facts = path.stat()
    except OSError:  # the worker reports what is wrong with it
        return 0
    return facts.st_size if stat.S_ISREG(facts.st_mode) else 0


def load_results(
    folder: RunFolder, state: State, task: Task[Any, Output], video: str, portion: int | None
) -> dict[str, Output]:
    """Load the stored predictions for a portion of a video, by cell, as far as the folder still has them."""
    event = state.videos.get((video, portion))
    stored = None if event is None else read_results(results_file(folder, video, portion), event.sha256)
    return {} if stored is None else task.unpack(*stored)


def load_complete_results(folder: RunFolder, state: State, task: Task[Any, Output], video: str) -> dict[str, Output]:
    """Load the predictions for a video in the cells of which all portions are stored."""
    results = [load_results(folder, state, task, video, portion) for portion in task.portions(video)]
    cells = [cell for cell in results[0] if all(cell in one for one in results)]
    return {cell: task.join_portions([one[cell] for one in results]) for cell in cells}


def _cells_with_results(
    folder: RunFolder, state: State, task: Task[Any, Any], video: str, portion: int | None
) -> frozenset[str]:
    """Return the cells with stored results of a video; the file is read only if it changed."""
    event, every = state.videos[video, portion], task.recipe.cells
    try:
        if not is_unchanged(results_file(folder, video, portion), event.kept, event.sha256):
            return frozenset()
    except JostleError:
        return frozenset()
    if all(hi <= len(every) for _, hi in event.cells):
        return frozenset(every[i].name for lo, hi in event.cells for i in range(lo, hi))
    return frozenset(load_results(folder, state, task, video, portion))


def to_ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Merge numbers into half-open ranges.

    >>> to_ranges([0, 1, 2, 7])
    [(0, 3), (7, 8)]
    """
    ranges: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number:
            ranges[-1] = (ranges[-1][0], number + 1)
        else:
            ranges.append((number, number + 1))
    return ranges


def results_file(folder: RunFolder, video: str, portion: int | None) -> Path:
    """Return the path of the results of a video, or of a portion of it; suffixes keep the two apart."""
    return folder.videos / file_name_for(video, RESULTS if portion is None else f".portion{portion}")


def _videos_written(folder: RunFolder, state: State, cell: Cell) -> frozenset[str] | None:
    path = folder.predictions_of(cell.slug)
    if not os.path.lexists(path):
        return None
    event = state.written.get(cell.name, {}).get(file_fingerprint(path)) if path.is_file() else None
    if event is None:
        raise SourceChanged(f"{path}: not what this run wrote; delete it, and the cell is done again")
    return state.lists[event.list]


def claimed_frames(path: Path) -> int:
    """Return the number of frames that a file declares or a folder of images holds; 0 if unreadable."""
    try:
        facts = probe(path)
    except JostleError:
        return 0
    return facts.declared_frames or round((facts.duration_s or 0.0) * facts.fps)


def _check_source(job: VideoJob, event: VideoKept) -> None:
    """Raise if a video changed: a new modification time is allowed, as for copies, but not new content."""
    name, path, rate = job.name, job.path, None if job.fps is None else str(job.fps)
    if event.fps != rate:
        raise SourceChanged(
            f"{path}: {quote_name(name)} was read at {event.fps or 'its own'} frames a second when this run "
            f"processed it, and now at {rate or 'its own'}; name another folder, or give the same --fps"
        )
    if event.source is None or not path.exists():
        return
    if not is_unchanged(path, (event.size or 0, event.changed_ns or 0), event.source):
        raise SourceChanged(
            f"{path}: {quote_name(name)} has changed since this run processed it; name another folder, or put "
            "the old file back"
        )
