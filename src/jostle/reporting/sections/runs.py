"""Every further run against the first."""

from __future__ import annotations

from jostle.reporting.analysis.cell_tables import comparison_table
from jostle.reporting.analysis.verdict import comparison_verdict
from jostle.reporting.charts.rows import draw_differences
from jostle.reporting.html.blocks import Bare, Block, Figure, Heading
from jostle.reporting.html.section import Report, Section, section

NOTE = "Points with paired 95 % intervals; an open mark: 0 lies inside."


@section("runs", after="videos", title="Side by side", short="Runs")
def runs(report: Report) -> Section | None:
    """Draw the differences of runs, cell by cell."""
    blocks: list[Block] = []
    for run, comparison in report.comparisons:
        names = (report.names[0], run.name)
        blocks += [
            Heading(f"{names[1]} against {names[0]}"),
            comparison_verdict(comparison, *names),
            Figure(f"differences-{run.number}", "", draw_differences(comparison, *names), NOTE),
            Bare(comparison_table(comparison, *names)),
        ]
    return Section(*blocks) if blocks else None
