"""Time of a run by kind of work, and its bottleneck."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from jostle.core.timing import StageTimes
from jostle.evaluation.run_folder.events import WorkDone

Limit = Literal["decoding", "corrupting", "model", "disk"]
BUSY = 0.5  # share of the main process's time on disk above which the disk is the bottleneck


@dataclass
class WorkTimer:
    """Time spent so far in a run.

    Attributes:
        workers: number of workers.
        apart: whether the model runs in a process of its own.
    """

    workers: int
    apart: bool
    spent: StageTimes = StageTimes()  # noqa: RUF009
    videos: int = 0
    disk: float = 0.0
    begun: float = field(default_factory=time.perf_counter)

    def add(self, spent: StageTimes) -> None:
        """Add the time of one more video."""
        self.spent += spent
        self.videos += 1

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
        """Bottleneck of the run; None before the first video."""
        limit = self.spent.limit(waited_for=self.apart)
        return "disk" if limit is not None and self.disk > BUSY * self.seconds else limit

    def to_event(self) -> WorkDone | None:
        """Return the event for the journal; None before the first video."""
        if self.limit is None:
            return None
        return WorkDone(
            self.videos,
            self.workers,
            seconds=round(self.seconds, 3),
            decoding=round(self.spent.decoding, 3),
            corrupting=round(self.spent.corrupting, 3),
            model=round(self.spent.model, 3),
            disk=round(self.disk, 3),
            limit=self.limit,
            apart=self.apart,
        )
