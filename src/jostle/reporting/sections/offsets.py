"""Errors of frame classifiers by distance from the anchor."""

from __future__ import annotations

from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.pm_k import offset_errors
from jostle.reporting.analysis.cell_tables import offsets_table
from jostle.reporting.analysis.labels import short_name
from jostle.reporting.charts.curves import draw_offsets
from jostle.reporting.html.blocks import Figure
from jostle.reporting.html.section import Report, Section, section


@section("offsets", after="stability", title="Errors around the anchor", short="Offsets")
def offsets(report: Report) -> Section | None:
    """Draw pm-k's error by distance from the anchor, clean; the table has every cell."""
    found = [(run.name, one) for run in report.runs for one in offset_errors(run.record)]
    drawn = [(name, one) for name, one in found if one.cell == CLEAN]
    if not drawn:
        return None
    if report.alone and len(found) > 1:
        worst = min(found[1:], key=lambda pair: pair[1].pm_k)[1]
        drawn = [("clean", drawn[0][1]), (short_name(worst.cell), worst)]
    note = "A frame is wrong if its best class is none of its labels."
    return Section(Figure("offsets", "", draw_offsets(drawn), note), offsets_table(found))
