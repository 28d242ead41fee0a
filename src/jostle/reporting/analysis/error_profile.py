"""Why a detector fails, clean against corrupted: DETAD's kinds of error, what each costs, and who is hit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jostle.metrics.diagnosis.false_positives import ERRORS, KINDS
from jostle.reporting.analysis.diagnosis_file import Buckets, CellDiagnosed
from jostle.reporting.analysis.record import RunRecord


@dataclass(frozen=True)
class Side:
    """A diagnosis, or the mean of several.

    Attributes:
        shares: what part of the surest predictions (the top-1G: as many as there are actions) is of each kind.
        totals: of the top-10G, how many predictions are of each kind.
        impact: what average mAP_N would gain if a kind of error vanished.
        base: average mAP_N.
        sensitivity: average mAP_N by bucket; None for an empty one.
        missed: share of actions that no detection finds.
        missed_by: the same by bucket.
    """

    shares: Mapping[str, float | None]
    totals: Mapping[str, float | None]
    impact: Mapping[str, float | None]
    base: float | None
    sensitivity: Buckets
    missed: float | None
    missed_by: Buckets


@dataclass(frozen=True)
class ErrorProfile:
    """Clean against corrupted.

    Attributes:
        style: the thresholds and buckets.
        tious: thresholds.
        cells: those that `corrupted` is the mean of.
        without: cells that have no diagnosis, as nothing was found there.
    """

    style: str
    tious: tuple[float, ...]
    clean: Side
    corrupted: Side | None
    cells: tuple[str, ...]
    without: tuple[str, ...]


def error_profile(record: RunRecord, cells: Sequence[str] | None = None) -> ErrorProfile | None:
    """What diagnosis.json says, clean and on the mean of cells; None where the run has no diagnosis.

    Args:
        cells: by default those that count.
    """
    told = record.diagnosis
    if told is None:
        return None
    wanted = record.counted if cells is None else cells
    known = {cell: found for cell in wanted if (found := told.cells.get(cell)) is not None}
    return ErrorProfile(
        told.style,
        told.tious,
        _side([told]),
        _side(list(known.values())) if known else None,
        tuple(known),
        tuple(cell for cell in wanted if cell not in known),
    )


def _side(told: Sequence[CellDiagnosed]) -> Side:
    wrong = [one.false_positives for one in told]
    return Side(
        shares={kind: _mean(one.profile[0][kind] for one in wrong) for kind in KINDS},
        totals={kind: _mean(one.totals[kind] for one in wrong) for kind in KINDS},
        impact={kind: _mean(one.impact[kind] for one in wrong) for kind in ERRORS},
        base=_mean(one.base for one in told),
        sensitivity=_buckets([one.by_bucket for one in told]),
        missed=_mean(one.missed for one in told),
        missed_by=_buckets([one.missed_by_bucket for one in told]),
    )


def _buckets(told: Sequence[Buckets]) -> Buckets:
    """The mean of each bucket of the first over all that know it."""
    return {
        name: {bucket: _mean(one.get(name, {}).get(bucket) for one in told) for bucket in buckets}
        for name, buckets in told[0].items()
    }


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
