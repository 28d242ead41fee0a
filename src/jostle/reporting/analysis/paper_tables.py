"""Tables of runs in LaTeX, in the layouts of three papers: THUMOS14-C, Mini Kinetics-C and UCF101-P.

Models down, numbers across under one or two lines of headings, the best in bold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

import numpy as np

from jostle.core.tables import format_value, latex_escape, latex_row
from jostle.core.types.columns import Floats
from jostle.errors import DataError
from jostle.evaluation.recipes.recipe import CLEAN, benchmarks
from jostle.evaluation.results.comparison import Standing, chance_of
from jostle.evaluation.results.pm_k import offset_errors
from jostle.evaluation.results.run_analysis import Estimate, RunAnalysis, estimate
from jostle.io.files.atomic import write_text
from jostle.metrics.robustness import split_cell
from jostle.reporting.analysis.cell_tables import offsets_table
from jostle.reporting.analysis.labels import benchmark_title, run_names, short_name
from jostle.reporting.published.table import published

WIDE = 15  # columns of numbers side by side; what is beyond goes below
NARROW = 6  # up to here a table needs no shrinking
PACKAGES = ("booktabs", "graphicx")
MISSING = "--"


@dataclass(frozen=True)
class NumberColumn:
    """Column of numbers in a LaTeX table."""

    head: str  # its heading
    values: tuple[Estimate, ...]  # one a row, fractions
    group: str = ""  # a heading over this column and its neighbours of the same group; empty for none
    barred: tuple[int, ...] = ()  # rows that are never the best, whatever they have


@dataclass(frozen=True)
class Layout:
    """A table for a paper."""

    file: str  # its name, without the ending
    caption: str  # in TeX
    texts: tuple[str, ...]  # headings of the columns of text
    rows: tuple[tuple[str, ...], ...]  # texts of each row
    numbers: tuple[NumberColumn, ...]  # the columns after them; higher is better in each
    # Headings between the rows, each with the number of the row that it stands above
    parts: tuple[tuple[str, int], ...] = ()

    def latex(self, *, intervals: bool = False) -> str:
        """A float with caption and label; numbers are percentages with two digits, before small intervals if wanted."""
        blocks = [list(block) for block in self._blocks()]
        wide = max(map(len, blocks))
        lines: list[str] = []
        for block in blocks:
            lines += [r"\midrule" if lines else r"\toprule", *self._heads(block, wide), r"\midrule"]
            columns = [_headed(number, intervals) for number in block]
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


def _headed(number: NumberColumn, intervals: bool) -> list[str]:
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


PREVIEW = "tables"


@dataclass(frozen=True)
class _Numbers:
    """A run as two arrays; the first row of each is what was measured, the others are draws."""

    clean: Floats  # (1 + draws,)
    cells: Floats  # (1 + draws, cells), NaN where the run lacks the cell

    @classmethod
    def of(cls, analysis: RunAnalysis, cells: Sequence[str]) -> _Numbers:
        whole = np.vstack([analysis.value, analysis.drawn])
        columns = [whole[:, analysis.place[cell]] if cell in analysis.place else whole[:, 0] * np.nan for cell in cells]
        return cls(whole[:, analysis.place[CLEAN]], np.stack(columns, axis=1) if columns else whole[:, :0])

    def mean(self, at: Sequence[int]) -> Floats:
        """Return the mean over cells."""
        return self.cells[:, at].mean(axis=1) if len(at) else self.clean * np.nan

    def relative(self, at: Sequence[int]) -> Floats:
        """Return the mean score relative to the clean one, or no value where the latter is 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.clean > 0, self.mean(at) / self.clean, np.nan)

    def absolute(self, at: Sequence[int]) -> Floats:
        """1 less what is lost."""
        return 1 - (self.clean - self.mean(at))


