"""Runs served by the viewer; each is read from disk, and again when it has changed.

Whatever a video is called, its address is plain, and only known ones lead anywhere.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from jostle.errors import DataError
from jostle.evaluation.recipes.recipe import CLEAN, slugify
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import DRAWS, Drop, RunAnalysis, analyse_run, processed_videos, video_drops
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.run_folder.journal import VideoKept, read_events
from jostle.evaluation.run_folder.metadata import About

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_@+-]{0,99}")
_OTHER = re.compile(r"[^A-Za-z0-9_+-]+")


class Keys:
    """The key of each name, and back; nothing else has one.

    A key holds no dot, slash or percent sign, so that no address can be read as a path.

    >>> made = Keys(["box_1", "../a b", "box.1"])
    >>> made.of("box_1"), made.name("box_1"), made.name("..")
    ('box_1', 'box_1', None)
    >>> made.of("box.1")
    'box-1~8be223df'
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._keys = {name: key_of(name) for name in names}
        self._names = {key: name for name, key in self._keys.items()}

    def of(self, name: str) -> str:
        """The key of a known name."""
        return self._keys[name]

    def name(self, key: str) -> str | None:
        """The name that has this key, or None."""
        return self._names.get(key)


def key_of(name: str) -> str:
    """A name as one step of an address; two names never share one."""
    if _PLAIN.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_OTHER.sub('-', name).strip('-')[:60]}~{digest}"


def cell_key(cell: str) -> str:
    """The key of a cell, as its file of predictions is called."""
    return key_of(slugify(cell))


def run_keys(folders: Iterable[Path]) -> dict[str, Path]:
    """The run folders by their keys: their names, and a number where two are called alike."""
    made: dict[str, Path] = {}
    for folder in folders:
        plain = key_of(folder.resolve().name or "run")
        key, number = plain, 2
        while key in made:
            key, number = f"{plain}-{number}", number + 1
        made[key] = folder
    return made


PREDICTIONS_KEPT = 4  # cells whose predictions stay in memory: clean, and a few others
_keeping = threading.Lock()


class KeptRecord(RunRecord):
    """A run whose last few files of predictions stay in memory, as one page after another asks for them."""

    def predictions(self, cell: str) -> Any:
        """Return the predictions of a cell, as the metric takes them."""
        with _keeping:
            if cell in self._held:
                self._held.move_to_end(cell)
                return self._held[cell]
        predictions = super().predictions(cell)
        with _keeping:
            self._held[cell] = predictions
            while len(self._held) > PREDICTIONS_KEPT:
                self._held.popitem(last=False)
        return predictions

    def update_journal(self) -> None:
        """Forget what was read from the journal, if it has changed."""
        state = _state(RunFolder(self.folder).journal)
        if vars(self).setdefault("_journal_state", state) != state:
            vars(self)["_journal_state"] = state
            for name in ("_events", "_portions", "sources", "rates"):
                vars(self).pop(name, None)

    @cached_property
    def _held(self) -> OrderedDict[str, Any]:
        return OrderedDict()


@dataclass(frozen=True)
class Waiting:
    """An analysis that is not done: how many cells of how many are."""

    done: int
    of: int


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A run as it was at one moment; a page is made from one snapshot."""

    key: str
    record: KeptRecord
    pool: ThreadPoolExecutor
    _progress: dict[str, int] = field(default_factory=dict)

    @cached_property
    def videos(self) -> Keys:
        """Keys of the processed videos."""
        return Keys(processed_videos(self.record) if CLEAN in self.record.cells else ())

    @cached_property
    def cells(self) -> Mapping[str, str]:
        """Cells of the run by their keys."""
        return {cell_key(cell): cell for cell in self.record.cells}

    @cached_property
    def _analysis(self) -> Future[RunAnalysis]:
        def report_progress(done: int, _: int) -> None:
            self._progress["done"] = done

        return self.pool.submit(analyse_run, self.record, draws=DRAWS, progress=report_progress)

    def analysis(self) -> RunAnalysis | Waiting:
        """Analysis of the run; it takes seconds and runs in the background.

        Raises:
            DataError: if the run cannot be analysed.
        """
        with _keeping:  # two pages at once begin one analysis
            begun = self._analysis
        if not begun.done():
            return Waiting(self._progress.get("done", 0), len(self.record.cells))
        return begun.result()

    def drops(self, cell: str) -> list[Drop] | Waiting:
        """The videos of a cell, largest loss first."""
        analysis = self.analysis()
        return analysis if isinstance(analysis, Waiting) else video_drops(analysis, [cell])


@dataclass(frozen=True)
class Unfinished:
    """A run that has no scores yet."""

    key: str
    about: About
    why: str  # what the folder lacks
    done: int  # processed videos
    of: int  # videos in all


class RunCollection:
    """Collection of the runs that the viewer serves.

    Raises:
        DataError: if a folder is no run.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self.folders = run_keys(folders)
        for folder in self.folders.values():
            RunFolder(folder).read_about()
        self._pool = ThreadPoolExecutor(1, "analysis")
        self._lock = threading.Lock()
        self._held: dict[str, tuple[Any, Snapshot]] = {}

    def run(self, key: str) -> Snapshot | Unfinished | None:
        """A run as it lies there now; None if there is none of this key.

        Raises:
            DataError: if its folder is gone or damaged.
        """
        folder = self.folders.get(key)
        if folder is None:
            return None
        with self._lock:
            mark = _mark(folder)
            held = self._held.get(key)
            if held is not None and held[0] == mark:
                held[1].record.update_journal()  # by itself: in a run under way it grows, and the analysis may stay
                return held[1]
            if not RunFolder(folder).scores.exists():
                return _unfinished(key, folder)
            read = RunRecord.read(folder)
            snapshot = Snapshot(key, KeptRecord(read.folder, read.about, read.scores), self._pool)
            _ = snapshot.cells  # read now: a snapshot has the cells of its moment
            snapshot.record.update_journal()
            self._held[key] = (mark, snapshot)
            return snapshot

    def close(self) -> None:
        """Cancel all work that is pending."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _mark(folder: Path) -> tuple[Any, ...]:
    """Return a value that changes whenever a file of the run other than its journal is written."""
    known = RunFolder(folder)
    paths = (known.about, known.scores, known.truth, known.predictions, known.diagnosis, known.failures)
    return tuple(_state(path) for path in paths)


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _unfinished(key: str, folder: Path) -> Unfinished:
    known = RunFolder(folder)
    about = known.read_about()
    try:
        done = len({event.video for event in read_events(known.journal) if isinstance(event, VideoKept)})
    except DataError:
        done = 0
    return Unfinished(key, about, f"{known.scores.name} is not there yet", done, about.videos)
