"""Scores over severity, a chart a corruption."""

from __future__ import annotations

from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.run_analysis import RunAnalysis
from jostle.reporting.analysis.labels import Grid, grid_of, short_name
from jostle.reporting.charts.curves import Curve, draw_curves
from jostle.reporting.html.blocks import Figure
from jostle.reporting.html.section import Report, Section, section


@section("severity", after="map", title="Score by severity", short="Severity")
def severity(report: Report) -> Section | None:
    """Draw a curve for every corruption that was tried at more than one severity."""
    analyses = [run.analysis for run in report.runs]
    grids = [grid_of(analysis.cells, analysis.counted) for analysis in analyses]
    rows = dict.fromkeys(row.corruption for grid in grids for row in grid.rows if len(row.cells) > 1)
    facets = {}
    for corruption in rows:
        curves = [
            _curve(i, analysis, grid, corruption)
            for i, (analysis, grid) in enumerate(zip(analyses, grids, strict=True))
        ]
        facets[short_name(corruption)] = [curve for curve in curves if curve is not None]
    if not facets:
        return None
    bands = analyses[0].interval_text
    note = f"{report.metric}.{f' Bands: {bands[:1].lower()}{bands[1:]}' if bands else ''}"
    return Section(Figure("severity", "", draw_curves(facets, report.names, report.metric), note))


def _curve(run: int, analysis: RunAnalysis, grid: Grid, corruption: str) -> Curve | None:
    row = next((row for row in grid.rows if row.corruption == corruption), None)
    if row is None:
        return None
    points = {severity: analysis.of(cell) for severity, cell in row.cells.items() if severity is not None}
    return Curve(run, {0: analysis.of(CLEAN), **points})
