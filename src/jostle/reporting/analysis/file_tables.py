"""Scores and diagnoses of prediction files as tables, one file or two side by side, ready for any format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jostle.core.tables import Column, Table, Value
from jostle.errors import BadValue
from jostle.metrics.score import Comparison, Score


def file_names(paths: Sequence[Path], text: str | None = None) -> list[str]:
    """Return display names of files: given by the user, separated by commas, or taken from the paths.

    >>> file_names([Path("a/clean.json"), Path("b/clean.json")]), file_names([Path("x.json")], "ours")
    (['a/clean', 'b/clean'], ['ours'])
    """
    if text is not None:
        names = [name.strip() for name in text.split(",")]
        if len(names) != len(paths) or not all(names) or len(set(names)) < len(names):
            raise BadValue(f"give {len(paths)} names with commas between them, each another; got {text!r}")
        return names
    stems = [path.stem for path in paths]
    if len(set(stems)) < len(stems):
        stems = [f"{path.resolve().parent.name}/{path.stem}" for path in paths]
    return stems if len(set(stems)) == len(stems) else [f"{stem} ({i})" for i, stem in enumerate(stems, 1)]


def scores_table(
    names: Sequence[str], scores: Sequence[Score], both: Comparison | None = None, *, per_class: bool = False
) -> Table:
    """Tabulate mean average precision at every threshold and on average, optionally by class."""
    first = scores[0]
    interval = both.interval if both is not None else first.interval
    columns = [Column(""), *(Column(name, "percent") for name in names)]
    columns += [Column("change", "points")] if both is not None else []
    columns += [Column("95 %", "interval")] if interval is not None else []

    def row(what: str, values: Sequence[float], ends: tuple[float, float] | None) -> tuple[Value, ...]:
        change = [values[1] - values[0]] if both is not None else []
        return (what, *values, *change, *([ends] if interval is not None else []))

    rows = [
        row(
            f"mAP at tIoU {tiou:g}",
            [float(one.map[i]) for one in scores],
            None if interval is None else _ends(interval.map[i]),
        )
        for i, tiou in enumerate(first.tious)
    ]
    rows.append(
        row(
            "average mAP",
            [one.average_map for one in scores],
            None if interval is None else _ends(interval.average_map),
        )
    )
    if per_class:
        for name in first.per_class:
            rows.append(row(f"AP of {name}", [float(one.per_class[name].mean()) for one in scores], None))
    return Table(f"{first.protocol} protocol", tuple(columns), tuple(rows))


def _ends(pair: Any) -> tuple[float, float]:
    return float(pair[0]), float(pair[1])


def diagnosis_table(names: Sequence[str], diagnoses: Sequence[Mapping[str, Any]]) -> Table:
    """A diagnosis, a row a number: scores, misses, what errors cost, then every bucket."""
    first = diagnoses[0]
    paths: list[tuple[str, tuple[str, ...]]] = [
        ("average mAP", ("average_map",)),
        ("average mAP_N", ("average_map_n",)),
        ("average mAP_N, top-10G", ("top_10g", "average_map_n")),
        ("missed instances", ("false_negatives", "overall")),
    ]
    for kind in first["false_positives"]["impact"]:
        paths.append((f"cost of {kind.replace('_', ' ')}", ("false_positives", "impact", kind)))
    for section, heading in (("sensitivity", "mAP_N"), ("false_negatives", "missed")):
        for name, buckets in first[section].items():
            if isinstance(buckets, Mapping) and name not in ("share", "pairs"):
                paths += [(f"{heading}, {name} {bucket}", (section, name, bucket)) for bucket in buckets]
    rows: list[tuple[Value, ...]] = []
    for what, keys in paths:
        values = [_at(one, keys) for one in diagnoses]
        known = [value for value in values if value is not None]
        change = [known[1] - known[0] if len(known) == 2 else None] if len(diagnoses) > 1 else []
        rows.append((what, *values, *change))
    columns = (Column(""), *(Column(name, "percent") for name in names))
    return Table(
        f"{first['style']} style",
        (*columns, *([Column("change", "points")] if len(diagnoses) > 1 else [])),
        tuple(rows),
    )


def _at(diagnoses: Mapping[str, Any], keys: tuple[str, ...]) -> float | None:
    place: Any = diagnoses
    for key in keys:
        place = place.get(key) if isinstance(place, Mapping) else None
    return place if isinstance(place, int | float) else None
