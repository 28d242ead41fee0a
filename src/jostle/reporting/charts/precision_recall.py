"""Precision of a detector against recall, a curve for each threshold."""

from __future__ import annotations

from collections.abc import Mapping

from jostle.core.types.columns import Floats
from jostle.errors import BadValue
from jostle.reporting.analysis.verdict import percent
from jostle.reporting.charts.drawing import Drawing, Scale, run_paint, ticks

LEFT, TOP, SIDE = 40.0, 10.0, 300.0  # pixels; both axes go from 0 to 1


def draw_precision_recall(curves: Mapping[str, tuple[Floats, Floats]]) -> Drawing:
    """Draw one (recall, precision) curve for each name, distinct in colour and dashes."""
    if not curves:
        raise BadValue("a precision-recall figure needs a curve")
    right, bottom = LEFT + SIDE, TOP + SIDE
    drawing = Drawing(right + 14, bottom + 44 + 18 * len(curves), "Precision against recall")
    over, down = Scale(0, 1, LEFT, right), Scale(0, 1, bottom, TOP)
    drawing.levels(down, LEFT, right, lambda tick: percent(tick, 0))
    for tick in ticks(0, 1):
        drawing.line(over(tick), TOP, over(tick), bottom, "grid")
        drawing.text(over(tick), bottom + 16, percent(tick, 0), "pale small", "middle")
    drawing.text(LEFT + SIDE / 2, bottom + 33, "recall, %", "pale small", "middle")
    drawing.text(10, TOP + SIDE / 2, "precision, %", "pale small", "middle", turn=-90)
    for number, (name, (recall, precision)) in enumerate(curves.items()):
        points = [(over(float(x)), down(float(y))) for x, y in zip(recall, precision, strict=True)]
        drawing.path(points, f"line {run_paint(number)}", hint=name)
        y = bottom + 52 + 18 * number
        drawing.line(LEFT, y - 4, LEFT + 26, y - 4, f"line {run_paint(number)}")
        drawing.text(LEFT + 34, y, name, "small")
    return drawing
