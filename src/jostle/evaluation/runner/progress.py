"""Progress of a run: the data of the live table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jostle.evaluation.tasks.task import Task


@dataclass
class CellProgress:
    """Progress of one cell of a run.

    Attributes:
        videos: number of videos processed.
        total: sum of the scores of single videos, whose mean is the value of the cell.
        counted: number of videos with a score.
    """

    videos: int = 0
    total: float = 0.0
    counted: int = 0

    @property
    def value(self) -> float | None:
        """Value over the videos so far, or None."""
        return self.total / self.counted if self.counted else None


@dataclass(frozen=True)
class ProgressUpdate:
    """Progress of a run after a video, or a portion of one where results are stored by portions.

    Attributes:
        done: items processed in this session.
        total: items to process in this session.
        failed: number that could not be used.
        cells: progress by cell name, including earlier sessions.
        unit: name of the items.
        limit: bottleneck so far.
    """

    done: int
    total: int
    failed: int
    cells: Mapping[str, CellProgress]
    unit: str = "videos"
    limit: str | None = None


Watch = Callable[[ProgressUpdate], None]


class ProgressTracker:
    """Counts results per cell and reports them to a callback."""

    def __init__(self, task: Task[Any], watch: Watch | None) -> None:
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
