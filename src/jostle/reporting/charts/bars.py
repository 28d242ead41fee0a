"""Bars of DETAD's analysis: kinds of error, what each costs, and who is hit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jostle.metrics.diagnosis.false_positives import ERROR_KINDS, ERRORS
from jostle.reporting.analysis.error_profile import ProfileSide
from jostle.reporting.analysis.verdict import percent
from jostle.reporting.charts.drawing import Drawing, Scale, cut, run_paint, width_of, words_in

NAMES = {
    "true_positive": "right",
    "double_detection": "double detection",
    "wrong_label": "wrong label",
    "localization": "localization",
    "confusion": "confusion",
    "background": "background",
}
STROKES = {"double_detection": "/", "wrong_label": "-", "localization": "\\", "confusion": "/\\"}
RUN_STROKES = ("", "/", "-", "\\", "/\\")
COLUMN = 420  # width of what is drawn for a column of a paper
Sides = Sequence[tuple[str, ProfileSide]]  # what each is called


def draw_profile(sides: Sides, wide: float = 760) -> Drawing:
    """Draw the kinds of error among the most confident detections, as many as there are actions."""
    left = max(width_of(cut(name, 40)) for name, _ in sides) + 14
    tall, top = 34, _legend_height(wide) + 14
    drawing = Drawing(wide, top + tall * len(sides), "Kinds of error among the most confident detections")
    _draw_legend(drawing, wide)
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
                    (over(begin) + over(begin + part)) / 2, y + 18, percent(part, 0), f"small on on-{kind}", "middle"
                )
            begin += part
    return drawing


def _legend_places(wide: float) -> list[tuple[str, float, float]]:
    places, x, y = [], 0.0, 0.0
    for kind in ERROR_KINDS:
        needed = 34 + width_of(NAMES[kind], 11)
        if x + needed > wide:
            x, y = 0.0, y + 22
        places.append((kind, x, y))
        x += needed
    return places


def _legend_height(wide: float) -> float:
    return _legend_places(wide)[-1][2] + 22


def _draw_legend(drawing: Drawing, wide: float, top: float = 6.0, *, hatched: bool = False) -> None:
    for kind, x, y in _legend_places(wide):
        drawing.rect(x, top + y, 14, 14, f"kind {kind}", r=0 if hatched else 2)
        if hatched:
            drawing.hatch(x, top + y, 14, 14, STROKES.get(kind, ""))
        drawing.text(x + 19, top + y + 12, NAMES[kind], "small")


def draw_splits(sides: Sides, wide: float = COLUMN) -> Drawing:
    """Draw DETAD's profile: the kinds of error among the first G detections, the second G, and so on.

    G is the number of actions. A second side has the right one of two bars.
    """
    left, top, tall = 34.0, 24.0 if len(sides) < 2 else 40.0, 190.0
    bottom = top + tall
    drawing = Drawing(wide, bottom + 46 + _legend_height(wide), "Kinds of error by confidence of the detections")
    drawing.text(0, 14, "share of detections, %", "small strong")
    if len(sides) > 1:
        drawing.text(0, 30, ", ".join(_placed(sides)), "small")
    down = Scale(0, 1, bottom, top)
    drawing.levels(down, left, wide, lambda tick: percent(tick, 0))
    count = len(sides[0][1].splits)
    slot = (wide - left) / count
    bar = (slot - (2 if len(sides) < 2 else 5)) / len(sides)
    for i in range(count):
        middle = left + (i + 0.5) * slot
        drawing.text(middle, bottom + 16, f"{i + 1}G", "small", "middle")
        for number, (name, side) in enumerate(sides):
            x = middle + (number - len(sides) / 2) * bar
            _draw_stack(drawing, x, bar - (len(sides) > 1), down, side.splits[i], f"{name}, {i + 1}G")
    words = "detections by confidence, in units of the number of actions (G)"
    drawing.text((left + wide) / 2, bottom + 33, words, "pale small", "middle")
    _draw_legend(drawing, wide, bottom + 46, hatched=True)
    return drawing


def _placed(sides: Sides) -> list[str]:
    """Names with the place of their bars in each pair."""
    places = ("left", "right") if len(sides) == 2 else [f"bar {number}" for number in range(1, len(sides) + 1)]
    return [f"{cut(name, 24)} ({place})" for (name, _), place in zip(sides, places, strict=True)]


def _draw_stack(
    drawing: Drawing, x: float, width: float, down: Scale, shares: Mapping[str, float | None], words: str
) -> None:
    below = 0.0
    for kind in ERROR_KINDS:
        part = shares[kind] or 0.0
        if part:
            y, height = down(below + part), down(below) - down(below + part)
            drawing.rect(x, y, width, height, f"kind {kind}", f"{words}: {NAMES[kind]} {percent(part)} %")
            drawing.hatch(x, y, width, height, STROKES.get(kind, ""))
            if below:
                drawing.line(x, down(below), x + width, down(below), "seam")
        below += part


def draw_impact(sides: Sides, wide: float = 760) -> Drawing:
    """Draw the gain of average mAP_N if each kind of error were removed."""
    groups = {NAMES[kind]: [(name, side.impact[kind]) for name, side in sides] for kind in ERRORS}
    return _bars(groups, "points of mAP_N gained if the kind vanished", signed=True, wide=wide)


def draw_missed_shares(sides: Sides) -> Drawing:
    """Draw the share of all actions that each side misses, a lying bar a side."""
    left = max(width_of(cut(name, 20), 11) for name, _ in sides) + 10
    top, tall = 24.0, 18.0
    drawing = Drawing(COLUMN, top + tall * len(sides), "Missed actions")
    drawing.text(0, 14, "missed actions, %", "small strong")
    over = Scale(0, max([0.02, *(side.missed or 0.0 for _, side in sides)]), left, COLUMN - 40)
    for number, (name, side) in enumerate(sides):
        y = top + tall * number
        drawing.text(left - 6, y + 12, cut(name, 20), "small", "end", hint=name)
        width = over(side.missed or 0.0) - left
        _draw_bar(drawing, left, y + 1, width, tall - 3, number, len(sides), f"{name}: {percent(side.missed)} %")
        drawing.text(left + width + 5, y + 12, percent(side.missed), "tiny")
    return drawing


def draw_buckets(sides: Sides, characteristic: str, missed: bool) -> Drawing:
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
) -> Drawing:
    """Groups of upright bars; the first of each is clean."""
    many = max((len(bars) for bars in groups.values()), default=1)
    top, bottom, left = 30, 190, 40.0
    slot = (wide - left) / max(len(groups), 1)
    bar = min(34.0, (slot - 14) / many)
    lines = max((len(words_in(group, slot)) for group in groups), default=1)
    legend = bottom + 17 + 13 * lines
    named = many > 1 or any(name for bars in groups.values() for name, _ in bars)
    drawing = Drawing(wide, legend + (16 if named else -8), label)
    values = [value for bars in groups.values() for _, value in bars if value is not None]
    over = Scale(min([0.0, *values]), max([0.02, *values]) * 1.08, bottom, top)
    drawing.text(0, 14, label, "small strong")
    drawing.levels(over, left, wide, lambda tick: f"{100 * tick:g}", 4)
    for g, (group, bars) in enumerate(groups.items()):
        middle = left + (g + 0.5) * slot
        for number, line in enumerate(words_in(group, slot)):
            drawing.text(middle, bottom + 18 + 13 * number, line, "small", "middle")
        for b, (name, value) in enumerate(bars):
            if value is None:
                continue
            x = middle + (b - len(bars) / 2) * bar
            y = min(over(value), over(0))
            words = f"{100 * value:+z.1f}" if signed else percent(value)
            _draw_bar(drawing, x + 1, y, bar - 2, abs(over(value) - over(0)), b, many, f"{name}: {words}")
            if bar >= 26:
                drawing.text(x + bar / 2, y - 4, words, "tiny", "middle")
    x = left
    for b, (name, _) in enumerate(next(iter(groups.values()), []) if named else []):
        _draw_bar(drawing, x, legend, 12, 12, b, many)
        drawing.text(x + 17, legend + 10, cut(name, 30), "small")
        x += 32 + width_of(cut(name, 30), 11)
    return drawing


def _draw_bar(
    drawing: Drawing, x: float, y: float, width: float, height: float, bar: int, many: int, hint: str = ""
) -> None:
    """Clean and corrupted in their own colours; with several runs each run in its colour, clean pale.

    Those that would look alike in grey are hatched.
    """
    if many <= 2:
        kind, strokes = ("clean", "corrupted")[bar], ("", "/")[bar]
    else:
        kind, strokes = f"{run_paint(bar // 2)}{'' if bar % 2 else ' soft'}", RUN_STROKES[bar // 2 % len(RUN_STROKES)]
    drawing.rect(x, y, width, height, f"bar {kind}", hint)
    drawing.hatch(x, y, width, height, strokes)
