"""A table of values, as text, CSV, Markdown, LaTeX, HTML and a data frame; text of strangers stays text in each."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape as html_escape
from pathlib import Path
from typing import Any, Literal

from jostle.core.formatting import between, escape, markdown_escape, one_line, percent, signed
from jostle.core.options import option
from jostle.errors import MissingExtra

Kind = Literal["text", "count", "decimal", "percent", "points", "interval", "mark", "decision"]
Tone = Literal["good", "bad", ""]
Value = str | int | float | tuple[float, float] | None

NONE = "n/a"
MARK = "*"  # of a row whose difference is significant
MAX_ROWS = 60  # of a table in a notebook; for more there is a data frame
_WORDS = ("text", "mark", "decision")  # kinds that are set to the left
_CELL = "padding:.15em .8em .15em 0;border-bottom:1px solid rgba(128,128,128,.35);background:none"
_FORMULA = re.compile(r"[=+\-@|%]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class TableOptions:
    """Files"""

    csv: Path | None = field(default=None, metadata=option("Write the numbers as a CSV table.", metavar="FILE"))
    latex: Path | None = field(default=None, metadata=option("Write a LaTeX table (booktabs).", metavar="FILE"))


@dataclass(frozen=True)
class Column:
    """Column of a table: its name and the kind of its values.

    Attributes:
        name: its heading.
        kind: `text`, `count` (a whole number), `decimal` (a plain number), `percent` (a fraction, displayed as a
            percentage), `points` (a signed difference of fractions), `interval` (two fractions), `mark` (whether the
            differences of a row are significant) or `decision` (`pass`, `fail` or `undecided`).
        digits: decimal places; by default two of a percentage and three of a plain number.
        key: its name in a data frame; by default `name`.
    """

    name: str
    kind: Kind = "text"
    digits: int | None = None
    key: str = ""


@dataclass(frozen=True)
class Table:
    """Table of values; fractions are displayed as percentages, None as `n/a`.

    Attributes:
        title: what it is about, in a line.
        notes: lines below it, which are needed to read it.

    >>> made = Table("Cells", (Column("cell"), Column("mAP", "percent")), (("fog_1", 0.5), ("=SUM(A1)", None)))
    >>> print(made.markdown())
    | cell | mAP |
    |:---|---:|
    | fog\\_1 | 50.00 |
    | =SUM(A1) | n/a |
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()

    def texts(self) -> list[list[str]]:
        """Return the cells of every row as text."""
        return [
            [format_value(value, column.kind, column.digits) for value, column in self._pairs(row)] for row in self.rows
        ]

    def tones(self) -> list[Tone]:
        """Return whether each row is good or bad news: a decision, or a difference that is significant."""
        return [_tone_of(tuple(self._pairs(row))) for row in self.rows]

    def lines(self) -> list[str]:
        """Return the headings and rows as aligned lines, words to the left and numbers to the right.

        >>> Table("", (Column("tIoU"), Column("mAP", "percent")), (("0.5", 0.6153),)).lines()
        ['tIoU  mAP %', '0.5   61.53']
        """
        rows = [[escape(cell) for cell in row] for row in [[_heading(one) for one in self.columns], *self.texts()]]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        left = [column.kind in _WORDS for column in self.columns]
        return [
            "  ".join(
                cell.ljust(width) if words else cell.rjust(width)
                for cell, width, words in zip(row, widths, left, strict=True)
            ).rstrip()
            for row in rows
        ]

    def text(self, paint: Callable[[str, Tone], str] | None = None) -> str:
        """Render the table as plain text, with its title and notes, without headings if there is no row.

        Args:
            paint: colours a row by its tone.
        """
        title = [escape(self.title)] if self.title else []
        head, *rows = self.lines() if self.rows else [""]
        if paint is not None:
            rows = [paint(row, tone) for row, tone in zip(rows, self.tones(), strict=True)]
        return "\n".join([*title, *([head] if head else []), *rows, *map(escape, self.notes)])

    def html(self, *, folded: bool = False) -> str:
        """Render the table for a notebook: at most `MAX_ROWS` rows, which `folded` hides until they are asked for."""
        rows = self.texts()
        lines = [self._html_row("th", [_heading(column) for column in self.columns])]
        lines += [self._html_row("td", row) for row in rows[:MAX_ROWS]]
        more = f"<p>{len(rows) - MAX_ROWS} more rows; a data frame has them all</p>" if len(rows) > MAX_ROWS else ""
        table = f'<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">{"".join(lines)}</table>'
        inner = table + more + html_notes(self.notes)
        title = html_escape(self.title)
        if folded:
            return f"<details><summary>{title or f'{len(rows)} rows'}</summary>{inner}</details>"
        return (f'<p style="margin:.3em 0"><b>{title}</b></p>' if title else "") + inner

    def frame(self) -> Any:
        """Return the rows as a pandas data frame: fractions, and both ends of an interval.

        Raises:
            MissingExtra: if pandas is not installed.
        """
        columns: dict[str, Any] = {}
        for i, column in enumerate(self.columns):
            name, values = column.key or column.name or "value", [row[i] for row in self.rows]
            if column.kind == "interval":
                ends = [value if isinstance(value, tuple) else (None, None) for value in values]
                columns |= {f"{name} low": [low for low, _ in ends], f"{name} high": [high for _, high in ends]}
            else:
                columns[name] = values
        return data_frame(columns)

    def csv(self) -> str:
        """With a heading; numbers in full, so that nothing is lost, and no text that a spreadsheet would run."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow([name for column in self.columns for name in _csv_headings(column)])
        for row in self.rows:
            writer.writerow([text for value, column in self._pairs(row) for text in _csv_cells(value, column.kind)])
        return buffer.getvalue()

    def markdown(self) -> str:
        """Render the table as GitHub Markdown."""
        rules = [":---" if column.kind in _WORDS else "---:" for column in self.columns]
        lines = [[markdown_escape(column.name) for column in self.columns], None, *self.texts()]
        made = []
        for line in lines:
            if line is None:
                made.append(f"|{'|'.join(rules)}|")
            else:
                made.append(f"| {' | '.join(line if line is lines[0] else map(markdown_escape, line))} |")
        return "\n".join(made)

    def latex(self) -> str:
        """Render the table as a `tabular` with the rules of booktabs; bold differences take the place of marks."""
        kept = [i for i, column in enumerate(self.columns) if column.kind != "mark"]
        columns = [self.columns[i] for i in kept]
        form = "".join("l" if column.kind in _WORDS else "r" for column in columns)
        lines = [rf"\begin{{tabular}}{{{form}}}", r"\toprule", latex_row([latex_escape(c.name) for c in columns])]
        lines.append(r"\midrule")
        marked = [any(one.kind == "mark" and value for value, one in self._pairs(row)) for row in self.rows]
        for texts, bold in zip(self.texts(), marked, strict=True):
            cells = []
            for column, text in zip(columns, (texts[i] for i in kept), strict=True):
                cell = latex_escape(text)
                if column.kind not in _WORDS:
                    cell = cell.replace("-", "$-$")  # a minus is no hyphen
                cells.append(rf"\textbf{{{cell}}}" if bold and column.kind == "points" else cell)
            lines.append(latex_row(cells))
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])

    def _html_row(self, tag: str, cells: Sequence[str]) -> str:
        weight = "bold" if tag == "th" else "normal"
        html = []
        for cell, column in zip(cells, self.columns, strict=True):
            side = "left" if column.kind in _WORDS else "right"
            html.append(f'<{tag} style="text-align:{side};font-weight:{weight};{_CELL}">{html_escape(cell)}</{tag}>')
        return f"<tr>{''.join(html)}</tr>"

    def _pairs(self, row: tuple[Value, ...]) -> zip[tuple[Value, Column]]:
        return zip(row, self.columns, strict=True)


def joined(tables: Sequence[Table]) -> Table:
    """Return one table of the rows of those that have the columns of the first."""
    first = tables[0]
    rows = tuple(row for table in tables if table.columns == first.columns for row in table.rows)
    return Table(first.title, first.columns, rows, first.notes)


def findings_table(title: str, altered: Sequence[str], lacking: Sequence[str]) -> Table:
    """Return a table of what a check found."""
    rows = (*(("altered", one) for one in altered), *(("lacking", one) for one in lacking))
    return Table(title, (Column("finding"), Column("what")), rows)


def format_value(value: Value, kind: Kind, digits: int | None = None) -> str:
    """Format a value for display.

    >>> format_value(0.6833, "percent"), format_value(-0.01, "points")
    ('68.33', '-1.00')
    >>> format_value((0.1, 0.25), "interval"), format_value(None, "count")
    ('[10.00, 25.00]', 'n/a')
    >>> format_value(-1e-9, "points"), format_value((-1e-9, 0.1), "interval")
    ('+0.00', '[0.00, 10.00]')
    >>> format_value(0.12345, "decimal"), format_value(1234567, "count"), format_value(True, "mark")
    ('0.123', '1234567', '*')
    """
    if kind == "mark":
        return MARK if value else ""
    if value is None:
        return NONE
    places = 2 if digits is None else digits
    if isinstance(value, tuple):
        return between(value, places)
    if isinstance(value, str) or kind in _WORDS:
        return str(value)
    if kind == "count":
        return str(value) if isinstance(value, int) else f"{value:g}"
    if kind == "decimal":
        return f"{value:.{3 if digits is None else digits}f}"
    return signed(value, places) if kind == "points" else percent(value, places)


def html_notes(notes: Sequence[str]) -> str:
    """Render lines below tables for a notebook."""
    return "".join(f'<p style="opacity:.75;margin:.3em 0">{html_escape(note)}</p>' for note in notes)


def data_frame(columns: Mapping[str, Any]) -> Any:
    """Create a pandas data frame.

    Raises:
        MissingExtra: if pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise MissingExtra("a data frame (pandas)", "notebook") from None
    return pandas.DataFrame(dict(columns))


