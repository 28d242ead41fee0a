"""Why detectors fail: DETAD's kinds of error, what each costs, and which actions lose most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jostle.reporting.analysis.cell_tables import errors_table
from jostle.reporting.analysis.error_profile import ErrorProfile, error_profile
from jostle.reporting.charts.bars import Sides, draw_buckets, draw_impact, draw_profile, draw_splits
from jostle.reporting.html.blocks import Figure, Fold, Side, Text
from jostle.reporting.html.section import Report, Section, section

LEAD = (
    "DETAD's analysis, clean against corrupted: the most confident detections, as many as there are actions, by kind; "
    "what mAP_N would gain without each kind of error; and which actions lose most."
)


@section("errors", after="classes", title="Why it fails", short="Errors")
def errors(report: Report) -> Section | None:
    """Draw all runs in one chart of kinds and one of costs, then who suffers, run by run."""
    profiles = [(run.name, profile) for run in report.runs if (profile := error_profile(run.record))]
    if not profiles:
        return None
    by_run = {name: _sides(profile, "" if report.alone else f"{name}, ") for name, profile in profiles}
    every = [side for sides in by_run.values() for side in sides]
    titles = {name: "" if report.alone else f", {name}" for name in by_run}
    tables = [(name, errors_table(profile)) for name, profile in profiles]
    return Section(
        Text(LEAD, "lead"),
        Side(
            Figure("profile", "Kinds of the most confident detections", draw_profile(every)),
            Figure("impact", "What each kind of error costs", draw_impact(every)),
            *(
                Figure(f"splits-{number}", f"Kinds by confidence{titles[name]}", draw_splits(sides))
                for number, (name, sides) in enumerate(by_run.items())
            ),
            *(
                figure
                for number, (name, profile) in enumerate(profiles)
                for figure in _bucket_figures(profile, by_run[name], number, titles[name])
            ),
        ),
        Fold("As a table", *(replace(table, title=f"{table.title}, {name}") for name, table in tables)),
    )


def _sides(profile: ErrorProfile, of: str) -> Sides:
    sides = [(f"{of}clean", profile.clean)]
    if profile.corrupted is not None:
        sides.append((f"{of}corrupted" if of else f"corrupted, mean of {len(profile.cells)} cells", profile.corrupted))
    return sides


def _bucket_figures(profile: ErrorProfile, sides: Sides, number: int, of: str) -> Iterator[Figure]:
    for characteristic, buckets in profile.clean.sensitivity.items():
        if sum(value is not None for value in buckets.values()) < 2:
            continue  # one bucket is the whole
        for missed, kind in ((False, "Sensitivity"), (True, "Missed")):
            drawing = draw_buckets(sides, characteristic, missed)
            yield Figure(f"{kind.lower()}-{characteristic}-{number}", f"{kind} by {characteristic}{of}", drawing)
