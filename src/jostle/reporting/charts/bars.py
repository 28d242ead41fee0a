"""Bars of DETAD's analysis: kinds of error, what each costs, and who is hit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jostle.metrics.diagnosis.false_positives import ERROR_KINDS, ERRORS
from jostle.reporting.analysis.error_profile import ProfileSide
from jostle.reporting.analysis.verdict import percent
from jostle.reporting.charts.drawing import Drawing, Scale, cut, run_paint, width_of

NAMES = {
    "true_positive": "right",
    "double_detection": "double detection",
    "wrong_label": "wrong label",
    "localization": "localization",
    "confusion": "confusion",
    "background": "background",
}
Sides = Sequence[tuple[str, ProfileSide]]  # what each is called


def draw_profile(sides: Sides, wide: float = 760) -> Drawing:
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
                    (over(begin) + over(begin + part)) / 2, y + 18, percent(part, 0), f"small on on-{kind}", "middle"
                )
            begin += part
    return drawing


def draw_impact(sides: Sides) -> Drawing:
    """Draw the gain of average mAP_N if each kind of error were removed."""
    groups = {NAMES[kind]: [(name, side.impact[kind]) for name, side in sides] for kind in ERRORS}
    return _bars(groups, "points of mAP_N gained if the kind vanished", signed=True)


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
    drawing = Drawing(wide, 236, label)
    values = [value for bars in groups.values() for _, value in bars if value is not None]
    over = Scale(min([0.0, *values]), max([0.02, *values]) * 1.08, bottom, top)
    drawing.text(0, 14, label, "small strong")
    drawing.levels(over, left, wide, lambda tick: f"{100 * tick:g}", 4)
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
    return drawing


def _paint(bar: int, many: int) -> str:
    """Clean and corrupted in their own colours; with several runs each run in its colour, clean pale."""
    if many <= 2:
        return f"bar {('clean', 'corrupted')[bar]}"
    return f"bar {run_paint(bar // 2)}{'' if bar % 2 else ' soft'}"
