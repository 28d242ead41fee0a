"""Time of a process by stage: decoding, corrupting, model. Nested stages are counted once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

Part = Literal["decoding", "corrupting", "model"]

# Names of stages, and of the disk, in messages about what limits a run.
LIMITS = {"decoding": "decoding", "corrupting": "corrupting", "model": "the model", "disk": "the disk"}
WAITING_SHARE = 0.1  # share of waiting from which the model is the bottleneck
_seconds: dict[Part, float] = {"decoding": 0.0, "corrupting": 0.0, "model": 0.0}
_stack: list[Part] = []
_since = 0.0


@contextmanager
def measure_stage(part: Part) -> Iterator[None]:
    """Count the time of the block as this stage, except for stages nested in it."""
    _account()
    _stack.append(part)
    try:
        yield
    finally:
        _account()
        _stack.pop()


def _account() -> None:
    """Add the time since the last call to the current stage."""
    global _since
    now = time.perf_counter()
    if _stack:
        _seconds[_stack[-1]] += now - _since
    _since = now


@dataclass(frozen=True)
class StageTimes:
    """Seconds by stage, summed over all workers."""

    decoding: float = 0.0  # reading and decoding videos
    corrupting: float = 0.0  # corruptions and all other processing of frames
    model: float = 0.0  # inference, or waiting for it where the model runs in a process of its own

    def __add__(self, other: StageTimes) -> StageTimes:
        return StageTimes(self.decoding + other.decoding, self.corrupting + other.corrupting, self.model + other.model)

    def __sub__(self, other: StageTimes) -> StageTimes:
        return StageTimes(self.decoding - other.decoding, self.corrupting - other.corrupting, self.model - other.model)

    @property
    def seconds(self) -> float:
        """Total time of all stages."""
        return self.decoding + self.corrupting + self.model

    def limit(self, *, waited_for: bool) -> Part | None:
        """Return the stage that limits throughput; None if nothing was measured.

        Args:
            waited_for: whether the model runs in a process of its own, so that model time of workers is waiting.

        >>> StageTimes(1, 6, 3).limit(waited_for=True), StageTimes(1, 6, 3).limit(waited_for=False)
        ('model', 'corrupting')
        """
        if not self.seconds:
            return None
        if waited_for and self.model > WAITING_SHARE * self.seconds:
            return "model"
        parts: dict[Part, float] = {"decoding": self.decoding, "corrupting": self.corrupting}
        if not waited_for:
            parts["model"] = self.model
        return max(parts, key=lambda part: parts[part])


def elapsed_stage_times() -> StageTimes:
    """Return the stage times of this process so far."""
    _account()
    return StageTimes(_seconds["decoding"], _seconds["corrupting"], _seconds["model"])
