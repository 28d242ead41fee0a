"""Breaking points of runs as tables, and the items that break first with their frailty curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jostle.core.formatting import percent
from jostle.core.tables import Table
from jostle.evaluation.probing.predictor import ProbedCurve, ProbedItem
from jostle.evaluation.probing.probe import (
    ItemBreakingPoint,
    Probe,
    ProbeFolder,
    compare_probes,
    read_probe,
    read_video_probe,
)
from jostle.evaluation.results.record import RunRecord
from jostle.metrics.breaking_points import breaking_comparison_table, breaking_table
from jostle.reporting.analysis.labels import short_name


@dataclass(frozen=True)
class FragileItem:
    """An item with its breaking point and its frailty curve."""

    point: ItemBreakingPoint
    item: ProbedItem
    curve: ProbedCurve
    fps: float


def probe_of(record: RunRecord) -> Probe | None:
    """Return the breaking points in a run folder; None if it was not probed."""
    return read_probe(record.folder) if ProbeFolder(record.folder).result.exists() else None


def breaking_points_table(probe: Probe, name: str) -> Table:
    """Return the distribution of breaking points by kind of damage."""
    rows = {short_name(kind): probe.distribution(kind) for kind in probe.kinds}
    return breaking_table(f"Breaking points, {name}", "kind", rows)


def class_breaking_table(probe: Probe, kind: str, name: str) -> Table:
    """Return the distribution of breaking points by class, for one kind of damage."""
    rows = {label: probe.distribution(kind, label) for label in probe.labels}
    return breaking_table(f"Breaking points by class, {short_name(kind)}, {name}", "class", rows)


def compared_points_table(first: Probe, second: Probe, names: tuple[str, str]) -> Table:
    """Return the paired comparison of two models."""
    rows = {short_name(kind): one for kind, one in compare_probes(first, second).items()}
    title = f"Breaking points, {names[1]} against {names[0]}"
    return breaking_comparison_table(title, f"{names[1]} lost to fewer frames", rows)


def describe_probe(probe: Probe) -> str:
    """Say how little it takes, for the kind of damage that breaks most items.

    >>> describe_probe(Probe(1, "b", "m", "detection", "", 0.5, {}, 1, 0, 0, 0, 0, 0, (), {}))
    'The model has none of the 0 items in the clean videos, so there is nothing to break.'
    """
    if not probe.kept:
        return f"The model has none of the {probe.items} items in the clean videos, so there is nothing to break."
    worst = max(probe.kinds, key=lambda kind: probe.distribution(kind).lost_within(1) or 0.0)
    one = probe.distribution(worst)
    half = "more than half resist it" if one.median is None else f"half are lost to {one.median:g} frames"
    share = percent(one.lost_within(1))
    return f"Of {one.items} items, {share} % are lost to one damaged frame ({short_name(worst)}); {half}."


def most_fragile_items(record: RunRecord, probe: Probe, count: int) -> list[FragileItem]:
    """Return the items that break first, by the kind that breaks each, one of each video before a second."""
    best: dict[tuple[str, int], ItemBreakingPoint] = {}
    for point in probe.breaking_points:
        key = (point.video, point.item)
        if point.frames is not None and (key not in best or _order(point) < _order(best[key])):
            best[key] = point
    seen: dict[str, int] = {}
    ranked = []
    for point in sorted(best.values(), key=_order):
        ranked.append((seen.get(point.video, 0), *_order(point), point))
        seen[point.video] = seen.get(point.video, 0) + 1
    ranked.sort(key=lambda row: row[:-1])
    return [fragile_item(record, row[-1]) for row in ranked[:count]]


def fragile_item(record: RunRecord, point: ItemBreakingPoint) -> FragileItem:
    """Return an item with its curve, read from the file of its video."""
    video = read_video_probe(record.folder, point.video)
    curve = next(one for one in video.curves if (one.item, one.kind) == (point.item, point.kind))
    return FragileItem(point, video.items[point.item], curve, video.fps)


def lost_shares(probe: Probe) -> Mapping[str, Sequence[tuple[int, float]]]:
    """Return by kind the share of items lost to at most so many frames, at every number where it changes."""
    shares = {}
    for kind in probe.kinds:
        frames = sorted(one.frames for one in probe.of_kind(kind) if one.frames is not None)
        total = len(probe.of_kind(kind))
        shares[kind] = [(n, sum(one <= n for one in frames) / total) for n in sorted(set(frames))]
    return shares


def _order(point: ItemBreakingPoint) -> tuple[float, str, int, str]:
    return (point.frames or 0, point.video, point.item, point.kind)
