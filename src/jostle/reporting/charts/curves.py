"""Curves: scores over severity, errors over the distance from an anchor, and what damage costs an item."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jostle.evaluation.probing.predictor import ProbedCurve
from jostle.evaluation.probing.probe import ItemBreakingPoint
from jostle.evaluation.results.pm_k import OffsetErrors
from jostle.evaluation.results.run_analysis import Estimate
from jostle.reporting.analysis.labels import short_name
from jostle.reporting.analysis.verdict import percent
from jostle.reporting.charts.drawing import Drawing, Scale, cut, run_paint, ticks, width_of

FACETS = 4  # curves in a row, at most
WIDE = 936.0


@dataclass(frozen=True)
class Curve:
    """One run in one chart: estimates by severity, 0 is clean."""

    run: int
    points: dict[int, Estimate]


def draw_curves(facets: Mapping[str, Sequence[Curve]], runs: Sequence[str], metric: str) -> Drawing:
    """A chart a corruption, one scale for all: the score over severity, with a band where other videos would put it."""
    across = 3 if len(facets) in (5, 6, 9) else min(FACETS, len(facets))
    wide, tall, top = WIDE / max(across, 2), 168, 34 if len(runs) > 1 else 8
    drawing = Drawing(across * wide, top + -(-len(facets) // across) * tall, f"{metric} over severity, by corruption")
    low, high = _range([point for curves in facets.values() for curve in curves for point in curve.points.values()])
    drawing.legend(8, runs if len(runs) > 1 else (), 44)
    severities = sorted({s for curves in facets.values() for curve in curves for s in curve.points})
    for f, (name, curves) in enumerate(facets.items()):
        ox, oy = f % across * wide, top + f // across * tall
        down = Scale(low, high, oy + tall - 30, oy + 24)
        over = Scale(severities[0], max(severities[-1], 1), ox + 40, ox + wide - 18)
        drawing.text(ox + 36, oy + 14, cut(name, 27), "strong small", hint=name)
        drawing.levels(down, ox + 36, ox + wide - 12, lambda tick: percent(tick, 0), 4, gap=4)
        for severity in severities:
            drawing.text(
                over(severity), oy + tall - 13, "clean" if not severity else str(severity), "pale small", "middle"
            )
        for curve in curves:
            _draw_curve(drawing, curve, over, down)
    return drawing


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


def draw_offsets(cells: Sequence[tuple[str, OffsetErrors]]) -> Drawing:
    """Share of wrong frames by their distance from the anchor."""
    wide, top, bottom, left = 760.0, 40, 240, 44.0
    drawing = Drawing(wide, 278, "Share of wrong frames by distance from the anchor")
    k = max((errors.k for _, errors in cells), default=1)
    values = [share for _, errors in cells for share in errors.error.values()]
    over, down = Scale(-k, k, left + 10, wide - 14), Scale(0, max([0.05, *values]) * 1.05, bottom, top)
    drawing.levels(down, left, wide, lambda tick: f"{100 * tick:g}")
    for tick in (tick for tick in ticks(-k, k, 10) if tick.is_integer()):
        drawing.text(over(tick), bottom + 16, f"{tick:+g}" if tick else "anchor", "pale small", "middle")
    drawing.text((left + wide) / 2, bottom + 34, "frames from the anchor", "pale small", "middle")
    drawing.legend(left, (name for name, _ in cells), 40)
    for i, (name, errors) in enumerate(cells):
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
    return drawing


def draw_lost_shares(shares: Mapping[str, Sequence[tuple[int, float]]], label: str) -> Drawing:
    """Steps of the share of items that damage of at most so many frames loses, a line for each kind."""
    names = [cut(short_name(kind), 26) for kind in shares]
    wide, tall, left, top = 620.0, 220.0, 46.0, 14.0
    right = wide - max(width_of(name) for name in names) - 30
    longest = max([2, *(n for points in shares.values() for n, _ in points)])
    over, down = Scale(0, math.log2(longest), left, right), Scale(0, 1, top + tall, top)
    drawing = Drawing(wide, top + tall + 42, label)
    drawing.levels(down, left, right, lambda tick: percent(tick, 0))
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
    return drawing


def draw_frailty(curve: ProbedCurve, point: ItemBreakingPoint, fps: float, clean: float, threshold: float) -> Drawing:
    """Score of an item with one damaged frame, over the position of that frame, with the clean score and threshold."""
    wide, tall, left, top = 440.0, 120.0, 40.0, 10.0
    seconds = [position / fps for position in curve.positions]
    low, high = min([threshold, *curve.scores]), max([clean, *curve.scores])
    over = Scale(seconds[0], seconds[-1] if len(seconds) > 1 else seconds[0] + 1 / fps, left, wide - 22)
    down = Scale(low, high if high > low else low + 0.01, top + tall, top)
    drawing = Drawing(wide, top + tall + 44, f"frailty curve of an item in {point.video}")
    drawing.levels(down, left, wide - 22, lambda tick: f"{tick:g}", 4)
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
    return drawing
