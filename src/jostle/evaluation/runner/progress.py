"""How far a run has come: what a live table shows while cells fill in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jostle.evaluation.tasks.task import Task


@dataclass
class CellSoFar:
    """One cell while it fills in.

    Attributes:
        videos: how many have been looked at in it.
        total: sum of numbers of single videos whose mean is the value of the cell.
        counted: how many videos have such a number.
    """

    videos: int = 0
    total: float = 0.0
    counted: int = 0

    @property
    def value(self) -> float | None:
        """The value over the videos so far, or None."""
        return self.total / self.counted if self.counted else None


@dataclass(frozen=True)
class Tick:
    """The state of a run after a video, or a portion of one where results are kept by those.

    Attributes:
        done: of them, looked at this time.
        total: of them, to look at this time.
        failed: how many could not be used.
        cells: by name; of earlier times as well.
        unit: what is counted.
        limit: what more of would make it faster, so far.
    """

    done: int
    total: int
    failed: int
    cells: Mapping[str, CellSoFar]
    unit: str = "videos"
    limit: str | None = None


Watch = Callable[[Tick], None]


class Watching:
    """Keeps count for whoever watches."""

    def __init__(self, task: Task[Any], watch: Watch | None) -> None:
        self._task, self._watch = task, watch
        self._cells: dict[str, CellSoFar] = {cell.name: CellSoFar() for cell in task.recipe.cells}
        self.failed, self.unit = 0, "videos"

    def take(self, name: str, found: Mapping[str, Any]) -> None:
        """Count what was found in a video."""
        if self._watch is None:
            return
        for cell, one in found.items():
            so_far = self._cells[cell]
            so_far.videos += 1
            value = self._task.glance(name, one)
            if value is not None:
                so_far.total += value
                so_far.counted += 1

    def tell(self, done: int, total: int, limit: str | None = None) -> None:
        """Tell the watcher."""
        if self._watch is not None:
            self._watch(Tick(done, total, self.failed, self._cells, self.unit, limit))
