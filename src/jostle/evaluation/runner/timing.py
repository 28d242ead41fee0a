"""What the time of a run goes to, and what limits it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from jostle.core.timing import Spent
from jostle.evaluation.run_folder.events import WorkDone

Limit = Literal["decoding", "corrupting", "model", "disk"]
BUSY = 0.5  # share of its time that the one process spends with the disk when that is what limits


@dataclass
class Effort:
    """Keeps count while a run goes on.

    Attributes:
        workers: how many there are.
        apart: whether the model is in a process of its own.
    """

    workers: int
    apart: bool
    spent: Spent = Spent()  # noqa: RUF009
    videos: int = 0
    disk: float = 0.0
    begun: float = field(default_factory=time.perf_counter)

    def add(self, spent: Spent) -> None:
        """One more video was looked at."""
        self.spent += spent
        self.videos += 1

    @contextmanager
    def writing(self) -> Iterator[None]:
        """What happens inside goes to the disk."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.disk += time.perf_counter() - begin

    @property
    def seconds(self) -> float:
        """On the clock."""
        return time.perf_counter() - self.begun

    @property
    def limit(self) -> Limit | None:
        """What more of would make it faster; None as long as nothing was done."""
        found = self.spent.limit(waited_for=self.apart)
        return "disk" if found is not None and self.disk > BUSY * self.seconds else found

    def told(self) -> WorkDone | None:
        """For the journal; None where nothing was done."""
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
