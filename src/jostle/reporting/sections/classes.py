"""What each class, type of question or length of moment loses."""

from __future__ import annotations

from jostle.evaluation.results.run_analysis import Drop, class_drops
from jostle.reporting.analysis.cell_tables import drops_table
from jostle.reporting.analysis.labels import plural
from jostle.reporting.charts.rows import MOST_CLASSES, draw_classes
from jostle.reporting.html.blocks import Bare, Figure, Fold, Side
from jostle.reporting.html.section import Report, ReportedRun, Section, section

WIDE, NARROW = 780, 460  # of a drawing that stands alone, and beside others


@section("classes", after="windows", title="What each class loses", short="Classes")
def classes(report: Report) -> Section | None:
    """Draw the score drop of each class."""
    found = [(run, drops) for run in report.runs if (drops := class_drops(run.analysis))]
    if not found:
        return None
    words = report.words
    many = plural(words.group)
    figures = [_figure(report, run, drops) for run, drops in found]
    return Section(
        Side(*(Bare(one) if len(figures) == 1 else one for one in figures)),
        Fold(
            "As a table",
            *(drops_table(f"{many}, {run.name}", words.group, drops, worst=True) for run, drops in found),
        ),
        title=f"What each {words.long_group} loses",
        short=many,
    )


def _figure(report: Report, run: ReportedRun, drops: list[Drop]) -> Figure:
    words, most = report.words, MOST_CLASSES
    left_out = "" if len(drops) <= most else f"The {most} of {len(drops)} {plural(words.group).lower()} that lose most."
    drawing = draw_classes(
        drops, words.group_score or str(run.record.scores.metric), WIDE if report.alone else NARROW, words.group
    )
    return Figure(f"classes-{run.number}", run.name, drawing, f"{words.groups_note} {left_out}".strip())
