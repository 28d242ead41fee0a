"""Maps of coloured squares: what each cell loses, and which confusions of classes grew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jostle.core.types.columns import Floats
from jostle.reporting.analysis.labels import Grid
from jostle.reporting.analysis.loss_steps import STEPS, step_of
from jostle.reporting.analysis.verdict import percent
from jostle.reporting.charts.drawing import Drawing, cut, width_of


@dataclass(frozen=True)
class Square:
    """A square of the map."""

    value: float | None  # its score
    relative: float | None  # what is left of the clean one
    address: str  # where its detail is
    hint: str


def draw_heat_map(grid: Grid, squares: Mapping[str, Square], label: str) -> Drawing:
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
    return drawing


def _draw_steps(drawing: Drawing, x: float, y: float) -> None:
    drawing.text(x - 10, y + 12, "lost of clean", "pale small", "end")
    wide = 27
    for i in range(len(STEPS) + 1):
        drawing.rect(x + i * (wide + 1), y, wide, 14, f"square h{i}", r=2)
        drawing.text(x + i * (wide + 1), y + 27, f"{100 * STEPS[i - 1]:.0f}" if i else "0 %", "pale small")
    x += (len(STEPS) + 1) * (wide + 1) + 8
    drawing.rect(x, y, wide, 14, "square above", r=2)
    drawing.text(x, y + 27, "gained", "pale small")


def draw_confusion(classes: Sequence[str], growth: Floats, label: str) -> Drawing:
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
    return drawing


def _growth_step(growth: float, own: bool) -> str:
    """Being right less often is a loss as being wrong more often is."""
    worse = -growth if own else growth
    if worse < -STEPS[0]:
        return "above"
    return f"h{sum(worse >= edge for edge in STEPS)}"