@dataclass(frozen=True)
class _Book:
    """Runs of one benchmark, and which of its cells mean what."""

    analyses: tuple[RunAnalysis, ...]  # of the same videos and draws
    cells: tuple[str, ...]  # those that count in any run, in the benchmark's order
    groups: tuple[str, ...]  # the group of each in the recipe

    @cached_property
    def numbers(self) -> list[_Numbers]:
        """Return the numbers of each run."""
        return [_Numbers.of(analysis, self.cells) for analysis in self.analyses]

    @cached_property
    def corruptions(self) -> dict[str, list[int]]:
        """Return the cell indices of each corruption."""
        indices: dict[str, list[int]] = {}
        for i, cell in enumerate(self.cells):
            indices.setdefault(split_cell(cell)[0], []).append(i)
        return indices

    @cached_property
    def families(self) -> dict[str, list[int]]:
        """Return the cell indices of each group, or of each corruption if there is only one group."""
        indices: dict[str, list[int]] = {}
        for i, group in enumerate(self.groups):
            indices.setdefault(group, []).append(i)
        return indices if len(indices) > 1 else {short_name(name): at for name, at in self.corruptions.items()}

    @property
    def whole(self) -> list[int]:
        """Return the indices of all cells."""
        return list(range(len(self.cells)))

    def family_of(self, at: Sequence[int]) -> str:
        """Return the common group of these cells; empty if they differ, or if there is only one group."""
        groups = {self.groups[i] for i in at}
        return groups.pop() if len(groups) == 1 and len(set(self.groups)) > 1 else ""

    @cached_property
    def guessers(self) -> tuple[int, ...]:
        """Return the runs at chance level, whose relative robustness has no meaning."""
        return tuple(i for i, analysis in enumerate(self.analyses) if Standing.of(analysis).guesses)

    def cell_column(self, head: str, cell: str, group: str = "") -> NumberColumn:
        """A column of the scores of one cell."""
        estimates = tuple(one.of(cell) if cell in one.place else Estimate(None) for one in self.analyses)
        return NumberColumn(head, estimates, group)

    def column(self, head: str, values: Sequence[Floats], group: str = "", *, left: bool = False) -> NumberColumn:
        """A column from the (1 + draws,) values of every run; `left` if it is of what is left of the clean score."""
        estimates = tuple(estimate(float(value[0]), value[1:]) for value in values)
        return NumberColumn(head, estimates, group, self.guessers if left else ())

    @property
    def title(self) -> str:
        """The benchmark as papers print it, its metric, and what part of it was run if not all, in TeX."""
        first = self.analyses[0]
        listed = first.record.about.content.cells
        facts = [latex_escape(str(first.record.scores.metric)), r"\%"]
        if chance := chance_of(first).text:
            facts.append(chance)
        parts = {
            "cells": (len(self.cells), sum(one.counted for one in listed)),
            "videos": (len(first.videos), first.record.scores.coverage.of),
        }
        covered = first.record.scores.coverage
        if covered.classes is not None and covered.of_classes is not None:
            parts["classes"] = (covered.classes, covered.of_classes)
        facts += [f"{has} of {of} {what}" for what, (has, of) in parts.items() if has < of]
        return f"{latex_escape(benchmark_title(first.record))} ({', '.join(facts)})"

    def layout(self, file: str, caption: str, numbers: Sequence[NumberColumn]) -> Layout:
        """A table of all runs; the features of detectors have a column where they are known."""
        records = [analysis.record for analysis in self.analyses]
        names = run_names(records)
        features = [record.about.extractor for record in records]
        if not any(features):
            return Layout(file, caption, ("Model",), tuple((name,) for name in names), tuple(numbers))
        rows = tuple((name, feature or "") for name, feature in zip(names, features, strict=True))
        return Layout(file, caption, ("Model", "Feature"), rows, tuple(numbers))


def paper_layouts(analyses: Sequence[RunAnalysis]) -> list[Layout]:
    """Every layout that the cells of these runs fill; analyses are of the same videos and draws."""
    listed = analyses[0].record.about.content.cells
    counted = {cell for analysis in analyses for cell in analysis.counted}
    pairs = [(one.cell, one.group) for one in listed if one.cell in counted]
    if not pairs:
        return []
    names, groups = zip(*pairs, strict=True)
    book = _Book(tuple(analyses), names, groups)
    return [
        _clean_and_corrupted(book),
        _levels(book),
        _mean_performance(book),
        *_gammas(book),
        *_beside_published(book),
    ]


def _clean_and_corrupted(book: _Book) -> Layout:
    """Table 1 of the THUMOS14-C paper."""
    columns = [
        book.cell_column("Clean", CLEAN),
        book.column("Corrupted", [run.mean(book.whole) for run in book.numbers]),
        book.column("Relative robustness", [run.relative(book.whole) for run in book.numbers], left=True),
    ]
    caption = f"Clean and corrupted performance and relative robustness on {book.title}."
    return book.layout("thumos14-c-table-1", caption, columns)


