"""A diagnosis as a run keeps it: the content of diagnosis.json, as far as findings read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jostle.io.files.records import Share, ValidationError
from jostle.metrics.diagnosis.false_positives import ERROR_KINDS, ERRORS

Numbers = dict[str, float | None]
Buckets = Mapping[str, Mapping[str, float | None]]  # by characteristic and bucket


@dataclass(frozen=True)
class StoredFalsePositives:
    """Predictions by kind: shares in each split of the surest, counts, and what each kind of error costs."""

    profile: tuple[Numbers, ...]
    totals: Numbers
    impact: Numbers

    def __post_init__(self) -> None:
        if not self.profile:
            raise ValidationError("is empty").under("profile")
        _refuse_without(ERROR_KINDS, self.profile[0], "profile")
        _refuse_without(ERROR_KINDS, self.totals, "totals")
        _refuse_without(ERRORS, self.impact, "impact")


@dataclass(frozen=True)
class CellDiagnosis:
    """Why a detector fails in one cell; `Diagnosis` says what each number means."""

    false_positives: StoredFalsePositives
    sensitivity: dict[str, Numbers | float | None]
    false_negatives: dict[str, dict[str, Numbers | float | None] | float | None]

    def __post_init__(self) -> None:
        _refuse_without(("base",), self.sensitivity, "sensitivity")
        _refuse_without(("overall",), self.false_negatives, "false_negatives")
        for name, value in (("base", self.sensitivity["base"]), ("overall", self.false_negatives["overall"])):
            if isinstance(value, dict):
                raise ValidationError(f"has an object under {name!r}, not a number")

    @property
    def base(self) -> float | None:
        """Average normalised mAP (mAP_N) of the cell."""
        value = self.sensitivity["base"]
        return value if isinstance(value, float) else None

    @property
    def missed(self) -> float | None:
        """Share of actions that no detection finds."""
        value = self.false_negatives["overall"]
        return value if isinstance(value, float) else None

    @property
    def by_bucket(self) -> Buckets:
        """Average mAP_N by characteristic and bucket; None for an empty one."""
        return {name: value for name, value in self.sensitivity.items() if isinstance(value, dict)}

    @property
    def missed_by_bucket(self) -> Buckets:
        """Share of actions missed, by the same buckets."""
        return {name: _plain_numbers(self.false_negatives.get(name)) for name in self.by_bucket}


@dataclass(frozen=True)
class StoredDiagnosis(CellDiagnosis):
    """Content of diagnosis.json: the diagnosis of the clean cell, and under `cells` those of the others.

    Attributes:
        cells: None for a cell where nothing was found.
    """

    style: str
    tious: tuple[Share, ...]
    cells: dict[str, CellDiagnosis | None] = field(kw_only=True)


def _refuse_without(keys: Sequence[str], content: Mapping[str, object], under: str) -> None:
    for name in keys:
        if name not in content:
            raise ValidationError("is missing").under(name).under(under)


def _plain_numbers(content: object) -> Numbers:
    inner = content if isinstance(content, dict) else {}
    return {bucket: value for bucket, value in inner.items() if not isinstance(value, dict)}
