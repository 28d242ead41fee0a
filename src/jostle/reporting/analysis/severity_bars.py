"""Corruptions of a run as bars of text, a bar a severity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jostle.core.formatting import percent
from jostle.core.tables import Column, Table
from jostle.reporting.analysis.labels import grid_of

BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], low: float, high: float) -> str:
    """Return a bar a value, the lowest at `low` and the highest at `high`.

    >>> sparkline([0.8, 0.7, 0.4], 0.4, 0.8)
    '█▆▁'
    """
    span = high - low
    shares = [(value - low) / span if span > 0 else 1.0 for value in values]  # a tiny span makes them infinite
    return "".join(BARS[round(min(max(share, 0.0), 1.0) * (len(BARS) - 1))] for share in shares)


def severity_bars(scores: dict[str, Any]) -> Table:
    """Return the counted corruptions of a run, a row each: bars, the mean over severities, and what that is of clean.

    The highest bar is the clean value, the lowest half of it, or the worst cell where that is lower: so a small loss
    looks small.
    """
    value = {cell["cell"]: cell["value"] for cell in scores["cells"]}
    clean, low = scores["clean"], min([scores["clean"] / 2, *value.values()])
    rows = []
    for row in grid_of(list(value), list(value)).rows:
        means = scores["by_corruption"][row.corruption]
        bars = sparkline([clean, *(value[cell] for cell in row.cells.values())], low, clean)
        rows.append((row.name, bars, means["mean"], means["relative"]))
    columns = (Column("", key="corruption"), Column("", key="bars"), Column("mean", "percent"))
    note = f"bars: clean and each severity, from {percent(low)} to {percent(clean)}"
    return Table("", (*columns, Column("of clean", "percent")), tuple(rows), (note,))
