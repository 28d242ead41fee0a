"""Text tables: aligned columns, percentages, and a bar chart of each corruption's severities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jostle.cli import console

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
    from jostle.reporting.analysis.grid import grid_of

    value = {cell["cell"]: cell["value"] for cell in scores["cells"]}
    if not value:
        return []
    clean, low = scores["clean"], min(scores["clean"] / 2, *value.values())
    rows = [["", "", "mean", "of clean"]]
    for row in grid_of(list(value), list(value)).rows:
        means = scores["by_corruption"][row.corruption]
        bars = sparkline([clean, *(value[cell] for cell in row.cells.values())], low, clean)
        rows.append([console.escape(row.name), bars, percent(means["mean"]), percent(means["relative"])])
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


def percent(value: float | None, digits: int = 2) -> str:
    """A fraction as a percentage, `n/a` where there is none.

    >>> percent(0.61534), percent(None)
    ('61.53', 'n/a')
    >>> percent(-1e-9)
    '0.00'
    """
    return "n/a" if value is None else f"{100 * value:z.{digits}f}"


def between(pair: tuple[float, float] | None, digits: int = 2) -> str:
    """An interval of fractions as percentages, empty where there is none."""
    return "" if pair is None else f"[{percent(pair[0], digits)}, {percent(pair[1], digits)}]"


def signed(value: float | None, digits: int = 2) -> str:
    """A difference in points, with its sign."""
    return "n/a" if value is None else f"{100 * value:+z.{digits}f}"
