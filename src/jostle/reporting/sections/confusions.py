"""Confusions of classes that corruption brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jostle.reporting.analysis.cell_tables import confusion_table
from jostle.reporting.analysis.error_profile import Confusion, confusion_of
from jostle.reporting.charts.heat_maps import draw_confusion
from jostle.reporting.html.blocks import Bare, Block, Figure, Side
from jostle.reporting.html.section import Report, ReportedRun, Section, section

MOST_CONFUSED = 40  # classes that a matrix can show
NOTE = "Rows are true classes, columns what they are taken for; orange to red: worse when corrupted, blue: better."


@section("confusions", after="runs", title="Confusions that grew", short="Confusions")
def confusions(report: Report) -> Section | None:
    """Draw which classes are taken for which, corrupted less clean."""
    found = [(run, confusion) for run in report.runs if (confusion := confusion_of(run.record))]
    if not found:
        return None
    figures = [_figure(run, one) for run, one in found if len(one.classes) <= MOST_CONFUSED]
    drawn: Sequence[Block] = figures if len(figures) > 1 else [Bare(one) for one in figures]
    tables = [(run.name, confusion_table(one)) for run, one in found]
    return Section(Side(*drawn, *(replace(table, title=f"{table.title}, {name}") for name, table in tables)))


def _figure(run: ReportedRun, confusion: Confusion) -> Figure:
    label = f"What {run.name} takes for what, corrupted less clean"
    drawing = draw_confusion(confusion.classes, confusion.corrupted - confusion.clean, label)
    return Figure(f"confusion-{run.number}", run.name, drawing, NOTE)
