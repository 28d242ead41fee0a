"""Answers to the questions about a video, clean and under a corruption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jostle.core.types.language import QuestionAnswer, QuestionItem
from jostle.evaluation.tasks.views import AnsweredItem, GivenAnswer, ItemTableView

UNREADABLE, MISSING = "unreadable", "missing"


def draw_answers(
    video: str, items: Sequence[QuestionItem], sides: Sequence[Mapping[str, QuestionAnswer]]
) -> ItemTableView:
    """Return the questions about a video with their answers, by id, on clean and on corrupted video."""
    return ItemTableView(
        video,
        tuple(
            AnsweredItem(
                item.id,
                item.text,
                item.kind,
                item.options,
                item.answer,
                item.needs_order,
                item.start,
                item.end,
                *(_given(item, side.get(item.id)) for side in sides),
            )
            for item in items
            if item.answer is not None
        ),
    )


def _given(item: QuestionItem, answer: QuestionAnswer | None) -> GivenAnswer:
    if answer is None:
        return GivenAnswer(None, MISSING, False, None, None)
    text = UNREADABLE if answer.choice is None else item.options[answer.choice]
    return GivenAnswer(answer.choice, text, answer.choice == item.answer, answer.probabilities, answer.text)
