"""Charts of scores: the map of cells, curves over severity, and classes before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jostle.core.types.columns import Floats
from jostle.reporting.analysis.comparison import RunComparison
from jostle.reporting.analysis.drops import Drop
from jostle.reporting.analysis.grid import Grid, short_name
from jostle.reporting.analysis.resampling import Estimate
from jostle.reporting.analysis.verdict import percent
from jostle.reporting.html.svg import Drawing, Scale, cut, run_paint, ticks, width_of

# Shares of the clean score that are lost, at which the colour of a square steps on: the same on every page, so that
# two pages can be compared.
STEPS = (0.02, 0.05, 0.10, 0.20, 0.30, 0.45, 0.60, 0.80)
MOST_CLASSES = 40
FACETS = 4  # curves in a row, at most
WIDE = 936.0
LONGEST = 26  # letters of a name beside a chart


def step_of(relative: float | None) -> str:
    """The class of a square by what is left of the clean score.

    >>> step_of(1.0), step_of(0.97), step_of(0.1), step_of(1.05), step_of(None)
    ('h0', 'h1', 'h8', 'above', 'none')
    """
    if relative is None:
        return "none"
    if relative > 1 + STEPS[0]:
        return "above"
    return f"h{sum(1 - relative >= edge for edge in STEPS)}"


@dataclass(frozen=True)
class Square:
    """A square of the map.

    Attributes:
        value: its score.
        relative: what is left of the clean one.
        address: where its detail is.
    """

    value: float | None
    relative: float | None
    address: str
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
            drawing.text(0, y - 7, "beside the benchmark, in no mean", "pale small")
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
            drawing.close("a")
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


def draw_classes(drops: Sequence[Drop], metric: str, wide: float = 720) -> str:
    """Every class before and after, the greatest loss on top; at most 40, the hardest hit."""
    worst = list(drops[:MOST_CLASSES])
    names = [cut(drop.name, LONGEST) for drop in worst]
    left = max(width_of(name) for name in names) + 14
    tall, top = 21, 30
    drawing = Drawing(wide, top + tall * len(worst) + 26, f"{metric} of each class, clean and corrupted")
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
