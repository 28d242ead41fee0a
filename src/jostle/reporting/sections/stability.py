"""Accuracy of frame classifiers against pm-k, a point a run."""

from __future__ import annotations

from jostle.evaluation.results.pm_k import offset_errors
from jostle.reporting.analysis.stability import stabilities
from jostle.reporting.charts.scatter import draw_stability
from jostle.reporting.html.blocks import Figure, Side
from jostle.reporting.html.section import Report, Section, section


@section("stability", after="objects", title="Accuracy against pm-k", short="Stability")
def stability(report: Report) -> Section | None:
    """Draw accuracy on single frames against that on all similar frames, as papers do."""
    records = [run.record for run in report.runs]
    if not all(map(offset_errors, records)):
        return None
    found = stabilities(records)
    return Section(
        f"A frame counts for pm-{found.k} if it and all similar frames within {found.k} frames of it are right: "
        f"{found.anchors} anchors; {found.intervals}.",
        *found.apart,
        Side(
            Figure(f"accuracy_against_pm_{found.k}", "", draw_stability(found)),
            *found.tables(),
        ),
    )
