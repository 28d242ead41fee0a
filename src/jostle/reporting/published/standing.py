"""Published models of a benchmark, each with all that its paper's tables say of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from jostle.reporting.published.table import PublishedTable, published

SUMMARY = ("clean", "corrupted", "drop", "relative", "absolute", "mpc", "rpc", "accuracy", "pm_k")


@dataclass(frozen=True)
class PublishedModel:
    """A model as a paper reports it; fractions.

    Attributes:
        benchmark: that it was measured on.
        model, feature, training: what it is; texts may be empty.
        source: the paper.
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

    benchmark: str
    model: str
    feature: str
    training: str
    source: str
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
    def from_where(self) -> str:
        """Paper and tables, as in `Zeng et al. 2024, tables 1, C`."""
        return f"{self.source}, table{'s' if len(self.tables) > 1 else ''} {', '.join(self.tables)}"


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
        source=f"{tables[0].authors} {tables[0].year}",
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
