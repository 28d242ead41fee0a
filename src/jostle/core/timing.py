"""What the time of a process goes to: decoding, corrupting, the model. Each second is counted once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

Part = Literal["decoding", "corrupting", "model"]

WAITS = 0.1  # share of its time that a worker waits for the model when that is what limits
_taken: dict[Part, float] = {"decoding": 0.0, "corrupting": 0.0, "model": 0.0}
_inside: list[Part] = []
_since = 0.0


@contextmanager
def spent_on(part: Part) -> Iterator[None]:
    """What happens inside is this, except for what is marked inside as something else."""
    _turn()
    _inside.append(part)
    try:
        yield
    finally:
        _turn()
        _inside.pop()


def _turn() -> None:
    """Give what went by to whoever was at it."""
    global _since
    now = time.perf_counter()
    if _inside:
        _taken[_inside[-1]] += now - _since
    _since = now


@dataclass(frozen=True)
class Spent:
    """Seconds of workers, all of them together.

    Attributes:
        decoding: videos, and reading them from the disk.
        corrupting: and whatever else is done to frames on their way.
        model: at work, or waited for where it is in a process of its own.
    """

    decoding: float = 0.0
    corrupting: float = 0.0
    model: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.decoding + other.decoding, self.corrupting + other.corrupting, self.model + other.model)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.decoding - other.decoding, self.corrupting - other.corrupting, self.model - other.model)

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.decoding + self.corrupting + self.model

    def limit(self, *, waited_for: bool) -> Part | None:
        """What more of would make it faster; None where nothing was done.

        Args:
            waited_for: whether the model is in a process of its own: workers that wait for it then could do more.

        >>> Spent(1, 6, 3).limit(waited_for=True), Spent(1, 6, 3).limit(waited_for=False)
        ('model', 'corrupting')
        """
        if not self.seconds:
            return None
        if waited_for and self.model > WAITS * self.seconds:
            return "model"
        parts: dict[Part, float] = {"decoding": self.decoding, "corrupting": self.corrupting}
        if not waited_for:
            parts["model"] = self.model
        return max(parts, key=lambda part: parts[part])


def spent_so_far() -> Spent:
    """By this process."""
    _turn()
    return Spent(_taken["decoding"], _taken["corrupting"], _taken["model"])
