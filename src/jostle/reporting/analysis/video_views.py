"""One video of a run for a reader of a report: what was found in it, clean and under a corruption, at a glance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from jostle.evaluation.results.record import RunRecord
from jostle.reporting.analysis.video_language import AnsweredQuestion, moment_timeline, question_answers
from jostle.reporting.analysis.video_results import Answers, VideoTimeline, answers_of, operating_score, timeline_of


@dataclass(frozen=True)
class SentenceTimeline:
    """The windows of the sentences about a video, the first of each."""

    timeline: VideoTimeline


VideoView: TypeAlias = VideoTimeline | SentenceTimeline | Answers | tuple[AnsweredQuestion, ...]
View = Callable[[str, str], VideoView | None]  # from a video and a cell


def view_of(record: RunRecord) -> View:
    """Return a function that lays out a video of a run under a cell; it returns None where nothing can be laid out."""
    if record.task == "detection":
        sure = operating_score(record)
        return lambda video, cell: timeline_of(record, video, cell, sure=sure)
    views: dict[str, View] = {
        "recognition": lambda video, cell: answers_of(record, video, cell),
        "questions": lambda video, cell: question_answers(record, video, cell),
        "moments": lambda video, cell: SentenceTimeline(moment_timeline(record, video, cell, most=1)),
    }
    return views.get(record.task, lambda video, cell: None)
