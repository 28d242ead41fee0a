"""One video of a run of questions or moments, clean and under a corruption: answers with probabilities, and windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from jostle.core.types.language import MomentItem, MomentPrediction, QuestionAnswer, QuestionItem
from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.record import RunRecord
from jostle.metrics.moments import RECALL_TIOU, window_overlap
from jostle.reporting.analysis.video_results import AnnotatedAction, Detection, VideoTimeline

UNREADABLE, MISSING = "unreadable", "missing"


@dataclass(frozen=True)
class GivenAnswer:
    """Answer to one question in one cell."""

    choice: int | None  # index of the option; None if it is unreadable or missing
    text: str  # the option, or `unreadable` or `missing`
    right: bool
    probabilities: tuple[float, ...] | None
    generated: str | None  # text of the model, where there is one


@dataclass(frozen=True)
class AnsweredQuestion:
    """Question with its options, and its answers on clean and on corrupted video."""

    id: str
    text: str
    kind: str
    options: tuple[str, ...]
    answer: int  # index of the right option
    needs_order: bool | None
    start: float | None  # of the stretch that it is about, in seconds; None for the whole video
    end: float | None
    clean: GivenAnswer
    corrupted: GivenAnswer

    def to_dict(self) -> dict[str, Any]:
        """Return the question as plain values for JSON."""
        return asdict(self)


def question_answers(record: RunRecord, video: str, cell: str) -> tuple[AnsweredQuestion, ...]:
    """Return the questions about a video with the answers on clean video and under a cell.

    Raises:
        UnknownName: if the run has no such video or cell.
    """
    if record.task != "questions":
        raise BadValue(f"{record.folder}: a run of {record.task} has no questions")
    if video not in record.questions.by_video:
        raise UnknownName(f"video of {record.folder}", video, record.questions.videos)
    clean, corrupted = (record.answers(which).answers for which in (CLEAN, cell))
    return tuple(
        AnsweredQuestion(
            item.id,
            item.text,
            item.kind,
            item.options,
            item.answer,
            item.needs_order,
            item.start,
            item.end,
            _given(item, clean.get(item.id)),
            _given(item, corrupted.get(item.id)),
        )
        for item in record.questions.by_video[video]
        if item.answer is not None
    )


def _given(item: QuestionItem, answer: QuestionAnswer | None) -> GivenAnswer:
    if answer is None:
        return GivenAnswer(None, MISSING, False, None, None)
    text = UNREADABLE if answer.choice is None else item.options[answer.choice]
    return GivenAnswer(answer.choice, text, answer.choice == item.answer, answer.probabilities, answer.text)


def moment_timeline(
    record: RunRecord, video: str, cell: str, *, tiou: float = RECALL_TIOU, most: int | None = None
) -> VideoTimeline:
    """Return the true and the predicted windows of a video, as actions and detections labelled by their sentences.

    Args:
        tiou: overlap from which a window is right, and a sentence found by its first one.
        most: windows of each sentence; by default all.

    Raises:
        UnknownName: if the run has no such video or cell.
    """
    if record.task != "moments":
        raise BadValue(f"{record.folder}: a run of {record.task} has no sentences")
    if video not in record.moments.by_video:
        raise UnknownName(f"video of {record.folder}", video, record.moments.videos)
    items = record.moments.by_video[video]
    sides = [record.windows(which).predictions for which in (CLEAN, cell)]
    rows = sorted(((item, window) for item in items for window in item.windows), key=lambda row: row[1])
    number = {(item.id, window): i for i, (item, window) in enumerate(rows)}
    actions = tuple(
        AnnotatedAction(*window, item.text, *(_first_overlap(item, side.get(item.id)) >= tiou for side in sides))
        for item, window in rows
    )
    clean, corrupted = (
        tuple(
            sorted(
                (one for item in items for one in _placed(item, side.get(item.id), number, tiou, most)),
                key=lambda one: (one.start, -one.score),
            )
        )
        for side in sides
    )
    return VideoTimeline(video, cell, tiou, actions, clean, corrupted)


def _first_overlap(item: MomentItem, prediction: MomentPrediction | None) -> float:
    if prediction is None or not prediction.windows:
        return 0.0
    return max(window_overlap(prediction.windows[0][:2], window) for window in item.windows)


def _placed(
    item: MomentItem,
    prediction: MomentPrediction | None,
    number: Mapping[tuple[str, tuple[float, float]], int],
    tiou: float,
    most: int | None,
) -> list[Detection]:
    """Return the windows of a sentence, each with the true one that it overlaps most."""
    detections = []
    for start, end, score in () if prediction is None else prediction.windows[:most]:
        nearest = max(item.windows, key=lambda window: window_overlap((start, end), window))
        overlap = window_overlap((start, end), nearest)
        kind = "true_positive" if overlap >= tiou else "localization" if overlap > 0 else "background"
        detections.append(
            Detection(start, end, item.text, score, overlap, kind, number[item.id, nearest] if overlap else None)
        )
    return detections
