"""A table of findings, and the same table as CSV, Markdown and LaTeX; text of strangers stays text in each."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from jostle.core.formatting import between, markdown_escape, one_line, percent, signed

Kind = Literal["text", "count", "decimal", "percent", "points", "interval"]
Value = str | int | float | tuple[float, float] | None

NONE = "n/a"
_FORMULA = re.compile(r"[=+\-@|%]")
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


@dataclass(frozen=True)
class Column:
    """Column of a table: its name and the kind of its values.

    Attributes:
        name: its heading.
        kind: `text`, `count` (a whole number), `decimal` (a plain number), `percent` (a fraction, displayed as a
            percentage), `points` (a signed difference of fractions) or `interval` (two fractions).
    """

    name: str
    kind: Kind = "text"


@dataclass(frozen=True)
class Table:
    """Table of values; fractions are displayed as percentages, None as `n/a`.

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

    def texts(self) -> list[list[str]]:
        """Return the cells of every row as text."""
        return [[format_value(value, column.kind) for value, column in self._pairs(row)] for row in self.rows]

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
        rules = [":---" if column.kind == "text" else "---:" for column in self.columns]
        lines = [[markdown_escape(column.name) for column in self.columns], None, *self.texts()]
        made = []
        for line in lines:
            if line is None:
                made.append(f"|{'|'.join(rules)}|")
            else:
                made.append(f"| {' | '.join(line if line is lines[0] else map(markdown_escape, line))} |")
        return "\n".join(made)

    def latex(self, *, bold: Sequence[tuple[int, int]] = ()) -> str:
        """A `tabular` with the rules of booktabs; `bold` has (row, column) of what is set in bold."""
        form = "".join("l" if column.kind == "text" else "r" for column in self.columns)
        lines = [
            rf"\begin{{tabular}}{{{form}}}",
            r"\toprule",
            latex_row([latex_escape(c.name) for c in self.columns]),
            r"\midrule",
        ]
        for r, row in enumerate(self.texts()):
            cells = [latex_escape(text) for text in row]
            for c, column in enumerate(self.columns):
                if column.kind != "text":
                    cells[c] = cells[c].replace("-", "$-$")  # a minus is no hyphen
            for c in range(len(cells)):
                if (r, c) in bold:
                    cells[c] = rf"\textbf{{{cells[c]}}}"
            lines.append(latex_row(cells))
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])

    def _pairs(self, row: tuple[Value, ...]) -> zip[tuple[Value, Column]]:
        return zip(row, self.columns, strict=True)


def format_value(value: Value, kind: Kind, digits: int = 2) -> str:
    """Format a value for display.

    >>> format_value(0.6833, "percent"), format_value(-0.01, "points")
    ('68.33', '-1.00')
    >>> format_value((0.1, 0.25), "interval"), format_value(None, "count")
    ('[10.00, 25.00]', 'n/a')
    >>> format_value(-1e-9, "points"), format_value((-1e-9, 0.1), "interval")
    ('+0.00', '[0.00, 10.00]')
    >>> format_value(0.12345, "decimal")
    '0.123'
    """
    if value is None:
        return NONE
    if isinstance(value, tuple):
        return between(value, digits)
    if isinstance(value, str) or kind == "text":
        return str(value)
    if kind == "count":
        return f"{value:g}"
    if kind == "decimal":
        return f"{value:.3f}"
    return signed(value, digits) if kind == "points" else percent(value, digits)


def csv_escape(text: str) -> str:
    """Text of one line that no spreadsheet takes for a formula.

    >>> csv_escape("=1+1"), csv_escape("squat")
    ("'=1+1", 'squat')
    """
    line = one_line(text)
    return f"'{line}" if _FORMULA.match(line.lstrip()) else line


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


def _csv_headings(column: Column) -> list[str]:
    unit = {"percent": " (%)", "points": " (points)", "interval": " (%)"}.get(column.kind, "")
    if column.kind == "interval":
        return [csv_escape(f"{column.name} low{unit}"), csv_escape(f"{column.name} high{unit}")]
    return [csv_escape(column.name + unit)]


def _csv_cells(value: Value, kind: Kind) -> list[str]:
    if kind == "interval":
        ends = value if isinstance(value, tuple) else ("", "")
        return [f"{100 * end:.12g}" if isinstance(end, float) else "" for end in ends]
    if value is None:
        return [""]
    if isinstance(value, str):
        return [csv_escape(value)]
    return [f"{100 * value:.12g}" if kind in ("percent", "points") and not isinstance(value, tuple) else f"{value}"]
