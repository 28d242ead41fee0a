"""Findings as tables: cells, classes, videos, errors and differences, ready for any format."""

from __future__ import annotations

from collections.abc import Sequence

from jostle.core.tables import Column, Table, Value
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.comparison import RunComparison, chance_of
from jostle.evaluation.results.pm_k import OffsetErrors
from jostle.evaluation.results.run_analysis import Drop, RunAnalysis
from jostle.metrics.diagnosis.false_positives import ERROR_KINDS
from jostle.reporting.analysis.error_profile import Confusion, ErrorProfile
from jostle.reporting.analysis.language import baseline_rows


def cells_table(analyses: Sequence[RunAnalysis]) -> Table:
    """Every cell of every run, a row each, and the means under them."""
    rows: list[tuple[Value, ...]] = []
    for analysis in analyses:
        clean = analysis.of(CLEAN).value
        name = analysis.record.name
        for cell in analysis.cells:
            own = analysis.of(cell)
            relative = own.value / clean if own.value is not None and clean else None
            counted = "" if cell == CLEAN else "yes" if cell in analysis.counted else "no"
            rows.append((name, cell, own.value, own.interval, relative, counted, len(analysis.videos)))
        mean, left = analysis.corrupted(), analysis.relative()
        if analysis.counted:
            rows.append((name, "mean corrupted", mean.value, mean.interval, left.value, "", len(analysis.videos)))
        for baseline, value, ends in baseline_rows(analysis.record):
            rows.append((name, baseline, value, ends, None, "", analysis.record.scores.coverage.videos))
    metric = analyses[0].record.scores.metric
    columns = (
        Column("run"),
        Column("cell"),
        Column(metric, "percent"),
        Column("95 % interval", "interval"),
        Column("of clean", "percent"),
        Column("in the means"),
        Column("videos", "count"),
    )
    chance = chance_of(analyses[0]).text
    return Table(f"Cells ({chance})" if chance else "Cells", columns, tuple(rows))


def drops_table(title: str, what: str, drops: Sequence[Drop], *, worst: bool = False) -> Table:
    """Classes or videos, the greatest loss first; `worst` adds the cell under which each is worth least."""
    columns = [Column(what), Column("clean", "percent"), Column("corrupted", "percent"), Column("change", "points")]
    rows: list[tuple[Value, ...]] = [(drop.name, drop.clean, drop.corrupted, -drop.loss) for drop in drops]
    if worst:
        columns += [Column("least under"), Column("there", "percent")]
        rows = [(*row, drop.worst_cell, drop.worst) for row, drop in zip(rows, drops, strict=True)]
    return Table(title, tuple(columns), tuple(rows))


def errors_table(profile: ErrorProfile) -> Table:
    """Kinds of error, clean and corrupted."""
    before, after = profile.clean, profile.corrupted
    rows: list[tuple[Value, ...]] = []
    for kind in ERROR_KINDS:
        shares = [before.shares[kind], None if after is None else after.shares[kind]]
        impact = [before.impact.get(kind), None if after is None else after.impact.get(kind)]
        rows.append((kind.replace("_", " "), *shares, *impact))
    rows.append(("missed actions", before.missed, None if after is None else after.missed, None, None))
    columns = (
        Column("kind"),
        Column("share clean", "percent"),
        Column("share corrupted", "percent"),
        Column("impact clean", "points"),
        Column("impact corrupted", "points"),
    )
    return Table("Kinds of error", columns, tuple(rows))


def comparison_table(comparison: RunComparison, one: str, other: str) -> Table:
    """Two runs, cell by cell."""
    rows = [comparison.clean, *comparison.cells, comparison.corrupted, comparison.relative]
    columns = (
        Column("", key="cell"),
        Column(one, "percent", key="first"),
        Column(other, "percent", key="second"),
        Column("difference", "points"),
        Column("95 % interval", "interval", key="interval"),
    )
    return Table(
        "Two runs",
        columns,
        tuple((row.what, row.one, row.other, row.difference.value, row.difference.interval) for row in rows),
    )


def confusion_table(confusion: Confusion, most: int = 20) -> Table:
    """The confusions that grew most."""
    columns = (
        Column("class"),
        Column("taken for"),
        Column("clean", "percent"),
        Column("corrupted", "percent"),
        Column("change", "points"),
        Column("most under"),
        Column("videos", "count"),
    )
    rows = [
        (one.true, one.taken_for, one.clean, one.corrupted, one.growth, one.worst_cell, one.videos)
        for one in confusion.grew[:most]
    ]
    return Table("Confusions that grew", columns, tuple(rows))


def offsets_table(cells: Sequence[tuple[str, OffsetErrors]]) -> Table:
    """Accuracy, pm-k and what lies between, a row a run and cell."""
    columns = (
        Column("run"),
        Column("cell"),
        Column("accuracy", "percent"),
        Column("its 95 % interval", "interval"),
        Column("pm-k", "percent"),
        Column("its 95 % interval", "interval"),
        Column("drop", "percent"),
        Column("anchors", "count"),
    )
    rows = [
        (run, one.cell, one.accuracy, one.accuracy_interval, one.pm_k, one.pm_k_interval, one.drop, one.anchors)
        for run, one in cells
    ]
    return Table("pm-k", columns, tuple(rows))
