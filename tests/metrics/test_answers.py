"""Accuracy of answers, calibration, and changes under corruption."""

from __future__ import annotations

import pytest

from jostle.core.types.language import AnswerSet, QuestionAnswer, QuestionItem, QuestionSet
from jostle.errors import DataError
from jostle.metrics.answers import compare_answers, score_answers, temporal_sensitivity


def make_questions(count: int, *, per_video: int = 1, **changes: object) -> QuestionSet:
    return QuestionSet(
        tuple(
            QuestionItem(f"q{i}", f"v{i // per_video}", "Q?", ("a", "b", "c", "d"), 0, **changes)  # type: ignore[arg-type]
            for i in range(count)
        )
    )


def make_answers(*choices: int | None) -> AnswerSet:
    return AnswerSet({f"q{i}": QuestionAnswer(choice) for i, choice in enumerate(choices)})


@pytest.mark.fault("F151")
def test_unreadable_answers_are_wrong_and_counted_separately() -> None:
    score = score_answers(make_answers(0, 0, None, None), make_questions(4)).overall
    assert (score.accuracy, score.unreadable, score.missing, score.count) == (0.5, 2, 0, 4)


@pytest.mark.fault("F152")
def test_missing_answers_are_wrong_and_counted_separately() -> None:
    score = score_answers(make_answers(0, 1), make_questions(4))
    assert (score.overall.accuracy, score.overall.missing, score.unknown) == (0.25, 2, 0)
    more = AnswerSet({**make_answers(0, 1).answers, "elsewhere": QuestionAnswer(0)})
    assert score_answers(more, make_questions(4)).unknown == 1


WRONG = [(0.5, 0.5), (0.5, 0.6, 0.0, 0.0), (1.2, -0.2, 0, 0), (float("nan"), 0, 0, 1), (0, 0, 0, 0)]


@pytest.mark.fault("F152", "F154", "F156")
@pytest.mark.parametrize(
    ("answers", "message", "fault"),
    [
        ({"x": QuestionAnswer(0)}, r"none of the 1 answers.*like 'q0'.*like 'x'", "F152"),
        ({"q0": QuestionAnswer(4)}, "the choice 4 is none of its 4 options; options count from 0", "F154"),
        *(({"q0": QuestionAnswer(0, wrong)}, "q0", "F156") for wrong in WRONG),
    ],
)
def test_answers_that_do_not_fit_are_refused(answers: dict[str, QuestionAnswer], message: str, fault: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        score_answers(AnswerSet(answers), make_questions(2))
    assert caught.value.fault == fault


def test_chance_level_is_averaged_over_questions() -> None:
    two = QuestionItem("two", "v", "Q?", ("a", "b"), 0)
    score = score_answers(make_answers(0), QuestionSet((*make_questions(1).items, two))).overall
    assert score.chance == pytest.approx((0.25 + 0.5) / 2)
    assert score.chance_corrected == pytest.approx((0.5 - 0.375) / 0.625)


def test_intervals_resample_videos() -> None:
    right = [0] * 20 + [1] * 20
    alone = score_answers(make_answers(*right), make_questions(40)).overall.interval
    together = score_answers(make_answers(*right), make_questions(40, per_video=10)).overall.interval
    assert together[1] - together[0] > alone[1] - alone[0]


def test_calibration_counts_answers_with_probabilities() -> None:
    sure = QuestionAnswer(0, (1.0, 0.0, 0.0, 0.0))
    wrong = QuestionAnswer(1, (0.0, 1.0, 0.0, 0.0))
    score = score_answers(AnswerSet({"q0": sure, "q1": wrong, "q2": QuestionAnswer(0)}), make_questions(3)).calibration
    assert (score.count, score.brier, score.ece) == (2, 1.0, 0.5)
    assert score_answers(make_answers(0), make_questions(1)).calibration is None


def test_accuracy_by_type_and_order() -> None:
    items = (
        QuestionItem("q0", "v", "Q?", ("a", "b"), 0, kind="order", needs_order=True),
        QuestionItem("q1", "v", "Q?", ("a", "b"), 0, kind="place", needs_order=False),
    )
    score = score_answers(make_answers(0, 1), QuestionSet(items))
    assert (score.by_type["order"].accuracy, score.by_type["place"].accuracy) == (1.0, 0.0)
    assert score.order.count == 1


def test_flips_are_counted_in_both_directions() -> None:
    change = compare_answers(make_answers(0, 0, 0, 1, 1), make_answers(0, 0, None, 0, 2), make_questions(5))
    assert (change.resist_rate, change.corrective_flips, change.changed) == (2 / 3, 0.5, pytest.approx(1 / 3))
    assert (change.relative, change.became_unreadable) == (1.0, 1)


def test_undefined_shares_are_none() -> None:
    change = compare_answers(make_answers(1, 1), make_answers(1, 1), make_questions(2))
    assert (change.resist_rate, change.relative, change.corrective_flips) == (None, None, 0.0)
    assert temporal_sensitivity(make_answers(1), make_answers(0), make_questions(1)).value is None


def test_temporal_sensitivity_counts_questions_that_need_order() -> None:
    items = tuple(QuestionItem(f"q{i}", f"v{i}", "Q?", ("a", "b"), 0, needs_order=i < 4) for i in range(8))
    clean, shuffled = make_answers(*[0] * 8), make_answers(1, 1, 1, 0, 1, 1, 1, 1)
    measured = temporal_sensitivity(clean, shuffled, QuestionSet(items))
    assert (measured.value, measured.questions, measured.only_order) == (0.75, 4, True)
    unmarked = temporal_sensitivity(clean, shuffled, make_questions(8))
    assert (unmarked.value, unmarked.questions, unmarked.only_order) == (0.875, 8, False)
