"""Error of a frame classifier by distance from the anchor frame (pm-k)."""

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
        """Difference of accuracy between anchors and their neighbourhoods."""
        return self.accuracy - self.pm_k


def offset_errors(record: RunRecord) -> list[OffsetErrors]:
    """The errors in every cell, the clean one first; empty for other tasks."""
    if record.task != "frames":
        return []
    cells = [(CLEAN, record.scores.clean_more.pm_k), *((one.cell, one.pm_k) for one in record.scores.listed)]
    return [_errors(cell, result) for cell, result in cells if result is not None]


def _errors(cell: str, result: PmKScore) -> OffsetErrors:
    return OffsetErrors(
        cell,
        result.k,
        result.anchors,
        result.accuracy,
        result.accuracy_interval,
        result.pm_k,
        result.pm_k_interval,
        dict(sorted(result.error_by_offset.items())),
    )
