"""Timelines of a video: true segments, and what was detected clean and corrupted."""

from __future__ import annotations

from collections.abc import Sequence

from jostle.evaluation.tasks.views import AnnotatedAction, Detection, TimelineView
from jostle.reporting.charts.bars import NAMES
from jostle.reporting.charts.drawing import Drawing, Scale, cut, ticks, width_of

WIDE, LEFT, TRACK, GAP = 900.0, 96.0, 20, 12
Span = tuple[float, float]


def draw_timeline(timeline: TimelineView, corrupted: Sequence[Span] | None, end_s: float) -> Drawing:
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
    drawing = Drawing(WIDE, y + 22, f"{timeline.video}: truth, clean and corrupted detections")
    over = Scale(0, end, LEFT, WIDE - 8)
    for a, b in corrupted or ():
        drawing.rect(
            over(a), 18, max(over(b) - over(a), 1.2), y - 18, "corrupted-span", f"corrupted, {a:.2f} to {b:.2f} s"
        )
    for tick in ticks(0, end, 10):
        drawing.line(over(tick), y, over(tick), y + 4, "axis")
        drawing.text(over(tick), y + 17, f"{tick:g} s", "pale small", "middle")
    drawing.line(LEFT, y, WIDE - 8, y, "axis")
    for (name, parts, tracks), top in zip(laid, tops, strict=True):
        drawing.text(LEFT - 10, top + 14, name, "strong small", "end")
        for part, track in zip(parts, tracks, strict=True):
            _draw_bar(drawing, part, name, over, top + track * TRACK)
    return drawing


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
