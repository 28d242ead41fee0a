"""How a frame classifier errs around its anchors: pm-k's error by distance in frames."""

from __future__ import annotations

from dataclasses import dataclass

from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.run_folder.scores import PmKScore
from jostle.reporting.analysis.record import RunRecord


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
    told = [(CLEAN, record.scores.clean_more.pm_k), *((one.cell, one.pm_k) for one in record.scores.listed)]
    return [_errors(cell, found) for cell, found in told if found is not None]


def _errors(cell: str, found: PmKScore) -> OffsetErrors:
    return OffsetErrors(
        cell,
        found.k,
        found.anchors,
        found.accuracy,
        found.accuracy_interval,
        found.pm_k,
        found.pm_k_interval,
        dict(sorted(found.error_by_offset.items())),
    )
