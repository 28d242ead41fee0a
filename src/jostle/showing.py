"""How a result shows itself in a notebook: a small table in HTML, and columns as a data frame; knows nothing of either.

Whatever it is given is text and is escaped. Colours are the page's own, so that light and dark both suit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from jostle.errors import MissingExtra

MOST = 60  # rows that are shown; more than that belongs into a data frame
_CELL = "padding:.15em .8em .15em 0;border-bottom:1px solid rgba(128,128,128,.35);background:none"


def html_table(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, notes: Sequence[str] = (), folded: bool = False
) -> str:
    """A table under a title: the first column to the left, the others to the right.

    Args:
        notes: what has to be known to read it.
        folded: show the rows only when they are asked for.

    >>> "&lt;b&gt;" in html_table("<b>", ["a"], [["<i>"]])
    True
    """
    made = [_row("th", heads, strong=True), *(_row("td", row) for row in rows[:MOST])]
    more = f"<p>{len(rows) - MOST} more rows; to_frame() has them all</p>" if len(rows) > MOST else ""
    table = f'<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">{"".join(made)}</table>{more}'
    if folded:
        table = f"<details><summary>{len(rows)} rows</summary>{table}</details>"
    said = "".join(f'<p style="opacity:.75;margin:.3em 0">{escape(note)}</p>' for note in notes)
    return f'<div class="jostle"><p style="margin:.3em 0"><b>{escape(title)}</b></p>{table}{said}</div>'


def _row(kind: str, cells: Sequence[str], *, strong: bool = False) -> str:
    weight = "font-weight:bold" if strong else "font-weight:normal"
    made = []
    for i, cell in enumerate(cells):
        side = "right" if i else "left"
        made.append(f'<{kind} style="text-align:{side};{weight};{_CELL}">{escape(str(cell))}</{kind}>')
    return f"<tr>{''.join(made)}</tr>"


def percents(value: float | None, ends: Sequence[float] | None = None, digits: int = 2) -> str:
    """A fraction as a percentage, with its interval behind it.

    >>> percents(0.5, (0.4, 0.6), 1), percents(None)
    ('50.0 [40.0, 60.0]', 'n/a')
    """
    if value is None:
        return "n/a"
    said = f"{100 * value:z.{digits}f}"
    return said if ends is None else f"{said} [{100 * ends[0]:z.{digits}f}, {100 * ends[1]:z.{digits}f}]"


def progress_html(what: str, done: int, total: int) -> str:
    """A bar with words beside it.

    >>> "3 of 4" in progress_html("counting", 3, 4)
    True
    """
    return f'<label>{escape(what)} <progress value="{done}" max="{total}"></progress> {done} of {total}</label>'


def data_frame(columns: Mapping[str, Any]) -> Any:
    """A pandas data frame.

    Raises:
        MissingExtra: if pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise MissingExtra("a data frame (pandas)", "notebook") from None
    return pandas.DataFrame(dict(columns))
