"""Progress of a run: the data of the live table, the time by kind of work, and the bottleneck."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from jostle.core.timing import StageTimes
from jostle.evaluation.run_folder.journal import WorkDone
from jostle.evaluation.tasks.task import Task


@dataclass
class CellProgress:
    """Progress of one cell of a run."""

    videos: int = 0
    total: float = 0.0  # sum of the scores of single videos, whose mean is the value of the cell
    counted: int = 0  # number of videos with a score

    @property
    def value(self) -> float | None:
        """Value over the videos so far, or None."""
        return self.total / self.counted if self.counted else None


@dataclass(frozen=True)
class ProgressUpdate:
    """Progress of a run after a video, or a portion of one where results are stored by portions."""

    done: int  # items processed in this session
    total: int  # items to process in this session
    failed: int  # number that could not be used
    cells: Mapping[str, CellProgress]  # progress by cell name, including earlier sessions
    unit: str = "videos"
    limit: str | None = None  # bottleneck so far


Watch = Callable[[ProgressUpdate], None]


class ProgressTracker:
    """Counts results per cell and reports them to a callback."""

    def __init__(self, task: Task[Any, Any], watch: Watch | None) -> None:
        self._task, self._watch = task, watch
        self._cells: dict[str, CellProgress] = {cell.name: CellProgress() for cell in task.recipe.cells}
        self.failed, self.unit = 0, "videos"

    def add_result(self, name: str, outputs: Mapping[str, Any]) -> None:
        """Count the predictions for a video."""
        if self._watch is None:
            return
        for cell, one in outputs.items():
            progress = self._cells[cell]
            progress.videos += 1
            value = self._task.video_score(name, one)
            if value is not None:
                progress.total += value
                progress.counted += 1

    def update(self, done: int, total: int, limit: str | None = None) -> None:
        """Call the callback with the current progress."""
        if self._watch is not None:
            self._watch(ProgressUpdate(done, total, self.failed, self._cells, self.unit, limit))


Limit = Literal["decoding", "corrupting", "model", "disk"]
BUSY = 0.5  # share of the main process's time on disk above which the disk is the bottleneck


@dataclass
class WorkTimer:
    """Time spent so far in a run."""

    workers: int
    apart: bool  # whether the model runs in a process of its own
    spent: StageTimes = StageTimes()  # noqa: RUF009
    by_caller: StageTimes = StageTimes()  # noqa: RUF009 - the part of it before the calling process started workers
    videos: int = 0
    disk: float = 0.0
    begun: float = field(default_factory=time.perf_counter)

    def add(self, spent: StageTimes, *, by_caller: bool = False) -> None:
        """Add the time of one more video."""
        self.spent += spent
        self.videos += 1
        if by_caller:
            self.by_caller += spent

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Count the time in this context as disk time."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.disk += time.perf_counter() - begin

    @property
    def seconds(self) -> float:
        """Wall-clock seconds since the start."""
        return time.perf_counter() - self.begun

    @property
    def limit(self) -> Limit | None:
        """Bottleneck of the run, of its workers as soon as there are any; None before the first video."""
        spent = self.spent if self._alone else self.spent - self.by_caller
        limit = spent.limit(waited_for=self.apart and not self._alone)
        return "disk" if limit is not None and self.disk > BUSY * self.seconds else limit

    @property
    def _alone(self) -> bool:
        """Whether the calling process has done everything so far, with the model in it."""
        return self.spent == self.by_caller

    def to_event(self) -> WorkDone | None:
        """Return the event for the journal; None before the first video."""
        if self.limit is None:
            return None
        return WorkDone(
            self.videos,
            1 if self._alone else self.workers,
            seconds=round(self.seconds, 3),
            decoding=round(self.spent.decoding, 3),
            corrupting=round(self.spent.corrupting, 3),
            model=round(self.spent.model, 3),
            disk=round(self.disk, 3),
            limit=self.limit,
            apart=self.apart and not self._alone,
        )
