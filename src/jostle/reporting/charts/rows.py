"""Rows of marks on one scale: each class before and after, and the difference of two runs in each cell."""

from __future__ import annotations

from collections.abc import Sequence

from jostle.evaluation.results.comparison import RunComparison
from jostle.evaluation.results.run_analysis import Drop
from jostle.reporting.analysis.labels import short_name
from jostle.reporting.analysis.verdict import percent
from jostle.reporting.charts.drawing import Drawing, Scale, cut, ticks, width_of

MOST_CLASSES = 40
LONGEST = 26  # letters of a name beside a chart


def draw_classes(
    drops: Sequence[Drop],
    metric: str,
    wide: float = 720,
    group: str = "class",
    names: tuple[str, str] = ("clean", "corrupted, mean over cells"),
) -> Drawing:
    """Every class, or other group, before and after, the greatest loss on top; at most 40, the hardest hit."""
    worst = list(drops[:MOST_CLASSES])
    labels = [cut(drop.name, LONGEST) for drop in worst]
    left = max(width_of(label) for label in labels) + 14
    tall, top = 21, 30
    before, after = (cut(name, LONGEST) for name in names)
    drawing = Drawing(wide, top + tall * len(worst) + 26, f"{metric} of each {group}, {before} and {after}")
    over = Scale(0, 1, left + 6, wide - 66)
    for tick in ticks(0, 1):
        drawing.line(over(tick), top - 6, over(tick), top + tall * len(worst), "grid")
        drawing.text(over(tick), top + tall * len(worst) + 16, percent(tick, 0), "pale small", "middle")
    drawing.dot(left + 12, 9, "mark clean", 0)
    drawing.text(left + 22, 13, before, "small")
    second = left + 48 + width_of(before, 11)
    drawing.dot(second, 9, "mark corrupted", 1)
    drawing.text(second + 10, 13, after, "small")
    drawing.text(wide, 13, "points", "pale small", "end")
    for i, (drop, label) in enumerate(zip(worst, labels, strict=True)):
        y = top + i * tall + tall / 2
        hint = f"{drop.name}: {percent(drop.clean)} {before}, {percent(drop.corrupted)} {after}"
        hint += f"; least, {percent(drop.worst)}, under {drop.worst_cell}" if drop.worst_cell else ""
        drawing.text(left - 6, y + 4, label, "", "end", hint=drop.name)
        drawing.line(over(drop.clean), y, over(drop.corrupted), y, "lost" if drop.loss > 0 else "won")
        drawing.dot(over(drop.clean), y, "mark clean", 0, hint)
        drawing.dot(over(drop.corrupted), y, "mark corrupted", 1, hint)
        drawing.text(wide, y + 4, f"{-100 * drop.loss:+z.1f}".replace("-", "−"), "small", "end")
    return drawing


def draw_differences(comparison: RunComparison, one: str, other: str) -> Drawing:
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
    return drawing