def csv_escape(text: str) -> str:
    """Text of one line that no spreadsheet takes for a formula.

    >>> csv_escape("=1+1"), csv_escape("squat"), csv_escape("-1.00")
    ("'=1+1", 'squat', '-1.00')
    """
    line = one_line(text)
    return f"'{line}" if _FORMULA.match(line.lstrip()) and not _NUMBER.fullmatch(line) else line


def latex_escape(text: str) -> str:
    """Text that TeX sets as it stands.

    >>> print(latex_escape("50% of a_b"))
    50\\% of a\\_b
    """
    return "".join(_LATEX.get(letter, letter) for letter in one_line(text))


def latex_row(cells: Sequence[str]) -> str:
    """A line of a tabular from cells in TeX; TeX would take a bracket or star at its beginning for the line before.

    >>> print(latex_row(["[a]", "50.00"]))
    {}[a] & 50.00 \\\\
    """
    guard = "{}" if cells[0].lstrip().startswith(("[", "*")) else ""
    return guard + " & ".join(cells) + r" \\"


def _heading(column: Column) -> str:
    """Return the heading of a column where people read it: with the unit of a percentage."""
    return f"{column.name} %".lstrip() if column.kind == "percent" else column.name


def _tone_of(row: Sequence[tuple[Value, Column]]) -> Tone:
    for value, column in row:
        if column.kind == "decision" and value in ("pass", "fail"):
            return "good" if value == "pass" else "bad"
    change = next((value for value, column in row if column.kind == "points"), None)
    if isinstance(change, float) and any(column.kind == "mark" and value for value, column in row):
        return "good" if change > 0 else "bad"
    return ""


def _csv_headings(column: Column) -> list[str]:
    unit = {"percent": " (%)", "points": " (points)", "interval": " (%)"}.get(column.kind, "")
    if column.kind == "interval":
        return [csv_escape(f"{column.name} low{unit}"), csv_escape(f"{column.name} high{unit}")]
    return [csv_escape(column.name + unit)]


def _csv_cells(value: Value, kind: Kind) -> list[str]:
    if kind == "interval":
        ends = value if isinstance(value, tuple) else ("", "")
        return [f"{100 * end:.12g}" if isinstance(end, float) else "" for end in ends]
    if value is None or kind == "mark":
        return [MARK if value else ""]
    if isinstance(value, str):
        return [csv_escape(value)]
    return [f"{100 * value:.12g}" if kind in ("percent", "points") and not isinstance(value, tuple) else f"{value}"]
