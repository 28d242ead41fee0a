"""One video of a run for a reader of a report: what was found in it, clean and under a corruption, at a glance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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
    make = _MAKERS.get(record.task)
    return (lambda video, cell: None) if make is None else make(record)


def _confident_detections(record: RunRecord) -> View:
    sure = operating_score(record)
    return lambda video, cell: timeline_of(record, video, cell, sure=sure)


def _first_windows(record: RunRecord) -> View:
    return lambda video, cell: SentenceTimeline(moment_timeline(record, video, cell, most=1))


_MAKERS: dict[str, Callable[[RunRecord], View]] = {
    "detection": _confident_detections,
    "recognition": lambda record: partial(answers_of, record),
    "questions": lambda record: partial(question_answers, record),
    "moments": _first_windows,
}
