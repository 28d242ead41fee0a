"""Breaking points of those runs that were probed."""

from __future__ import annotations

from jostle.evaluation.probing.probe import Probe
from jostle.reporting.analysis.breaking_points import (
    FragileItem,
    breaking_points_table,
    class_breaking_table,
    compared_points_table,
    describe_probe,
    lost_shares,
    most_fragile_items,
    probe_of,
)
from jostle.reporting.analysis.labels import short_name
from jostle.reporting.charts.curves import draw_frailty, draw_lost_shares
from jostle.reporting.html.blocks import Bare, Block, Figure, Fold, Side, Text
from jostle.reporting.html.section import Report, Section, section

FRAGILE = 6  # items whose frailty curve is drawn
LEAD = (
    "The breaking point of an item is the shortest run of damaged frames that loses it. A curve shows the score of an "
    "item with one damaged frame at each position; marks below it are positions that lose the item."
)


@section("breaking", after="offsets", title="Breaking points")
def breaking(report: Report) -> Section | None:
    """Draw how many items a number of damaged frames loses, and the items that break first."""
    probes = [(run, probe) for run in report.runs if (probe := probe_of(run.record))]
    blocks: list[Block | None] = []
    for number, (run, probe) in enumerate(probes):
        shares = draw_lost_shares(lost_shares(probe), "Share of items lost, by number of damaged frames")
        fragile = most_fragile_items(run.record, probe, FRAGILE)
        lost = f"An item is lost when {'there is ' if probe.loss_rule.startswith('no ') else ''}{probe.full_rule}."
        first_run, first = probes[0]
        same = first.benchmark == probe.benchmark and bool(set(first.kinds) & set(probe.kinds))
        blocks += [
            report.heading_of(run),
            f"{describe_probe(probe)} {lost}",
            Bare(Figure(f"lost-{number}", "Items lost, by number of damaged frames", shares)),
            Bare(breaking_points_table(probe, run.name)),
            compared_points_table(first, probe, (first_run.name, run.name)) if number and same else None,
            Side(*(_frailty_figure(one, probe, f"frailty-{number}-{i}") for i, one in enumerate(fragile))),
            Fold(f"By {report.words.group}", *(class_breaking_table(probe, kind, run.name) for kind in probe.kinds)),
        ]
    return Section(Text(LEAD, "lead"), *blocks) if blocks else None


def _frailty_figure(one: FragileItem, probe: Probe, name: str) -> Figure:
    point = one.point
    assert point.frames is not None
    assert point.position is not None
    title = f"{one.item.text or one.item.label or 'item'} in {point.video}, {short_name(point.kind)}"
    length = "one frame" if point.frames == 1 else f"{point.frames} frames"
    note = f"Lost to {length} from {point.position / one.fps:.2f} s on, at severity {point.severity}."
    if not point.monotone:
        note += " More damage does not always lose it."
    return Figure(name, title, draw_frailty(one.curve, point, one.fps, one.item.score, probe.threshold), note)
