"""DETAD's characteristics of actions: how well those of each bucket are detected, and how many are missed."""

from __future__ import annotations

from collections.abc import Mapping

from jostle.evaluation.results.record import Buckets
from jostle.reporting.analysis.error_profile import ProfileSide
from jostle.reporting.analysis.verdict import percent
from jostle.reporting.charts.bars import COLUMN
from jostle.reporting.charts.drawing import Drawing, Scale, run_paint, stack, width_of, words_in

NAMES = {
    "context-size": "context size",
    "context-distance": "context distance",
    "agreement": "agreement",
    "coverage": "coverage",
    "length": "length",
    "num-instances": "instances",
}
PAINTS = {name: run_paint(number) for number, name in enumerate(NAMES)}
ORDER = (*"0123456", "XW", "W", "XS", "S", "N", "M", "F", "Inf", "L", "XL", "H", "XH")
LEFT, RIGHT, GAP = 30.0, 36.0, 12.0  # pixels for the scale, for the level of all, and between groups
MOST_BARS = 15  # in a row
Groups = Mapping[str, Mapping[str, float]]  # values by characteristic and bucket, in the order in which they are drawn


def draw_sensitivity(side: ProfileSide) -> Drawing:
    """Draw average mAP_N on the actions of each bucket, and below the spread of each characteristic."""
    groups = _groups(side.sensitivity)
    rows = _draw_rows(groups, side.base, "average mAP_N by characteristic of actions, %")
    return stack("Sensitivity by characteristic", *rows, _draw_spread(groups, side.base or 0.0), gap=14)


def draw_missed(side: ProfileSide) -> Drawing:
    """Draw the share of actions missed in each bucket."""
    rows = _draw_rows(_groups(side.missed_by), side.missed, "missed actions by characteristic, %")
    return stack("False negatives by characteristic", *rows, gap=14)


def _groups(buckets: Buckets) -> Groups:
    """Return the characteristics that a diagnosis has and their buckets in DETAD's order, empty ones left out."""
    groups = {}
    for name in NAMES:
        known = {bucket: value for bucket, value in buckets.get(name, {}).items() if value is not None}
        order = sorted(known, key=lambda bucket: ORDER.index(bucket) if bucket in ORDER else len(ORDER))
        groups[name] = {bucket: known[bucket] for bucket in order}
    return {name: known for name, known in groups.items() if known}


def _draw_rows(groups: Groups, level: float | None, title: str) -> list[Drawing]:
    """Draw as many rows as are needed for bars that have room for their numbers, all on one scale."""
    rows: list[dict[str, Mapping[str, float]]] = [{}]
    for name, buckets in groups.items():
        if rows[-1] and sum(map(len, rows[-1].values())) + len(buckets) > MOST_BARS:
            rows.append({})
        rows[-1][name] = buckets
    highest = max([0.02, level or 0.0, *(value for buckets in groups.values() for value in buckets.values())])
    widest = max(sum(map(len, row.values())) for row in rows)
    slot = min((COLUMN - LEFT - RIGHT - GAP * max(len(row) for row in rows)) / max(widest, 1), 34.0)
    return [_draw_row(row, level, highest, slot, "" if number else title) for number, row in enumerate(rows)]


def _draw_row(groups: Groups, level: float | None, highest: float, slot: float, title: str) -> Drawing:
    top, tall = 30.0 if title else 14.0, 118.0
    bottom, right = top + tall, COLUMN - RIGHT
    drawing = Drawing(COLUMN, bottom + 36, title or "more characteristics")
    drawing.text(0, 14, title, "small strong")
    down = Scale(0, 1.12 * highest, bottom, top)
    drawing.levels(down, LEFT, right, lambda tick: f"{100 * tick:g}", 4)
    x, numbers = LEFT + GAP / 2, []
    for name, buckets in groups.items():
        first = x
        for bucket, value in buckets.items():
            drawing.rect(x + 1, down(value), slot - 2, bottom - down(value), f"bar {PAINTS[name]}",
                         f"{NAMES[name]} {bucket}: {percent(value)} %")  # fmt: skip
            drawing.text(x + slot / 2, bottom + 13, bucket, "tiny", "middle")
            numbers.append((x + slot / 2, down(value), percent(value)))
            x += slot
        drawing.text((first + x) / 2, bottom + 29, NAMES[name], "small", "middle")
        x += GAP
    if level is not None:
        drawing.line(LEFT, down(level), right, down(level), "level")
        drawing.text(right + 3, down(level) + 4, percent(level), "small")
    for middle, y, words in numbers:  # the line passes behind them
        wide = width_of(words, 9)
        drawing.rect(middle - wide / 2, y - 12, wide, 10, "ground")
    for middle, y, words in numbers:
        drawing.text(middle, y - 3.5, words, "tiny", "middle")
    return drawing


def _draw_spread(groups: Groups, base: float) -> Drawing:
    """Draw the least and the greatest value of each characteristic, relative to that of all actions."""
    top, tall = 34.0, 96.0
    bottom = top + tall
    drawing = Drawing(COLUMN, bottom + 36, "least and greatest, relative to all actions")
    drawing.text(0, 14, "least and greatest mAP_N, relative to all actions", "small strong")
    spreads = {name: (min(of.values()) / base, max(of.values()) / base) for name, of in groups.items() if base}
    ends = [1.0, *(end for spread in spreads.values() for end in spread)]
    down = Scale(min(ends) - 0.02, max(ends) + 0.02, bottom - 16, top + 10)
    drawing.levels(down, LEFT, COLUMN - RIGHT, lambda tick: f"{tick:g}", 4)
    drawing.line(LEFT, down(1), COLUMN - RIGHT, down(1), "axis")
    slot = (COLUMN - LEFT - RIGHT) / max(len(spreads), 1)
    for number, (name, (low, high)) in enumerate(spreads.items()):
        middle = LEFT + (number + 0.5) * slot
        drawing.rect(middle - 5, down(high), 10, max(down(low) - down(high), 1.0), f"bar {PAINTS[name]}",
                     f"{NAMES[name]}: {low:.2f} to {high:.2f} of that of all")  # fmt: skip
        drawing.text(middle, down(high) - 3, f"{high:.2f}", "tiny", "middle")
        drawing.text(middle, down(low) + 10, f"{low:.2f}", "tiny", "middle")
        for line, words in enumerate(words_in(NAMES[name], slot)):
            drawing.text(middle, bottom + 14 + 13 * line, words, "small", "middle")
    return drawing
