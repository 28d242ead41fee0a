"""Charts of a report: scores by cell, severity and class, kinds of error, pm-k by distance, and timelines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jostle.core.types.columns import Floats
from jostle.evaluation.probing.predictor import ProbedCurve
from jostle.evaluation.probing.probe import ItemBreakingPoint
from jostle.evaluation.results.comparison import RunComparison
from jostle.evaluation.results.pm_k import OffsetErrors
from jostle.evaluation.results.run_analysis import Drop, Estimate
from jostle.metrics.diagnosis.false_positives import ERROR_KINDS, ERRORS
from jostle.reporting.analysis.error_profile import ProfileSide
from jostle.reporting.analysis.labels import Grid, short_name
from jostle.reporting.analysis.loss_steps import STEPS, step_of
from jostle.reporting.analysis.verdict import percent
from jostle.reporting.analysis.video_results import AnnotatedAction, Detection, VideoTimeline
from jostle.reporting.html.svg import Drawing, Scale, cut, run_paint, ticks, width_of

MOST_CLASSES = 40
FACETS = 4  # curves in a row, at most
WIDE = 936.0
LONGEST = 26  # letters of a name beside a chart


@dataclass(frozen=True)
class Square:
    """A square of the map."""

    value: float | None  # its score
    relative: float | None  # what is left of the clean one
    address: str  # where its detail is
    hint: str


def draw_heat_map(grid: Grid, squares: Mapping[str, Square], label: str) -> str:
    """Corruptions down, severities across; every square leads to its detail."""
    columns: list[int | None] = [*grid.severities]
    if any(None in row.cells for row in grid.rows):
        columns.append(None)
    names = [cut(row.name, 34) for row in grid.rows]
    left = max([width_of(name, 13) for name in names] + [90]) + 14
    side, tall, top = 84, 34, 26
    beside = next((i for i, row in enumerate(grid.rows) if not row.counted), None)
    gap = 24 if beside is not None else 0
    bottom = top + len(grid.rows) * tall + gap
    width = left + max(len(columns) * side, 9 * 28 + 46) + 2
    drawing = Drawing(width, bottom + 46, label)
    for c, severity in enumerate(columns):
        drawing.text(left + (c + 0.5) * side, 16, "—" if severity is None else str(severity), "pale", "middle")
    drawing.text(0, 16, "severity →", "pale")
    for r, (row, name) in enumerate(zip(grid.rows, names, strict=True)):
        y = top + r * tall + (gap if beside is not None and r >= beside else 0)
        if r == beside:
            drawing.text(0, y - 7, "outside the benchmark, not averaged", "pale small")
        drawing.text(left - 10, y + tall / 2 + 4, name, "", "end", hint=row.corruption)
        for c, severity in enumerate(columns):
            cell = row.cells.get(severity)
            if cell is None:
                continue
            square = squares[cell]
            step = step_of(square.relative)
            drawing.open_link(f"#{square.address}", square.hint)
            drawing.rect(left + c * side + 1, y + 1, side - 2, tall - 2, f"square {step}", square.hint, r=3)
            words = percent(square.value)
            drawing.text(left + (c + 0.5) * side, y + tall / 2 + 4.5, words, f"on on-{step}", "middle")
            drawing.close_link()
    _draw_steps(drawing, left, bottom + 12)
    return drawing.svg()


def _draw_steps(drawing: Drawing, x: float, y: float) -> None:
    drawing.text(x - 10, y + 12, "lost of clean", "pale small", "end")
    wide = 27
    for i in range(len(STEPS) + 1):
        drawing.rect(x + i * (wide + 1), y, wide, 14, f"square h{i}", r=2)
        drawing.text(x + i * (wide + 1), y + 27, f"{100 * STEPS[i - 1]:.0f}" if i else "0 %", "pale small")
    x += (len(STEPS) + 1) * (wide + 1) + 8
    drawing.rect(x, y, wide, 14, "square above", r=2)
    drawing.text(x, y + 27, "gained", "pale small")


@dataclass(frozen=True)
class Curve:
    """One run in one chart: estimates by severity, 0 is clean."""

    run: int
    points: dict[int, Estimate]


def draw_curves(facets: Mapping[str, Sequence[Curve]], runs: Sequence[str], metric: str) -> str:
    """A chart a corruption, one scale for all: the score over severity, with a band where other videos would put it."""
    across = 3 if len(facets) in (5, 6, 9) else min(FACETS, len(facets))
    wide, tall, top = WIDE / max(across, 2), 168, 34 if len(runs) > 1 else 8
    drawing = Drawing(across * wide, top + -(-len(facets) // across) * tall, f"{metric} over severity, by corruption")
    low, high = _range([point for curves in facets.values() for curve in curves for point in curve.points.values()])
    x = 8.0
    for i, run in enumerate(runs if len(runs) > 1 else ()):
        drawing.line(x, 12, x + 22, 12, f"line {run_paint(i)}")
        drawing.dot(x + 11, 12, f"mark {run_paint(i)}", i)
        drawing.text(x + 28, 16, cut(run, 44), "small")
        x += 44 + width_of(cut(run, 44), 11)
    severities = sorted({s for curves in facets.values() for curve in curves for s in curve.points})
    for f, (name, curves) in enumerate(facets.items()):
        ox, oy = f % across * wide, top + f // across * tall
        down = Scale(low, high, oy + tall - 30, oy + 24)
        over = Scale(severities[0], max(severities[-1], 1), ox + 40, ox + wide - 18)
        drawing.text(ox + 36, oy + 14, cut(name, 27), "strong small", hint=name)
        for tick in ticks(low, high, 4):
            drawing.line(ox + 36, down(tick), ox + wide - 12, down(tick), "grid")
            drawing.text(ox + 32, down(tick) + 4, percent(tick, 0), "pale small", "end")
        for severity in severities:
            drawing.text(
                over(severity), oy + tall - 13, "clean" if not severity else str(severity), "pale small", "middle"
            )
        for curve in curves:
            _draw_curve(drawing, curve, over, down)
    return drawing.svg()


def _draw_curve(drawing: Drawing, curve: Curve, over: Scale, down: Scale) -> None:
    known = [(s, e) for s, e in sorted(curve.points.items()) if e.value is not None]
    banded = [(s, e.interval) for s, e in known if e.interval is not None]
    if len(banded) > 1:
        upper = [(over(s), down(ends[1])) for s, ends in banded]
        lower = [(over(s), down(ends[0])) for s, ends in reversed(banded)]
        drawing.path([*upper, *lower], f"band {run_paint(curve.run)}", closed=True)
    drawing.path([(over(s), down(e.value or 0.0)) for s, e in known], f"line {run_paint(curve.run)}")
    for s, e in known:
        ends = "" if e.interval is None else f" [{percent(e.interval[0])}, {percent(e.interval[1])}]"
        hint = f"{'clean' if not s else f'severity {s}'}: {percent(e.value)}{ends}"
        drawing.dot(over(s), down(e.value or 0.0), f"mark {run_paint(curve.run)}", curve.run, hint, 3.4)


def _range(points: Sequence[Estimate]) -> tuple[float, float]:
    values = [p.value for p in points if p.value is not None] + [end for p in points for end in p.interval or ()]
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    room = max((high - low) * 0.06, 0.01)
    return max(0.0, low - room) if low > 0.25 else 0.0, min(1.0, high + room)


def draw_classes(drops: Sequence[Drop], metric: str, wide: float = 720, group: str = "class") -> str:
    """Every class, or other group, before and after, the greatest loss on top; at most 40, the hardest hit."""
    worst = list(drops[:MOST_CLASSES])
    names = [cut(drop.name, LONGEST) for drop in worst]
    left = max(width_of(name) for name in names) + 14
    tall, top = 21, 30
    drawing = Drawing(wide, top + tall * len(worst) + 26, f"{metric} of each {group}, clean and corrupted")
    over = Scale(0, 1, left + 6, wide - 66)
    for tick in ticks(0, 1):
        drawing.line(over(tick), top - 6, over(tick), top + tall * len(worst), "grid")
        drawing.text(over(tick), top + tall * len(worst) + 16, percent(tick, 0), "pale small", "middle")
    drawing.dot(left + 12, 9, "mark clean", 0)
    drawing.text(left + 22, 13, "clean", "small")
    drawing.dot(left + 80, 9, "mark corrupted", 1)
    drawing.text(left + 90, 13, "corrupted, mean over cells", "small")
    drawing.text(wide, 13, "points", "pale small", "end")
    for i, (drop, name) in enumerate(zip(worst, names, strict=True)):
        y = top + i * tall + tall / 2
        hint = f"{drop.name}: {percent(drop.clean)} clean, {percent(drop.corrupted)} corrupted; least, "
        hint += f"{percent(drop.worst)}, under {drop.worst_cell}"
        drawing.text(left - 6, y + 4, name, "", "end", hint=drop.name)
        drawing.line(over(drop.clean), y, over(drop.corrupted), y, "lost" if drop.loss > 0 else "won")
        drawing.dot(over(drop.clean), y, "mark clean", 0, hint)
        drawing.dot(over(drop.corrupted), y, "mark corrupted", 1, hint)
        drawing.text(wide, y + 4, f"{-100 * drop.loss:+z.1f}".replace("-", "−"), "small", "end")
    return drawing.svg()


def draw_differences(comparison: RunComparison, one: str, other: str) -> str:
    """The second run less the first in every cell, with paired intervals; an open mark could as well be 0."""
    rows = [
        row for row in (*comparison.cells, comparison.corrupted, comparison.clean) if row.difference.value is not None
    ]
    names = [cut(short_name(row.what), 34) for row in rows]
    left = 1.12 * max(width_of(name) for name in names) + 14  # two are bold
    tall, top, wide = 21, 34, 720.0
    ends = [end for row in rows for end in row.difference.interval or (row.difference.value or 0.0,)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    over = Scale(low, high if high > low else low + 0.01, left + 10, wide - 60)
    bottom = top + tall * len(rows)
    drawing = Drawing(wide, bottom + 24, f"{other} less {one}, by cell")
    for tick in ticks(low, over.high, 6):
        drawing.line(over(tick), top - 6, over(tick), bottom, "axis" if tick == 0 else "grid")
        drawing.text(over(tick), bottom + 16, f"{100 * tick:+g}".replace("-", "−"), "pale small", "middle")
    drawing.text(over(0) - 8, 14, f"← {cut(one, 24)} better", "pale small", "end")
    drawing.text(over(0) + 8, 14, f"{cut(other, 24)} better →", "pale small")
    for i, (row, name) in enumerate(zip(rows, names, strict=True)):
        y, gap = top + i * tall + tall / 2, row.difference
        drawing.text(
            left - 6,
            y + 4,
            name,
            "strong" if row in (comparison.corrupted, comparison.clean) else "",
            "end",
            hint=row.what,
        )
        assert gap.value is not None
        kind = "run0" if gap.value < 0 else "run1"
        hint = f"{row.what}: {percent(row.one)} and {percent(row.other)}, {100 * gap.value:+z.1f} points"
        if gap.interval is not None:
            drawing.line(over(gap.interval[0]), y, over(gap.interval[1]), y, f"reach {kind}")
        drawing.dot(over(gap.value), y, f"mark {kind}{'' if row.clear else ' open'}", 0, hint)
        drawing.text(wide, y + 4, f"{100 * gap.value:+z.1f}".replace("-", "−"), "small", "end")
    return drawing.svg()


def draw_confusion(classes: Sequence[str], growth: Floats, label: str) -> str:
    """A matrix of what grew: rows are true classes, columns what they are taken for."""
    count = len(classes)
    names = [cut(name, 18) for name in classes]
    left = max(width_of(name, 11) for name in names) + 10
    side = max(10.0, min(24.0, 560 / count))
    drawing = Drawing(left + side * count + 40, left + side * count + 8, label)
    for i, name in enumerate(names):
        drawing.text(left - 5, left + (i + 0.5) * side + 4, name, "small", "end", hint=classes[i])
        drawing.text(left + (i + 0.5) * side + 4, left - 6, name, "small", turn=-60, hint=classes[i])
    for i, j in np.ndindex(count, count):
        hint = f"{classes[i]} taken for {classes[j]}: {100 * growth[i, j]:+z.1f} points"
        step = _growth_step(float(growth[i, j]), own=i == j)
        drawing.rect(left + j * side, left + i * side, side - 1, side - 1, f"square {step}", hint)
    return drawing.svg()


def _growth_step(growth: float, own: bool) -> str:
    """Being right less often is a loss as being wrong more often is."""
    worse = -growth if own else growth
    if worse < -STEPS[0]:
        return "above"
    return f"h{sum(worse >= edge for edge in STEPS)}"


NAMES = {
    "true_positive": "right",
    "double_detection": "double detection",
    "wrong_label": "wrong label",
    "localization": "localization",
    "confusion": "confusion",
    "background": "background",
}
Sides = Sequence[tuple[str, ProfileSide]]  # what each is called


def draw_profile(sides: Sides, wide: float = 760) -> str:
    """Draw the kinds of error among the most confident detections, as many as there are actions."""
    left = max(width_of(cut(name, 40)) for name, _ in sides) + 14
    legend, x, y = [], 0.0, 6.0
    for kind in ERROR_KINDS:
        needed = 34 + width_of(NAMES[kind], 11)
        if x + needed > wide:
            x, y = 0.0, y + 22
        legend.append((kind, x, y))
        x += needed
    tall, top = 34, y + 36
    drawing = Drawing(wide, top + tall * len(sides), "Kinds of error among the most confident detections")
    for kind, x, y in legend:
        drawing.rect(x, y, 14, 14, f"kind {kind}", r=2)
        drawing.text(x + 19, y + 12, NAMES[kind], "small")
    for i, (name, side) in enumerate(sides):
        y = top + i * tall
        drawing.text(left - 8, y + 19, cut(name, 40), "", "end", hint=name)
        over = Scale(0, 1, left, wide)
        begin = 0.0
        for kind in ERROR_KINDS:
            part = side.shares[kind] or 0.0
            hint = f"{name}: {NAMES[kind]} {percent(part)} %"
            drawing.rect(over(begin), y, over(part) - over(0) - 1, tall - 8, f"kind {kind}", hint)
            if over(part) - over(0) > 34:
                drawing.text(
                    (over(begin) + over(begin + part)) / 2, y + 18, percent(part, 0), f"small on-{kind}", "middle"
                )
            begin += part
    return drawing.svg()


def draw_impact(sides: Sides) -> str:
    """Draw the gain of average mAP_N if each kind of error were removed."""
    groups = {NAMES[kind]: [(name, side.impact[kind]) for name, side in sides] for kind in ERRORS}
    return _bars(groups, "points of mAP_N gained if the kind vanished", signed=True)


def draw_buckets(sides: Sides, characteristic: str, missed: bool) -> str:
    """By bucket of a characteristic: mAP_N, or the share of actions missed."""
    first = (sides[0][1].missed_by if missed else sides[0][1].sensitivity)[characteristic]
    groups = {
        bucket: [
            (name, (side.missed_by if missed else side.sensitivity)[characteristic][bucket]) for name, side in sides
        ]
        for bucket in first
        if first[bucket] is not None
    }
    title = "share of actions missed, %" if missed else "average mAP_N, %"
    return _bars(groups, f"{title}, by {characteristic}", wide=420)


def _bars(
    groups: Mapping[str, Sequence[tuple[str, float | None]]], label: str, *, signed: bool = False, wide: float = 760
) -> str:
    """Groups of upright bars; the first of each is clean."""
    many = max((len(bars) for bars in groups.values()), default=1)
    top, bottom, left = 30, 190, 40.0
    drawing = Drawing(wide, 236, label)
    values = [value for bars in groups.values() for _, value in bars if value is not None]
    over = Scale(min([0.0, *values]), max([0.02, *values]) * 1.08, bottom, top)
    drawing.text(0, 14, label, "small strong")
    for tick in ticks(over.low, over.high, 4):
        drawing.line(left, over(tick), wide, over(tick), "grid")
        drawing.text(left - 6, over(tick) + 4, f"{100 * tick:g}", "pale small", "end")
    slot = (wide - left) / max(len(groups), 1)
    bar = min(34.0, (slot - 14) / many)
    for g, (group, bars) in enumerate(groups.items()):
        middle = left + (g + 0.5) * slot
        drawing.text(middle, bottom + 18, group, "small", "middle")
        for b, (name, value) in enumerate(bars):
            if value is None:
                continue
            x = middle + (b - len(bars) / 2) * bar
            y = min(over(value), over(0))
            words = f"{100 * value:+z.1f}" if signed else percent(value)
            drawing.rect(x + 1, y, bar - 2, abs(over(value) - over(0)), _paint(b, many), f"{name}: {words}")
            if bar >= 26:
                drawing.text(x + bar / 2, y - 4, words, "tiny", "middle")
    x = left
    for b, (name, _) in enumerate(next(iter(groups.values()), [])):
        drawing.rect(x, bottom + 30, 12, 12, _paint(b, many))
        drawing.text(x + 17, bottom + 40, cut(name, 30), "small")
        x += 32 + width_of(cut(name, 30), 11)
    return drawing.svg()


def _paint(bar: int, many: int) -> str:
    """Clean and corrupted in their own colours; with several runs each run in its colour, clean pale."""
    return f"bar side{bar}" if many <= 2 else f"bar {run_paint(bar // 2)}{'' if bar % 2 else ' soft'}"


def draw_offsets(cells: Sequence[tuple[str, OffsetErrors]]) -> str:
    """Share of wrong frames by their distance from the anchor."""
    wide, top, bottom, left = 760.0, 40, 240, 44.0
    drawing = Drawing(wide, 278, "Share of wrong frames by distance from the anchor")
    k = max((errors.k for _, errors in cells), default=1)
    values = [share for _, errors in cells for share in errors.error.values()]
    over, down = Scale(-k, k, left + 10, wide - 14), Scale(0, max([0.05, *values]) * 1.05, bottom, top)
    for tick in ticks(0, down.high, 5):
        drawing.line(left, down(tick), wide, down(tick), "grid")
        drawing.text(left - 6, down(tick) + 4, f"{100 * tick:g}", "pale small", "end")
    for tick in (tick for tick in ticks(-k, k, 10) if tick.is_integer()):
        drawing.text(over(tick), bottom + 16, f"{tick:+g}" if tick else "anchor", "pale small", "middle")
    drawing.text((left + wide) / 2, bottom + 34, "frames from the anchor", "pale small", "middle")
    x = left
    for i, (name, errors) in enumerate(cells):
        drawing.line(x, 12, x + 22, 12, f"line {run_paint(i)}")
        drawing.dot(x + 11, 12, f"mark {run_paint(i)}", i)
        drawing.text(x + 28, 16, cut(name, 40), "small")
        x += 44 + width_of(cut(name, 40), 11)
        for side in (-1, 1):
            points = [(over(o), down(share)) for o, share in errors.error.items() if o * side > 0]
            if len(points) > 1:
                drawing.path(points, f"line {run_paint(i)}")
        for offset, share in errors.error.items():
            drawing.dot(
                over(offset),
                down(share),
                f"mark {run_paint(i)}",
                i,
                f"{name}, {offset:+d}: {percent(share)} % wrong",
                3.2,
            )
    return drawing.svg()


TIMELINE_WIDE, LEFT, TRACK, GAP = 900.0, 96.0, 20, 12
Span = tuple[float, float]


def draw_lost_shares(shares: Mapping[str, Sequence[tuple[int, float]]], label: str) -> str:
    """Steps of the share of items that damage of at most so many frames loses, a line for each kind."""
    names = [cut(short_name(kind), 26) for kind in shares]
    wide, tall, left, top = 620.0, 220.0, 46.0, 14.0
    right = wide - max(width_of(name) for name in names) - 30
    longest = max([2, *(n for points in shares.values() for n, _ in points)])
    over, down = Scale(0, math.log2(longest), left, right), Scale(0, 1, top + tall, top)
    drawing = Drawing(wide, top + tall + 42, label)
    for tick in ticks(0, 1):
        drawing.line(left, down(tick), right, down(tick), "grid")
        drawing.text(left - 6, down(tick) + 4, percent(tick, 0), "pale small", "end")
    for power in range(math.floor(math.log2(longest)) + 1):
        drawing.text(over(power), top + tall + 16, str(2**power), "pale small", "middle")
    drawing.text((left + right) / 2, top + tall + 34, "damaged frames in a row", "pale small", "middle")
    for i, ((kind, points), name) in enumerate(zip(shares.items(), names, strict=True)):
        line, share = [(over(0), down(0.0))], 0.0
        for n, value in points:
            line += [(over(math.log2(n)), down(share)), (over(math.log2(n)), down(value))]
            share = value
        line.append((right, down(share)))
        drawing.path(line, f"line {run_paint(i)}")
        drawing.dot(right + 10, top + 12 + 20 * i, f"mark {run_paint(i)}", i)
        drawing.text(
            right + 20, top + 16 + 20 * i, name, "small", hint=f"{kind}: {percent(share)} % are lost in the end"
        )
    return drawing.svg()


def draw_frailty(curve: ProbedCurve, point: ItemBreakingPoint, fps: float, clean: float, threshold: float) -> str:
    """Score of an item with one damaged frame, over the position of that frame, with the clean score and threshold."""
    wide, tall, left, top = 440.0, 120.0, 40.0, 10.0
    seconds = [position / fps for position in curve.positions]
    low, high = min([threshold, *curve.scores]), max([clean, *curve.scores])
    over = Scale(seconds[0], seconds[-1] if len(seconds) > 1 else seconds[0] + 1 / fps, left, wide - 22)
    down = Scale(low, high if high > low else low + 0.01, top + tall, top)
    drawing = Drawing(wide, top + tall + 44, f"frailty curve of an item in {point.video}")
    for tick in ticks(low, high, 4):
        drawing.line(left, down(tick), wide - 22, down(tick), "grid")
        drawing.text(left - 6, down(tick) + 4, f"{tick:g}", "pale small", "end")
    for tick in ticks(over.low, over.high, 5):
        drawing.text(over(tick), top + tall + 26, f"{tick:g} s", "pale small", "middle")
    drawing.line(left, down(clean), wide - 22, down(clean), "reach clean")
    drawing.line(left, down(threshold), wide - 22, down(threshold), "axis")
    drawing.path([(over(at), down(score)) for at, score in zip(seconds, curve.scores, strict=True)], "line run0")
    each = max((over.stop - over.start) / max(len(seconds), 1), 1.5)
    for position in curve.lost:
        hint = f"lost with one damaged frame at {position / fps:.2f} s"
        drawing.rect(over(position / fps) - each / 2, top + tall + 4, each, 6, "lost-at", hint)
    if point.position is not None and point.frames is not None and point.frames > 1:
        start, end = over(point.position / fps), over(min((point.position + point.frames) / fps, over.high))
        drawing.rect(
            start, top + tall + 4, max(end - start, each), 6, "lost-at", f"lost to these {point.frames} frames"
        )
    drawing.text(wide - 22, down(clean) - 4, "clean", "pale small", "end")
    return drawing.svg()


def draw_timeline(timeline: VideoTimeline, corrupted: Sequence[Span] | None, end_s: float) -> str:
    """Three bands of tracks over one axis; a wrong detection is open and says what is wrong with it.

    Args:
        corrupted: stretches in seconds; None where they are not known.
        end_s: when the video ends.
    """
    bands: list[tuple[str, Sequence[AnnotatedAction | Detection]]] = [
        ("truth", timeline.actions),
        ("clean", timeline.clean),
        ("corrupted", timeline.corrupted),
    ]
    laid = [(name, parts, _assign_tracks(parts)) for name, parts in bands]
    tops, y = [], 22.0
    for _, _, tracks in laid:
        tops.append(y)
        y += max([*tracks, 0], default=0) * TRACK + TRACK + GAP
    end = max(end_s, timeline.end, 1e-3)
    drawing = Drawing(TIMELINE_WIDE, y + 22, f"{timeline.video}: truth, clean and corrupted detections")
    over = Scale(0, end, LEFT, TIMELINE_WIDE - 8)
    for a, b in corrupted or ():
        drawing.rect(
            over(a), 18, max(over(b) - over(a), 1.2), y - 18, "corrupted-span", f"corrupted, {a:.2f} to {b:.2f} s"
        )
    for tick in ticks(0, end, 10):
        drawing.line(over(tick), y, over(tick), y + 4, "axis")
        drawing.text(over(tick), y + 17, f"{tick:g} s", "pale small", "middle")
    drawing.line(LEFT, y, TIMELINE_WIDE - 8, y, "axis")
    for (name, parts, tracks), top in zip(laid, tops, strict=True):
        drawing.text(LEFT - 10, top + 14, name, "strong small", "end")
        for part, track in zip(parts, tracks, strict=True):
            _draw_bar(drawing, part, name, over, top + track * TRACK)
    return drawing.svg()


def _draw_bar(drawing: Drawing, part: AnnotatedAction | Detection, band: str, over: Scale, y: float) -> None:
    x, wide = over(part.start), max(over(part.end) - over(part.start), 2.0)
    span = f"{part.start:.2f} to {part.end:.2f} s"
    if isinstance(part, AnnotatedAction):
        state = "found before and after" if part.found_clean and part.found_corrupted else (
            "lost to the corruption" if part.lost else "found only under the corruption" if part.found_corrupted
            else "missed before and after")  # fmt: skip
        kind, words, hint = f"action{' gone' if part.lost else ''}", part.label, f"{part.label}, {span}: {state}"
    else:
        right = part.kind == "true_positive"
        kind = f"found {band}" if right else f"wrong {band}"
        words = part.label if right else f"{part.label}: {NAMES[part.kind]}"
        hint = f"{part.label}, {span}: {NAMES[part.kind]}, tIoU {part.tiou:.2f}, score {part.score:.2f}"
    drawing.rect(x, y + 1, wide, TRACK - 3, kind, hint, r=3)
    room = int((wide - 6) / width_of("x", 10.5))
    label = words if len(words) <= room else cut(part.label, room)
    if room >= 3:
        drawing.text(x + 4, y + 13.5, label, f"small in-{kind.split()[0]}", hint=hint)


def _assign_tracks(parts: Sequence[AnnotatedAction | Detection]) -> list[int]:
    """The track of each, so that none covers another; they come by their beginning."""
    free: list[float] = []
    drawing = []
    for part in parts:
        track = next((i for i, until in enumerate(free) if until <= part.start), len(free))
        if track == len(free):
            free.append(0.0)
        free[track] = part.end
        drawing.append(track)
    return drawing