def _beside_published(book: _Book) -> list[Layout]:
    """Return tables 1 and 2 of the THUMOS14-C paper with the runs below, if all used the same corruptions.

    Nothing is ranked across: other data, other weights. Bold is the best of the runs.
    """
    if list(book.cells) != [cell.name for cell in benchmarks["thumos14-c"].cells if cell.counted]:
        return []
    heads = {"Clean": "clean", "Corrupted": "corrupted", "Relative robustness": "relative"}
    printed = [published["thumos14-c/table-1"], published["thumos14-c/table-2"]]
    rows = [row for table in printed for row in table.rows]
    own = _clean_and_corrupted(book)
    texts = [(*(row.labels[label] for label in ("model", "feature", "training")),) for row in rows]
    texts += [(*row, *[""] * (3 - len(row))) for row in own.rows]
    numbers = []
    for column in own.numbers:
        estimates = [Estimate(printed[0].fraction(row.values[heads[column.head]])) for row in rows]
        barred = (*range(len(rows)), *(len(rows) + i for i in column.barred))
        numbers.append(NumberColumn(column.head, (*estimates, *column.values), barred=barred))
    parts, at = [], 0
    for table in printed:
        parts.append((f"{benchmarks[table.benchmarks[0]].title}, as printed ({table.source})", at))
        at += len(table.rows)
    parts.append((f"{benchmark_title(book.analyses[0].record)}, measured", at))
    caption = f"Published results, and runs on {book.title}. They are of other data and cannot be compared across."
    layout = Layout(
        "thumos14-c-tables-1-2", caption, ("Model", "Feature", "Training"), tuple(texts), tuple(numbers), tuple(parts)
    )
    return [layout]


def _levels(book: _Book) -> Layout:
    """Table C of the THUMOS14-C paper."""
    columns = []
    for corruption, at in book.corruptions.items():
        for i in at:
            severity = split_cell(book.cells[i])[1]
            head = "" if severity is None else f"L{severity}"
            columns.append(book.cell_column(head, book.cells[i], short_name(corruption).capitalize()))
    caption = f"Every corruption at every level on {book.title}."
    return book.layout("thumos14-c-table-c", caption, columns)


def _mean_performance(book: _Book) -> Layout:
    """Table 1 of the Mini Kinetics-C paper: mPC is the mean over corruptions of the mean over severities."""
    mpc = [np.mean([run.mean(at) for at in book.corruptions.values()], axis=0) for run in book.numbers]
    with np.errstate(invalid="ignore", divide="ignore"):
        rpc = [np.where(run.clean > 0, mean / run.clean, np.nan) for run, mean in zip(book.numbers, mpc, strict=True)]
    columns = [
        book.cell_column("Clean", CLEAN),
        book.column("mPC", mpc),
        book.column("rPC", rpc, left=True),
    ]
    for corruption, at in book.corruptions.items():
        means = [run.mean(at) for run in book.numbers]
        columns.append(book.column(short_name(corruption), means, book.family_of(at).capitalize()))
    caption = f"Clean performance, mPC, rPC, and the mean over severities under each corruption, on {book.title}."
    return book.layout("mini-kinetics-c-table-1", caption, columns)


def _gammas(book: _Book) -> list[Layout]:
    """The tables of absolute and relative robustness of the UCF101-P paper."""
    parts = {name.capitalize(): at for name, at in book.families.items()} | {"Mean": book.whole}
    absolute = [book.column(name, [run.absolute(at) for run in book.numbers], left=True) for name, at in parts.items()]
    relative = [book.column(name, [run.relative(at) for run in book.numbers], left=True) for name, at in parts.items()]
    over = "The mean is over all cells."
    return [
        book.layout("ucf101-p-absolute", rf"Absolute robustness $\gamma^a$ on {book.title}. {over}", absolute),
        book.layout("ucf101-p-relative", rf"Relative robustness $\gamma^r$ on {book.title}. {over}", relative),
    ]


def write_paper_tables(analyses: Sequence[RunAnalysis], folder: Path, *, intervals: bool = False) -> list[Path]:
    """Write one file a layout, and a page that sets them all; files of those names are replaced.

    Args:
        intervals: set them behind the numbers.

    Raises:
        DataError: if no cell counts, so that there is nothing to set.
    """
    files = {layout.file: layout.latex(intervals=intervals) for layout in paper_layouts(analyses)}
    names = run_names([analysis.record for analysis in analyses])
    rows_of_offsets = [
        (name, one) for name, analysis in zip(names, analyses, strict=True) for one in offset_errors(analysis.record)
    ]
    if rows_of_offsets:
        files["pm-k"] = "\n".join(
            [r"\begin{table}", r"\centering", offsets_table(rows_of_offsets).latex(), r"\end{table}", ""]
        )
    if not files:
        raise DataError(f"{analyses[0].record.folder}: no cell counts there, so there is no table of them")
    files[PREVIEW] = document(list(files))
    folder.mkdir(parents=True, exist_ok=True)
    layout = []
    for name, text in files.items():
        write_text(folder / f"{name}.tex", [text])
        layout.append(folder / f"{name}.tex")
    return layout
