"""Why a detector fails, clean against corrupted: DETAD's kinds of error, what each costs, and who is hit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jostle.metrics.diagnosis.false_positives import ERROR_KINDS, ERRORS
from jostle.reporting.analysis.diagnosis_file import Buckets, CellDiagnosis
from jostle.reporting.analysis.record import RunRecord


@dataclass(frozen=True)
class ProfileSide:
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
    """DETAD error profile, clean against corrupted.

    Attributes:
        style: the thresholds and buckets.
        tious: thresholds.
        cells: those that `corrupted` is the mean of.
        without: cells that have no diagnosis, as nothing was found there.
    """

    style: str
    tious: tuple[float, ...]
    clean: ProfileSide
    corrupted: ProfileSide | None
    cells: tuple[str, ...]
    without: tuple[str, ...]


def error_profile(record: RunRecord, cells: Sequence[str] | None = None) -> ErrorProfile | None:
    """Return the error profile, clean and averaged over cells, or None if the run has no diagnosis.

    Args:
        cells: by default those that count.
    """
    diagnoses = record.diagnosis
    if diagnoses is None:
        return None
    names = record.counted if cells is None else cells
    known = {cell: diagnosis for cell in names if (diagnosis := diagnoses.cells.get(cell)) is not None}
    return ErrorProfile(
        diagnoses.style,
        diagnoses.tious,
        _side([diagnoses]),
        _side(list(known.values())) if known else None,
        tuple(known),
        tuple(cell for cell in names if cell not in known),
    )


def _side(diagnoses: Sequence[CellDiagnosis]) -> ProfileSide:
    wrong = [one.false_positives for one in diagnoses]
    return ProfileSide(
        shares={kind: _mean(one.profile[0][kind] for one in wrong) for kind in ERROR_KINDS},
        totals={kind: _mean(one.totals[kind] for one in wrong) for kind in ERROR_KINDS},
        impact={kind: _mean(one.impact[kind] for one in wrong) for kind in ERRORS},
        base=_mean(one.base for one in diagnoses),
        sensitivity=_buckets([one.by_bucket for one in diagnoses]),
        missed=_mean(one.missed for one in diagnoses),
        missed_by=_buckets([one.missed_by_bucket for one in diagnoses]),
    )


def _buckets(diagnoses: Sequence[Buckets]) -> Buckets:
    """The mean of each bucket of the first over all that know it."""
    return {
        name: {bucket: _mean(one.get(name, {}).get(bucket) for one in diagnoses) for bucket in buckets}
        for name, buckets in diagnoses[0].items()
    }


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
