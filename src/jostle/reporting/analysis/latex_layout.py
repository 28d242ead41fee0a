"""A table as papers print it: models down, numbers across under one or two lines of headings, the best in bold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from jostle.reporting.analysis.resampling import Estimate
from jostle.reporting.analysis.tables import format_value, latex_escape, latex_row

WIDE = 15  # columns of numbers side by side; what is beyond goes below
NARROW = 6  # up to here a table needs no shrinking
PACKAGES = ("booktabs", "graphicx")
MISSING = "--"


@dataclass(frozen=True)
class NumberColumn:
    """Column of numbers in a LaTeX table.

    Attributes:
        head: its heading.
        values: one a row, fractions.
        group: a heading over this column and its neighbours of the same group; empty for none.
        barred: rows that are never the best, whatever they have.
    """

    head: str
    values: tuple[Estimate, ...]
    group: str = ""
    barred: tuple[int, ...] = ()


@dataclass(frozen=True)
class Layout:
    """A table for a paper.

    Attributes:
        file: its name, without the ending.
        caption: in TeX.
        texts: headings of the columns of text.
        rows: texts of each row.
        numbers: the columns after them; higher is better in each.
        parts: headings between the rows, each with the number of the row that it stands above.
    """

    file: str
    caption: str
    texts: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[NumberColumn, ...]
    parts: tuple[tuple[str, int], ...] = ()

    def latex(self, *, intervals: bool = False) -> str:
        """A float with caption and label; numbers are percentages with two digits.

        Args:
            intervals: set them behind the numbers, small.
        """
        blocks = [list(block) for block in self._blocks()]
        wide = max(map(len, blocks))
        lines: list[str] = []
        for block in blocks:
            lines += [r"\midrule" if lines else r"\toprule", *self._heads(block, wide), r"\midrule"]
            columns = [_set(number, intervals) for number in block]
            for i, texts in enumerate(self.rows):
                lines += self._part(i, len(self.texts) + wide)
                cells = [*map(latex_escape, texts), *(column[i] for column in columns)]
                lines.append(latex_row([*cells, *[""] * (wide - len(block))]))
        form = "l" * len(self.texts) + "r" * wide
        body = [rf"\begin{{tabular}}{{{form}}}", *lines, r"\bottomrule", r"\end{tabular}"]
        if wide > NARROW or intervals:
            body = [r"\resizebox{\linewidth}{!}{%", *body, "}"]
        star = "*" if wide > NARROW else ""
        return "\n".join(
            [
                rf"% needs \usepackage{{{','.join(PACKAGES)}}}",
                rf"\begin{{table{star}}}",
                r"\centering",
                rf"\caption{{{self.caption}}}",
                rf"\label{{tab:{self.file}}}",
                *body,
                rf"\end{{table{star}}}",
                "",
            ]
        )

    def _part(self, row: int, span: int) -> list[str]:
        """The heading above a row, if there is one, with a line between it and the part before."""
        heads = [title for title, at in self.parts if at == row]
        lines = [rf"\multicolumn{{{span}}}{{l}}{{\textit{{{latex_escape(title)}}}}} \\" for title in heads]
        return [r"\midrule", *lines] if lines and row else lines

    def _blocks(self) -> Iterator[list[NumberColumn]]:
        """Columns that stand side by side: groups are kept whole unless one is wider than a page."""
        block: list[NumberColumn] = []
        for _, members in groupby(self.numbers, key=lambda number: number.group):
            columns = list(members)
            if block and len(block) + len(columns) > WIDE:
                yield block
                block = []
            while len(columns) > WIDE:
                yield columns[:WIDE]
                columns = columns[WIDE:]
            block += columns
        if block:
            yield block

    def _heads(self, block: Sequence[NumberColumn], wide: int) -> list[str]:
        rest = [""] * (wide - len(block))
        lines = []
        if any(number.group for number in block):
            heads, rules = [""] * len(self.texts), []
            at = len(self.texts) + 1
            for group, members in groupby(block, key=lambda number: number.group):
                span = len(list(members))
                heads.append(rf"\multicolumn{{{span}}}{{c}}{{{latex_escape(group)}}}")
                if group:
                    rules.append(rf"\cmidrule(lr){{{at}-{at + span - 1}}}")
                at += span
            lines = [latex_row([*heads, *rest]), "".join(rules)]
        names = [latex_escape(name) for name in (*self.texts, *(number.head for number in block))]
        return [*lines, latex_row([*names, *rest])]


def document(files: Sequence[str]) -> str:
    """A page that sets every table, to look at them."""
    return "\n".join(
        [
            r"\documentclass{article}",
            r"\usepackage[T1]{fontenc}",
            *(rf"\usepackage{{{package}}}" for package in PACKAGES),
            r"\begin{document}",
            *(rf"\input{{{file}}}" for file in files),
            r"\end{document}",
            "",
        ]
    )


def _set(number: NumberColumn, intervals: bool) -> list[str]:
    """A column in TeX; the best is bold if it is the best of several, as they are printed."""
    values = number.values
    texts = [MISSING if one.value is None else format_value(one.value, "percent") for one in values]
    known = [float(text) for i, text in enumerate(texts) if text != MISSING and i not in number.barred]
    cells = []
    for i, (one, text) in enumerate(zip(values, texts, strict=True)):
        best = len(values) > 1 and text != MISSING and i not in number.barred and float(text) == max(known)
        ends = rf" {{\scriptsize {format_value(one.interval, 'interval')}}}" if intervals and one.interval else ""
        cells.append((rf"\textbf{{{text}}}" if best else text) + ends)
    return cells
