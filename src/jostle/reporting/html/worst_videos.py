"""The videos that are hit hardest: what was lost, and pictures of how."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jostle.core.tables import Column, Table
from jostle.errors import JostleError
from jostle.evaluation.results.run_analysis import Drop, RunAnalysis, video_drops
from jostle.reporting.analysis.video_language import AnsweredQuestion, moment_timeline, question_answers
from jostle.reporting.analysis.video_results import Answers, VideoTimeline, answers_of, operating_score, timeline_of
from jostle.reporting.html.charts import draw_timeline
from jostle.reporting.html.contents import Figure, Taken, Worst
from jostle.reporting.html.pictures import Span, Strip, strip_of

BUDGET = 2_800_000  # letters of pictures in a page
MOST_QUESTIONS = 8  # of a video, whose answers are listed
ROOM = 0.25  # margin before and after an action, as a share of it


class Album:
    """Takes pictures until the page is heavy enough.

    Attributes:
        left_out: clips and strips that did not fit.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self._left = budget
        self.left_out = 0

    def strip(self, analysis: RunAnalysis, drop: Drop, stretch: Span | None) -> tuple[Strip | None, str]:
        """Pictures of a video, or why there are none."""
        if self._left <= 0:
            self.left_out += 1
            return None, "No pictures: the page has as many as it can carry."
        try:
            strip = strip_of(analysis.record, drop.name, drop.worst_cell, stretch)
        except JostleError as error:
            return None, f"No pictures: {error}"
        if strip.weight > self._left:
            self.left_out += 1
            strip = strip.without_clip()
        self._left -= strip.weight
        return strip, ""


def worst_of(
    analysis: RunAnalysis, name: str, run: int, count: int, album: Album, advance: Callable[[], None]
) -> list[Worst]:
    """The videos of a run that lose most, each under the corruption that hurts it most.

    Args:
        advance: called after each.
    """
    worst = []
    sure = operating_score(analysis.record) if analysis.record.task == "detection" else 0.0
    for i, drop in enumerate(video_drops(analysis)[:count]):
        if drop.loss <= 0:
            break
        worst.append(_worst(analysis, drop, name, f"video-{run}-{i}", album, sure))
        advance()
    return worst


def _worst(analysis: RunAnalysis, drop: Drop, name: str, file: str, album: Album, sure: float) -> Worst:
    record, timeline, drawing, taken, answers = analysis.record, None, None, None, None
    if record.task == "detection":
        timeline = timeline_of(record, drop.name, drop.worst_cell, sure=sure)
    elif record.task == "recognition":
        taken = _taken(answers_of(record, drop.name, drop.worst_cell))
    elif record.task == "questions":
        answers = _changed(question_answers(record, drop.name, drop.worst_cell))
    elif record.task == "moments":
        timeline = moment_timeline(record, drop.name, drop.worst_cell, most=1)
    strip, why = album.strip(analysis, drop, None if timeline is None else _stretch(timeline))
    if timeline is not None:
        stretches, end = (strip.affected, strip.end_s) if strip is not None else (None, 0.0)
        drawing = Figure(file, "", draw_timeline(timeline, stretches, end))
    scores = (drop.clean, drop.worst)
    return Worst(drop.name, name, drop.worst_cell, *scores, drawing, timeline, taken, answers, strip, why)


def _taken(answers: Answers) -> Taken:
    clean = max(answers.scores, key=lambda one: one.clean)
    corrupted = max(answers.scores, key=lambda one: one.corrupted)
    return Taken(", ".join(one.label for one in answers.scores if one.true), clean.label, corrupted.label)


def _changed(questions: Sequence[AnsweredQuestion]) -> Table:
    """Return the questions that are answered otherwise under the corruption; all if none is."""
    changed = [one for one in questions if one.clean.text != one.corrupted.text] or list(questions)
    columns = (Column("question"), Column("right"), Column("clean"), Column("corrupted"))
    rows = [(one.text, one.options[one.answer], one.clean.text, one.corrupted.text) for one in changed[:MOST_QUESTIONS]]
    return Table("Answers that changed", columns, tuple(rows))


def _stretch(timeline: VideoTimeline) -> Span | None:
    """Return the longest missed action with some margin, or else the longest action."""
    chosen = [action for action in timeline.actions if action.lost] or list(timeline.actions)
    if not chosen:
        return None
    longest = max(chosen, key=lambda action: action.end - action.start)
    room = ROOM * (longest.end - longest.start)
    return max(longest.start - room, 0.0), longest.end + room


def remark_on(album: Album, worst: Sequence[Worst], *, moments: bool = False) -> str:
    """Return the remarks that explain the pictures; `moments` for runs of that task."""
    parts = []
    if moments:
        parts.append(
            "The first window of each sentence is drawn: full where it overlaps a true one by half, else open; shaded "
            "stretches are corrupted."
        )
    elif any(one.found for one in worst):
        parts.append(
            "The most confident detections are drawn, on clean video as many as there are actions. A full bar is right,"
            " an open one wrong; shaded stretches are corrupted."
        )
    if any(one.strip is not None and one.strip.exact_input for one in worst):
        parts.append("Strips consist of frames that the model received.")
    if album.left_out:
        parts.append(f"{album.left_out} clips or strips were left out to keep the page small.")
    return " ".join(parts)
