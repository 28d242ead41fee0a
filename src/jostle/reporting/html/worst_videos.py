"""The videos that are hit hardest: what was lost, and pictures of how."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jostle.errors import JostleError
from jostle.reporting.analysis.answers import Answers, answers_of
from jostle.reporting.analysis.drops import Drop, video_drops
from jostle.reporting.analysis.run_analysis import Survey
from jostle.reporting.analysis.timeline import Timeline, operating_score, timeline_of
from jostle.reporting.html.contents import Figure, Taken, Worst
from jostle.reporting.html.pictures import Span, Strip, strip_of
from jostle.reporting.html.timeline_chart import draw_timeline

BUDGET = 2_800_000  # letters of pictures in a page
ROOM = 0.25  # of an action, shown before and after it


class Album:
    """Takes pictures until the page is heavy enough.

    Attributes:
        left_out: clips and strips that did not fit.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self._left = budget
        self.left_out = 0

    def strip(self, found: Survey, drop: Drop, stretch: Span | None) -> tuple[Strip | None, str]:
        """Pictures of a video, or why there are none."""
        if self._left <= 0:
            self.left_out += 1
            return None, "No pictures: the page has as many as it can carry."
        try:
            made = strip_of(found.record, drop.name, drop.worst_cell, stretch)
        except JostleError as error:
            return None, f"No pictures: {error}"
        if made.weight > self._left:
            self.left_out += 1
            made = made.without_clip()
        self._left -= made.weight
        return made, ""


def worst_of(found: Survey, name: str, run: int, count: int, album: Album, tell: Callable[[], None]) -> list[Worst]:
    """The videos of a run that lose most, each under the corruption that hurts it most.

    Args:
        tell: called after each.
    """
    made = []
    sure = operating_score(found.record) if found.record.task == "detection" else 0.0
    for i, drop in enumerate(video_drops(found)[:count]):
        if drop.loss <= 0:
            break
        made.append(_worst(found, drop, name, f"video-{run}-{i}", album, sure))
        tell()
    return made


def _worst(found: Survey, drop: Drop, name: str, file: str, album: Album, sure: float) -> Worst:
    record, timeline, drawing, taken = found.record, None, None, None
    if record.task == "detection":
        timeline = timeline_of(record, drop.name, drop.worst_cell, sure=sure)
    elif record.task == "recognition":
        taken = _taken(answers_of(record, drop.name, drop.worst_cell))
    strip, why = album.strip(found, drop, None if timeline is None else _stretch(timeline))
    if timeline is not None:
        struck, end = (strip.struck, strip.end_s) if strip is not None else (None, 0.0)
        drawing = Figure(file, "", draw_timeline(timeline, struck, end))
    return Worst(drop.name, name, drop.worst_cell, drop.clean, drop.worst, drawing, timeline, taken, strip, why)


def _taken(found: Answers) -> Taken:
    clean = max(found.scores, key=lambda one: one.clean)
    corrupted = max(found.scores, key=lambda one: one.corrupted)
    return Taken(", ".join(one.label for one in found.scores if one.true), clean.label, corrupted.label)


def _stretch(found: Timeline) -> Span | None:
    """The longest action that was lost, with some room; else the longest there is."""
    chosen = [action for action in found.actions if action.lost] or list(found.actions)
    if not chosen:
        return None
    longest = max(chosen, key=lambda action: action.end - action.start)
    room = ROOM * (longest.end - longest.start)
    return max(longest.start - room, 0.0), longest.end + room


def remark_on(album: Album, shown: Sequence[Worst]) -> str:
    """What a reader should know about the pictures."""
    parts = []
    if any(one.found for one in shown):
        parts.append(
            "Of all detections the surest are shown: as many on clean video as there are actions. A full bar is right, "
            "an open one wrong; shaded stretches are what the corruption struck."
        )
    if any(one.strip is not None and one.strip.as_shown for one in shown):
        parts.append("Strips show frames that the model was shown.")
    if album.left_out:
        parts.append(f"{album.left_out} clips or strips were left out to keep the page small.")
    return " ".join(parts)
