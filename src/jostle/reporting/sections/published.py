"""What papers report on the benchmark, beside what was measured and never mixed with it."""

from __future__ import annotations

from jostle.reporting.analysis.literature import literature_on
from jostle.reporting.html.blocks import Bare
from jostle.reporting.html.section import Report, Section, section


@section("published", after="breaking", title="Published, not measured here", short="Published")
def published(report: Report) -> Section | None:
    """Tabulate published figures of the benchmark."""
    found = literature_on([run.record for run in report.runs])
    return None if found is None else Section(*found.remarks, Bare(found.tables()[0]), title=found.title)
