"""What a run folder holds already, and so what is left to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jostle.errors import JostleError, SourceChanged
from jostle.evaluation.inference.jobs import Found, Order
from jostle.evaluation.recipes.recipe import CLEAN, Cell
from jostle.evaluation.run_folder.events import CellWritten, Event, VideoFailed, VideoKept, VideoList
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.runner.video_results import read_results
from jostle.evaluation.tasks.task import Task
from jostle.io.files.fingerprint import file_fingerprint, source_state
from jostle.io.files.video_ids import file_name_for, shown
from jostle.io.video.probe import probe
from jostle.io.video.source import fingerprint_of

RESULTS = ".npz"  # of one video
FEW = 2000  # videos whose kept results may be read again just to be shown


@dataclass
class State:
    """What the journal says, later lines over earlier ones.

    Attributes:
        videos: the last line on each video, or portion of one, that was looked at.
        failed: the last line on each that could not be used.
        written: lines on the predictions of each cell by the checksum of the file.
        lists: lists of videos, which such lines name by a key: most cells have the same.
    """

    videos: dict[tuple[str, int | None], VideoKept] = field(default_factory=dict)
    failed: dict[str, VideoFailed] = field(default_factory=dict)
    written: dict[str, dict[str, CellWritten]] = field(default_factory=dict)
    lists: dict[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[Event]) -> State:
        """The state that a journal's events lead to."""
        state = cls()
        for event in events:
            state.add(event)
        return state

    def add(self, event: Event) -> None:
        """Take in one more event."""
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
    """What is to be done.

    Attributes:
        cells: those that will be whole in the end: what is asked for, and what the folder has already.
        there: for each cell that has a predictions file, the videos in it.
        orders: videos or portions to look at, each with the cells it lacks.
        failed: videos that could not be used before and are not tried again.
    """

    cells: tuple[Cell, ...]
    there: Mapping[str, frozenset[str]]
    orders: tuple[Order, ...]
    failed: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """What would be done, in numbers."""
        return {
            "format": 1,
            "cells": [cell.name for cell in self.cells],
            "videos": len({order.name for order in self.orders}),
            "looks": sum(len(order.cells) for order in self.orders),
            "failed": list(self.failed),
        }


def usable_videos(task: Task[Any]) -> dict[str, Path]:
    """The videos that are annotated and have a file, in the order of the annotations."""
    videos = task.data.videos
    return {name: videos[name] for name in task.videos if name in videos and task.looks_at(name)}


def planned(
    folder: RunFolder,
    state: State,
    task: Task[Found],
    cells: Sequence[Cell],
    *,
    seed: int,
    retry_failed: bool,
    on_kept: Callable[[str, dict[str, Found]], None] | None = None,
) -> Plan:
    """What is left to do for these cells in a folder.

    Args:
        on_kept: told what is kept of each video.

    Raises:
        SourceChanged: if a predictions file or a video is not what it was.
    """
    every = task.recipe.cells
    there = {cell.name: found for cell in every if (found := _written(folder, state, cell)) is not None}
    asked = {cell.name for cell in cells} | {CLEAN} | set(there)
    chosen = tuple(cell for cell in every if cell.name in asked)
    orders, failed = [], []
    for name, path in usable_videos(task).items():
        if name in state.failed and not retry_failed:
            failed.append(name)
            continue
        for portion in task.portions(name):
            kept: frozenset[str] = frozenset()
            if (name, portion) in state.videos:
                _check_source(task.order(name, path, (), seed, portion), state.videos[name, portion])
                if on_kept is not None and len(state.videos) <= FEW:
                    results = kept_results(folder, state, task, name, portion)
                    kept = frozenset(results)
                    on_kept(name, results)
                else:
                    kept = _kept_cells(folder, state, task, name, portion)
            lacking = tuple(cell for cell in chosen if name not in there.get(cell.name, ()) and cell.name not in kept)
            if lacking:
                orders.append(task.order(name, path, lacking, seed, portion))
    return Plan(chosen, there, tuple(orders), tuple(failed))


def kept_results(
    folder: RunFolder, state: State, task: Task[Found], video: str, portion: int | None
) -> dict[str, Found]:
    """What was found in a portion of a video, by cell, as far as the folder still has it."""
    event = state.videos.get((video, portion))
    held = None if event is None else read_results(results_file(folder, video, portion), event.sha256)
    return {} if held is None else task.unpacked(*held)


def whole_results(folder: RunFolder, state: State, task: Task[Found], video: str) -> dict[str, Found]:
    """What was found in a video, by cell: in those that the folder has all of."""
    kept = [kept_results(folder, state, task, video, portion) for portion in task.portions(video)]
    cells = [cell for cell in kept[0] if all(cell in one for one in kept)]
    return {cell: task.joined([one[cell] for one in kept]) for cell in cells}


def _kept_cells(folder: RunFolder, state: State, task: Task[Any], video: str, portion: int | None) -> frozenset[str]:
    """The cells of which something is kept of a video; its file is only read if it is not as it was left."""
    event, every = state.videos[video, portion], task.recipe.cells
    try:
        as_left = source_state(results_file(folder, video, portion)) == event.kept
        if as_left and all(hi <= len(every) for _, hi in event.cells):
            return frozenset(every[i].name for lo, hi in event.cells for i in range(lo, hi))
    except JostleError:
        return frozenset()
    return frozenset(kept_results(folder, state, task, video, portion))


def spans(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Numbers as ranges, each with its first and the one after its last.

    >>> spans([0, 1, 2, 7])
    [(0, 3), (7, 8)]
    """
    made: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if made and made[-1][1] == number:
            made[-1] = (made[-1][0], number + 1)
        else:
            made.append((number, number + 1))
    return made


def results_file(folder: RunFolder, video: str, portion: int | None) -> Path:
    """Where the results of a video, or of a portion of it, are kept: the ends differ, so that no two are one."""
    return folder.videos / file_name_for(video, RESULTS if portion is None else f".portion{portion}")


def _written(folder: RunFolder, state: State, cell: Cell) -> frozenset[str] | None:
    path = folder.predictions_of(cell.slug)
    if not os.path.lexists(path):
        return None
    event = state.written.get(cell.name, {}).get(file_fingerprint(path)) if path.is_file() else None
    if event is None:
        raise SourceChanged(f"{path}: not what this run wrote; delete it, and the cell is done again")
    return state.lists[event.list]


def claimed_frames(path: Path) -> int:
    """How many frames a file says it has, or a folder of images holds; 0 if it cannot be opened."""
    try:
        facts = probe(path)
    except JostleError:
        return 0
    return facts.declared_frames or round((facts.duration_s or 0.0) * facts.fps)


def _check_source(order: Order, event: VideoKept) -> None:
    """A file with another time may have been copied; with another content it is another video."""
    name, path, rate = order.name, order.path, None if order.fps is None else str(order.fps)
    if event.fps != rate:
        raise SourceChanged(
            f"{path}: {shown(name)} was shown at {event.fps or 'its own'} frames a second when this run looked at it, "
            f"and now at {rate or 'its own'}; name another folder, or give the same --fps"
        )
    if event.source is None or not path.exists():
        return
    if source_state(path) != (event.size, event.changed_ns) and fingerprint_of(path) != event.source:
        raise SourceChanged(
            f"{path}: {shown(name)} is not the video it was when this run looked at it; name another folder, or put "
            "the old file back"
        )
