"""Scatter plot of frame classifiers: accuracy against pm-k, as in figure 3 of Shankar et al. (2021)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jostle.reporting.analysis.stability import Stabilities, Stability
from jostle.reporting.analysis.verdict import percent
from jostle.reporting.charts.drawing import Drawing, Scale, cut, ticks

MOST_NAMES = 12  # more are in the table only
LEAST_FOR_A_LINE = 3
LONGEST = 34  # letters of a name


def draw_stability(found: Stabilities) -> Drawing:
    """A point a classifier, with its intervals; dashed, where a classifier would be that no neighbour misleads.

    The line through the points is one of least squares, drawn for three and more; published classifiers are hollow.
    """
    published = () if found.apart else found.published
    left, top, side = 52.0, 12.0, 408.0
    drawing = Drawing(left + side + 18, top + side + 46, f"accuracy against pm-{found.k}, {found.title}")
    reached = [end for one in (*found.runs, *published) for end in _reach(one)]
    low, high = max(0.0, min(reached) - 0.04), min(1.0, max(reached) + 0.04)
    over, down = Scale(low, high, left, left + side), Scale(low, high, top + side, top)
    drawing.levels(down, left, left + side, lambda tick: percent(tick, 0))
    for tick in ticks(low, high):
        drawing.line(over(tick), top, over(tick), top + side, "grid")
        drawing.text(over(tick), top + side + 16, percent(tick, 0), "pale small", "middle")
    drawing.text(left + side / 2, top + side + 36, "accuracy on single frames, %", "pale small", "middle")
    drawing.text(14, top + side / 2, f"pm-{found.k}, %", "pale small", "middle", turn=-90)
    drawing.line(over(low), down(low), over(high), down(high), "same")
    entries = [("same", "no drop")]
    if fit := _fit(found.runs):
        slope, *ends = fit
        drawing.path([(over(x), down(y)) for x, y in ends], "line fit run1")
        entries.append(("line run1", f"linear fit, slope {slope:.2f}"))
    for one in published:
        hint = f"{one.name}, as published: {_words(one, found.k)}"
        drawing.dot(over(one.accuracy), down(one.pm_k), "mark open run5", 1, hint)
    for one in found.runs:
        _draw_point(drawing, one, over, down, found.k)
    _draw_legend(drawing, entries, left + 10, top + 16, published=bool(published))
    if len(found.runs) <= MOST_NAMES:
        _name(drawing, found.runs, over, down, (left + side - 8, top + side - 10))
    return drawing


def _draw_point(drawing: Drawing, one: Stability, over: Scale, down: Scale, k: int) -> None:
    x, y = over(one.accuracy), down(one.pm_k)
    if one.accuracy_interval is not None:
        drawing.line(over(one.accuracy_interval[0]), y, over(one.accuracy_interval[1]), y, "spread run0")
    if one.pm_k_interval is not None:
        drawing.line(x, down(one.pm_k_interval[0]), x, down(one.pm_k_interval[1]), "spread run0")
    drawing.dot(x, y, "mark run0", 0, f"{one.name}: {_words(one, k)}")


def _draw_legend(drawing: Drawing, lines: list[tuple[str, str]], x: float, y: float, *, published: bool) -> None:
    for kind, words in lines:
        drawing.line(x, y - 4, x + 22, y - 4, kind)
        drawing.text(x + 30, y, words, "small")
        y += 18
    if published:
        drawing.dot(x + 11, y - 4, "mark open run5", 1)
        drawing.text(x + 30, y, "as published", "small")
        y += 18
    drawing.dot(x + 11, y - 4, "mark run0")
    drawing.text(x + 30, y, "a classifier, 95 % interval", "small")


def _name(drawing: Drawing, runs: tuple[Stability, ...], over: Scale, down: Scale, corner: tuple[float, float]) -> None:
    """A number beside each point, and names in the corner that no point comes to, as neighbours only take away."""
    for number, one in enumerate(runs, 1):
        drawing.text(over(one.accuracy) - 5, down(one.pm_k) - 6, str(number), "small", "end")
        line = corner[1] - 16 * (len(runs) - number)
        drawing.text(corner[0], line, f"{number}  {cut(one.name, LONGEST)}", "small", "end")


def _fit(runs: tuple[Stability, ...]) -> tuple[float, tuple[float, float], tuple[float, float]] | None:
    """Return slope and ends of the line of least squares; None where there is none."""
    x, y = (np.array([getattr(one, what) for one in runs]) for what in ("accuracy", "pm_k"))
    if len(runs) < LEAST_FOR_A_LINE or not np.ptp(x):
        return None
    slope, begin = map(float, np.polyfit(x, y, 1))
    first, last = float(x.min()), float(x.max())
    return slope, (first, slope * first + begin), (last, slope * last + begin)


def _reach(one: Stability) -> Iterator[float]:
    yield from (one.accuracy, one.pm_k, *(one.accuracy_interval or ()), *(one.pm_k_interval or ()))


def _words(one: Stability, k: int) -> str:
    return f"accuracy {percent(one.accuracy)}, pm-{k} {percent(one.pm_k)}"
