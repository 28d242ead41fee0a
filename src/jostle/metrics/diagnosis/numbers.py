"""Numbers of diagnoses as tables: of one diagnosis, or of two side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jostle.core.tables import Column, Table, Value

NOT_BUCKETS = ("share", "pairs")  # what false negatives have besides the buckets of each characteristic
Keys = tuple[str, ...]


def diagnosis_tables(names: Sequence[str], diagnoses: Sequence[Mapping[str, Any]]) -> tuple[Table, ...]:
    """Return the scores, what each kind of error costs, and sensitivity and misses by bucket.

    Args:
        names: columns of the diagnoses.
        diagnoses: contents of `Diagnosis.to_dict()`.
    """
    first = diagnoses[0]
    columns = (Column("", key="what"), *(Column(name, "percent") for name in names))
    columns += (Column("change", "points"),) if len(diagnoses) > 1 else ()

    def table(title: str, paths: Mapping[str, Keys]) -> Table:
        return Table(title, columns, tuple((what, *_values(diagnoses, keys)) for what, keys in paths.items()))

    scores: dict[str, Keys] = {
        "average mAP": ("average_map",),
        "average mAP_N": ("average_map_n",),
        "average mAP_N, top-10G": ("top_10g", "average_map_n"),
        "missed instances": ("false_negatives", "overall"),
    }
    impact = first["false_positives"]["impact"]
    costs = {f"cost of {kind.replace('_', ' ')}": ("false_positives", "impact", kind) for kind in impact}
    tious = ", ".join(f"{tiou:g}" for tiou in first["tious"])
    about = f"{first['truth']['instances']} instances, N = {first['normaliser']:g}"
    return (
        table(f"{first['style']} style at tIoU {tious}; {about}", scores),
        table("What each kind of error costs, in points of average mAP_N", costs),
        *(table(f"Sensitivity to {name}", paths) for name, paths in _buckets(first, "sensitivity", "mAP_N")),
        *(table(f"Missed instances by {name}", paths) for name, paths in _buckets(first, "false_negatives", "missed")),
    )


def _buckets(diagnosis: Mapping[str, Any], section: str, what: str) -> list[tuple[str, dict[str, Keys]]]:
    """Return the keys of each bucket by characteristic, under the names of their rows."""
    return [
        (name, {f"{what}, {name} {bucket}": (section, name, bucket) for bucket in buckets})
        for name, buckets in diagnosis[section].items()
        if isinstance(buckets, Mapping) and name not in NOT_BUCKETS
    ]


def _values(diagnoses: Sequence[Mapping[str, Any]], keys: Keys) -> list[Value]:
    """Return a number of each diagnosis, and of two their difference."""
    values = [_at(one, keys) for one in diagnoses]
    known = [value for value in values if value is not None]
    return [*values, *([known[1] - known[0] if len(known) == 2 else None] if len(diagnoses) > 1 else [])]


def _at(diagnosis: Mapping[str, Any], keys: Keys) -> float | None:
    value: Any = diagnosis
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, int | float) else None
