"""Tables of papers as data, figures as they are printed, with their source; and the models that they report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from jostle.core.registry import Registry
from jostle.core.results import Result
from jostle.core.settings import read_settings
from jostle.core.tables import Column, Table
from jostle.errors import BadValue

Unit = Literal["percent", "share", "count"]


@dataclass(frozen=True)
class PublishedRow:
    """A line of a table.

    Attributes:
        labels: what it is about, such as `model`, `feature`, `training`, and `benchmark` where a table has several.
        values: figures as printed, by column; a column that is left empty is not there.
    """

    labels: Mapping[str, str]
    values: Mapping[str, float]

    @property
    def label(self) -> str:
        """Description of the row."""
        return ", ".join(text for key, text in self.labels.items() if text and key != "benchmark")


@dataclass(frozen=True)
class PublishedTable(Result):
    """A table of a paper.

    Attributes:
        name: such as `thumos14-c/table-1`.
        paper: the first part of that.
        title: of the paper.
        authors: in short.
        year: of the paper.
        cites: its key in docs/references.bib.
        number: as the paper counts, such as `1` or `C`.
        about: what the table shows.
        metric: what its figures are.
        unit: `percent`, `share` (of 1) or `count`.
        digits: how many are printed behind the point.
        standing: whether its rows stand for models in a comparison, rather than for a study of one of them.
        counts: columns that are counts, whatever the unit.
        beside: columns of corruptions that the paper's means are not over.
        labels: keys that identify a row.
        columns: what is printed.
        rows: in the paper's order.
    """

    name: str
    paper: str
    title: str
    authors: str
    year: int
    cites: str
    number: str
    about: str
    metric: str
    unit: Unit
    digits: int
    standing: bool
    counts: tuple[str, ...]
    beside: tuple[str, ...]
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[PublishedRow, ...]

    @property
    def source(self) -> str:
        """Citation of the table, as in `Zeng et al. 2024, table C`."""
        return f"{self.authors} {self.year}, table {self.number}"

    @property
    def order(self) -> tuple[bool, str]:
        """Numbers before letters, as papers count."""
        return self.number.isalpha(), self.number

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """The benchmarks here that its rows are about; none where jostle has no such benchmark."""
        return tuple(dict.fromkeys(name for row in self.rows if (name := row.labels.get("benchmark"))))

    def fraction(self, printed: float) -> float:
        """A figure as a fraction."""
        return round(printed / 100, self.digits + 2) if self.unit == "percent" else printed

    def format_value(self, column: str, printed: float | None) -> str:
        """A figure as it stands in the paper; empty where there is none."""
        if printed is None:
            return ""
        whole = self.unit == "count" or column in self.counts
        return f"{printed:g}" if whole else f"{printed:.{self.digits}f}"

    def tables(self) -> tuple[Table, ...]:
        """Return the figures as printed."""
        several = len(self.benchmarks) > 1
        rows = []
        for row in self.rows:
            figures = [self.format_value(column, row.values.get(column)) for column in self.columns]
            rows.append((f"{row.labels['benchmark']}: {row.label}" if several else row.label, *figures))
        columns = (Column("", key="row"), *(Column(name, "decimal") for name in self.columns))
        notes = (self.title, f"{self.metric}, {'in percent, ' if self.unit == 'percent' else ''}as printed")
        return (Table(f"{self.source}: {self.about}", columns, tuple(rows), notes),)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; figures as printed, in `unit`."""
        facts = ("name", "paper", "title", "authors", "year", "cites", "number", "about", "metric", "unit", "digits")
        rows = [{**row.labels, "values": dict(row.values)} for row in self.rows]
        return {"format": 1, **{key: getattr(self, key) for key in facts}, "columns": list(self.columns), "rows": rows}


published: Registry[PublishedTable] = Registry("published table", "jostle.reporting.published")


@dataclass(frozen=True)
class _Table:
    """A table as its file has it; a row is its labels and then its figures, with an empty text for none."""

    number: str
    about: str
    metric: str
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    benchmark: str = ""
    unit: Unit = "percent"
    digits: int = 2
    standing: bool = False
    counts: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Paper:
    """File of one paper's tables."""

    title: str
    authors: str
    year: int
    cites: str
    tables: tuple[_Table, ...]


def read_paper(path: Path) -> list[PublishedTable]:
    """The tables in a file; raises BadValue if a row does not have a figure or an empty text for every column."""
    paper = read_settings(_Paper, path)
    tables = []
    for table in paper.tables:
        name = f"{path.stem}/table-{table.number.lower()}"
        rows = tuple(_row(table, row, f"{path}: {name}") for row in table.rows)
        own = {key: value for key, value in vars(table).items() if key not in ("rows", "benchmark")}
        facts = {key: value for key, value in vars(paper).items() if key != "tables"}
        tables.append(PublishedTable(name=name, paper=path.stem, rows=rows, **facts, **own))
    return tables


