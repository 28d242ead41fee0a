"""Tables as text: aligned columns, numbers as percentages."""

from __future__ import annotations

from collections.abc import Sequence


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
