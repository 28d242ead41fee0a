"""Scores, diagnoses and other tables as lines of text: aligned columns, and a bar chart of severities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jostle.core.formatting import escape, percent

BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], low: float, high: float) -> str:
    """A bar a value, the lowest at `low` and the highest at `high`.

    >>> sparkline([0.8, 0.7, 0.4], 0.4, 0.8)
    '█▆▁'
    """
    span = high - low
    shares = [(value - low) / span if span > 0 else 1.0 for value in values]  # a tiny span makes them infinite
    return "".join(BARS[round(min(max(share, 0.0), 1.0) * (len(BARS) - 1))] for share in shares)


def summary_lines(scores: dict[str, Any]) -> list[str]:
    """The counted corruptions of a run, one line each: bars, the mean over severities, and what that is of clean.

    The highest bar is the clean value, the lowest half of it, or the worst cell where that is lower: so a small loss
    looks small.
    """
    from jostle.reporting.analysis.labels import grid_of

    value = {cell["cell"]: cell["value"] for cell in scores["cells"]}
    if not value:
        return []
    clean, low = scores["clean"], min(scores["clean"] / 2, *value.values())
    rows = [["", "", "mean", "of clean"]]
    for row in grid_of(list(value), list(value)).rows:
        means = scores["by_corruption"][row.corruption]
        bars = sparkline([clean, *(value[cell] for cell in row.cells.values())], low, clean)
        rows.append([escape(row.name), bars, percent(means["mean"]), percent(means["relative"])])
    wide = max(len(row[1]) for row in rows)
    rows = [[row[0], row[1].ljust(wide), *row[2:]] for row in rows]
    return [*lines_of(rows), f"bars: clean and each severity, from {percent(low)} to {percent(clean)}"]


def lines_of(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as aligned lines: the first column to the left, the others to the right.

    >>> lines_of([["tIoU", "mAP"], ["0.5", "61.53"]])
    ['tIoU    mAP', '0.5   61.53']
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if not i else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