def _row(table: _Table, row: tuple[Any, ...], place: str) -> PublishedRow:
    texts, figures = row[: len(table.labels)], row[len(table.labels) :]
    known = all(isinstance(text, str) for text in texts)
    known = known and all(one == "" or isinstance(one, int | float) for one in figures)
    if len(figures) != len(table.columns) or not known:
        raise BadValue(f"{place}: {row} is not {len(table.labels)} texts and {len(table.columns)} figures")
    labels = {"benchmark": table.benchmark} if table.benchmark else {}
    labels |= dict(zip(table.labels, texts, strict=True))
    values = {column: float(one) for column, one in zip(table.columns, figures, strict=True) if one != ""}
    return PublishedRow(labels, values)


SUMMARY = ("clean", "corrupted", "drop", "relative", "absolute", "mpc", "rpc", "accuracy", "pm_k")


@dataclass(frozen=True)
class PublishedModel:
    """A model as a paper reports it; fractions.

    Attributes:
        benchmark: that it was measured on.
        model, feature, training: what it is; texts may be empty.
        paper: that reports it.
        tables: those that its figures stand in, such as (`1`, `C`).
        metric: what the scores are.
        clean: on clean video; None where the paper does not print it. So are the next ones.
        corrupted: mean over corruptions; of frame classifiers, pm-k.
        relative: what is left of the clean score.
        absolute: 1 less what is lost.
        intervals: (low, high) of `clean` and `corrupted`, where they are printed.
        by_corruption: the mean over severities of each corruption, where cells are printed.
        by_family: relative robustness by category, where that is printed.
    """

    json_keys: ClassVar = ("model", "feature", "training", "clean", "corrupted", "relative", "absolute", "source")

    benchmark: str
    model: str
    feature: str
    training: str
    paper: str
    tables: tuple[str, ...]
    metric: str
    clean: float | None
    corrupted: float | None
    relative: float | None
    absolute: float | None
    intervals: Mapping[str, tuple[float, float]]
    by_corruption: Mapping[str, float]
    by_family: Mapping[str, float]

    @property
    def name(self) -> str:
        """Model, features and training in one."""
        return ", ".join(part for part in (self.model, self.feature, self.training) if part)

    @property
    def source(self) -> str:
        """Paper and tables, as in `Zeng et al. 2024, tables 1, C`."""
        return f"{self.paper}, table{'s' if len(self.tables) > 1 else ''} {', '.join(self.tables)}"


@cache
def published_models(benchmark: str) -> tuple[PublishedModel, ...]:
    """Models that papers report on a benchmark, in the papers' order; none where no paper has a table of it.

    A figure that two tables of a paper print differently is that of the first.
    """
    models: dict[tuple[str, ...], dict[str, float]] = {}
    tables: dict[tuple[str, ...], list[PublishedTable]] = {}
    for table in sorted(published.values(), key=lambda table: (table.paper, table.order)):
        if not table.standing:
            continue
        for row in table.rows:
            if row.labels.get("benchmark") != benchmark:
                continue
            key = (table.paper, *(row.labels.get(label, "") for label in ("model", "feature", "training")))
            figures = models.setdefault(key, {})
            figures |= {
                column: table.fraction(value)
                for column, value in row.values.items()
                if column not in figures and column not in table.counts
            }
            tables.setdefault(key, []).append(table)
    return tuple(_model(benchmark, key[1:], values, tables[key]) for key, values in models.items())


def cells_of(table: PublishedTable) -> tuple[str, ...]:
    """Columns that are corruptions, alone or at a severity, and that the paper's means are over."""
    if table.unit != "percent":
        return ()
    free = (column for column in table.columns if column not in (*SUMMARY, *table.beside, *table.counts))
    return tuple(column for column in free if column.replace(":", "_").isidentifier())


def _model(
    benchmark: str, labels: tuple[str, ...], values: Mapping[str, float], tables: list[PublishedTable]
) -> PublishedModel:
    cells = {cell: values[cell] for table in tables for cell in cells_of(table) if cell in values}
    by_corruption: dict[str, list[float]] = {}
    for cell, value in cells.items():
        by_corruption.setdefault(cell.partition(":")[0], []).append(value)
    ends = {"clean": "accuracy", "corrupted": "pm_k"}
    model, feature, training = labels
    return PublishedModel(
        benchmark=benchmark,
        model=model,
        feature=feature,
        training=training,
        paper=f"{tables[0].authors} {tables[0].year}",
        tables=tuple(dict.fromkeys(table.number for table in tables)),
        metric=tables[0].metric,
        clean=_first(values, "clean", "accuracy"),
        corrupted=_first(values, "corrupted", "mpc", "pm_k"),
        relative=_first(values, "relative", "rpc"),
        absolute=values.get("absolute"),
        intervals={
            what: (values[f"{column}.low"], values[f"{column}.high"])
            for what, column in ends.items()
            if f"{column}.low" in values
        },
        by_corruption={name: sum(held) / len(held) for name, held in by_corruption.items()},
        by_family={column.partition(".")[0]: value for column, value in values.items() if column.endswith(".relative")},
    )


def _first(values: Mapping[str, float], *columns: str) -> float | None:
    return next((values[column] for column in columns if column in values), None)
