"""Difference of two diagnoses of one dataset, such as clean and corrupted, by kind of error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jostle.core.results import Result
from jostle.core.tables import Column, Table
from jostle.errors import DataError
from jostle.metrics.diagnosis.diagnosis import FORMAT, Diagnosis

_SAME = ("format", "style", "tious", "annotators")
_SECTIONS = ("average_map", "average_map_n", "top_10g", "false_positives", "sensitivity", "false_negatives")


@dataclass(frozen=True)
class Change(Result):
    """Difference of two diagnoses, corrupted minus clean; values that either lacks are None."""

    style: str  # of both diagnoses
    tious: tuple[float, ...]  # of both
    average_map: float  # change of average mAP, as a fraction
    average_map_n: float  # the same, normalised
    top_10g: Mapping[str, float]  # count and average mAP of the top-10G
    totals: Mapping[str, float]  # mean number of predictions of each kind
    profile: tuple[Mapping[str, float | int | None], ...]  # by split, what part of its predictions is of each kind
    impact: Mapping[str, float]  # what each kind of error costs
    sensitivity: Mapping[str, Any]  # average mAP_N of each bucket
    false_negatives: Mapping[str, Any]  # share of instances missed, overall, by bucket and by pair of buckets

    @property
    def grew_most(self) -> str:
        """The kind of error that increased most among the top-10G."""
        errors = {name: more for name, more in self.totals.items() if name != "true_positive"}
        return max(errors, key=lambda name: errors[name])

    def tables(self) -> tuple[Table, ...]:
        """Return the change of the scores and of what each kind of error costs."""
        values = {"average mAP": self.average_map, "average mAP_N": self.average_map_n}
        values["missed instances"] = self.false_negatives["overall"]
        values |= {f"cost of {kind.replace('_', ' ')}": cost for kind, cost in self.impact.items()}
        return (Table(f"{self.style} style", (Column("", key="what"), Column("change", "points")), (*values.items(),)),)

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as plain values for JSON, with the keys of a diagnosis."""
        return {
            "format": FORMAT,
            "style": self.style,
            "tious": list(self.tious),
            "average_map": self.average_map,
            "average_map_n": self.average_map_n,
            "top_10g": dict(self.top_10g),
            "false_positives": {
                "profile": [dict(split) for split in self.profile],
                "totals": dict(self.totals),
                "impact": dict(self.impact),
            },
            "sensitivity": dict(self.sensitivity),
            "false_negatives": dict(self.false_negatives),
        }

    def __repr__(self) -> str:
        return (
            f"Change({self.style}: average mAP {self.average_map:+.2%}, mAP_N {self.average_map_n:+.2%}, most gained "
            f"{self.grew_most.replace('_', ' ')} {self.totals[self.grew_most]:+.1f})"
        )


def compare_diagnoses(clean: Diagnosis | Mapping[str, Any], corrupted: Diagnosis | Mapping[str, Any]) -> Change:
    """Subtract two diagnoses, or their `to_dict` results: corrupted minus clean.

    Raises:
        DataError: if they are of different ground truth, styles or thresholds.
    """
    before = clean.to_dict() if isinstance(clean, Diagnosis) else clean
    after = corrupted.to_dict() if isinstance(corrupted, Diagnosis) else corrupted
    _check_comparable(before, after)
    parts = {name: _subtract(after[name], before[name]) for name in _SECTIONS}
    # The instances are the same in both, so a difference of their shares would be a table of zeros.
    parts["false_negatives"].pop("share", None)
    false_positives = parts["false_positives"]
    return Change(
        style=before["style"],
        tious=tuple(before["tious"]),
        average_map=parts["average_map"],
        average_map_n=parts["average_map_n"],
        top_10g=parts["top_10g"],
        totals=false_positives["totals"],
        profile=tuple(
            split | {"split": original["split"]}
            for split, original in zip(false_positives["profile"], before["false_positives"]["profile"], strict=True)
        ),
        impact=false_positives["impact"],
        sensitivity=parts["sensitivity"],
        false_negatives=parts["false_negatives"],
    )


def _check_comparable(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    missing = [name for name in (*_SAME, *_SECTIONS, "truth") for one in (before, after) if name not in one]
    if missing:
        raise DataError(f"this is not a diagnosis: it lacks {missing[0]!r}; give the result of Diagnosis.to_dict()")
    for name in _SAME:
        if before[name] != after[name]:
            raise DataError(
                f"the diagnoses differ in {name}, {before[name]!r} and {after[name]!r}, so their difference is "
                "meaningless; diagnose both alike"
            )
    prints = [one["truth"]["fingerprint"] for one in (before, after)]
    if prints[0] != prints[1]:
        raise DataError(
            f"the diagnoses are of different ground truth, {prints[0][:19]}.. and {prints[1][:19]}..; diagnose both "
            "with the same file and subset"
        )


def _subtract(after: Any, before: Any) -> Any:
    """Subtract numbers, or all numbers in two equal structures; None where either is missing."""
    if isinstance(after, Mapping) and isinstance(before, Mapping):
        return {name: _subtract(after.get(name), value) for name, value in before.items()}
    if isinstance(after, list) and isinstance(before, list):
        return [_subtract(a, b) for a, b in zip(after, before, strict=True)]
    if after is None or before is None:
        return None
    return after - before
