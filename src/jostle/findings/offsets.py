"""How a frame classifier errs around its anchors: pm-k's error by distance in frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jostle.benchmarks.recipe import CLEAN
from jostle.findings.record import RunRecord


@dataclass(frozen=True)
class OffsetErrors:
    """One cell of a run of pm-k.

    Attributes:
        cell: `clean`, or a corruption.
        k: the radius in frames.
        anchors: how many there are.
        accuracy, pm_k: shares of anchors that are right alone, and with all their neighbours.
        accuracy_interval, pm_k_interval: exact, 95 %; None with fewer than two anchors.
        error: share of wrong neighbours at each offset, rising.
    """

    cell: str
    k: int
    anchors: int
    accuracy: float
    accuracy_interval: tuple[float, float] | None
    pm_k: float
    pm_k_interval: tuple[float, float] | None
    error: dict[int, float]

    @property
    def drop(self) -> float:
        """What the neighbours take from the accuracy."""
        return self.accuracy - self.pm_k


def offset_errors(record: RunRecord) -> list[OffsetErrors]:
    """The errors in every cell, the clean one first; empty for other tasks."""
    if record.task != "frames":
        return []
    told = [(CLEAN, record.scores["clean_more"]["pm_k"])]
    told += [(cell["cell"], cell["pm_k"]) for cell in [*record.scores["cells"], *record.scores["beside"]]]
    return [_errors(cell, found) for cell, found in told]


def _errors(cell: str, found: dict[str, Any]) -> OffsetErrors:
    offsets = sorted((int(offset), share) for offset, share in found["error_by_offset"].items())
    return OffsetErrors(
        cell,
        found["k"],
        found["anchors"],
        found["accuracy"],
        _pair(found["accuracy_interval"]),
        found["pm_k"],
        _pair(found["pm_k_interval"]),
        dict(offsets),
    )


def _pair(ends: list[float] | None) -> tuple[float, float] | None:
    return None if ends is None else (ends[0], ends[1])
