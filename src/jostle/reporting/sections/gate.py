"""The decisions of a gate on each run."""

from __future__ import annotations

from jostle.reporting.html.blocks import Bare, Block, Text
from jostle.reporting.html.section import Report, Section, section


@section("gate", after="verdict", title="Gate")
def gate(report: Report) -> Section | None:
    """List the conditions of a gate, where there is one."""
    blocks: list[Block | None] = []
    for run in report.runs:
        check = run.check
        if check is not None:
            against = () if check.against is None else (f"the reference run is {check.against}",)
            blocks += [
                report.heading_of(run),
                Text(check.summary, f"verdict gate-{check.decision}"),
                Bare(check.tables()[0]),
                *(Text(remark, "pale") for remark in (*check.notes(), *against)),
            ]
    return Section(*blocks) if blocks else None
