"""Object detectors on anchor frames, and on the worst frame near each."""

from __future__ import annotations

from jostle.evaluation.results.pm_k import object_findings, objects_table
from jostle.reporting.html.section import Report, Section, section


@section("objects", after="confusions", title="Objects around the anchor", short="Objects")
def objects(report: Report) -> Section | None:
    """Tabulate scores of object detectors, with the right class and with any."""
    rows = [(run.name, one) for run in report.runs for one in object_findings(run.record)]
    if not rows:
        return None
    return Section(
        "Detection asks for the right class, localisation for any. pm-k is taken over the frame near each anchor on "
        "which the detector does worst.",
        objects_table(rows),
    )
