"""Prompts of multiple-choice questions, and option probabilities from token probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest

from helpers.refusals import refused
from jostle.errors import BadValue, NonFiniteOutput
from jostle.models.language.interface import Question
from jostle.models.language.prompts import (
    answer_from_log_probs,
    answer_from_top_tokens,
    check_question,
    letter_of,
    write_prompt,
)


def make_question(text: str = "What?", options: tuple[str, ...] = ("one", "two", "three"), frames: int = 2) -> Question:
    return Question(np.zeros((frames, 4, 4, 3), np.uint8), np.arange(frames, dtype=np.float64), text, options)


def test_braces_in_a_question_are_kept() -> None:
    assert write_prompt(make_question("Is {options} shown?")).startswith(
        "Is {options} shown?\nA. one\nB. two\nC. three\n"
    )


@pytest.mark.fault("F166")
def test_F166_questions_have_between_2_and_26_options() -> None:
    check_question(make_question(options=tuple(map(str, range(26)))))
    for options in ((), ("one",), tuple(map(str, range(27)))):
        with refused("F166", BadValue, match="options"):
            check_question(make_question(options=options))


@pytest.mark.fault("F167")
@pytest.mark.parametrize("times", [[0.0], [0.0, math.nan], [1.0, 0.5]])
def test_F167_every_frame_needs_a_valid_time(times: list[float]) -> None:
    question = Question(np.zeros((2, 4, 4, 3), np.uint8), np.array(times), "What?", ("one", "two"))
    with refused("F167", BadValue, match="times"):
        check_question(question)
    with pytest.raises(BadValue, match="uint8"):
        check_question(Question(np.zeros((2, 4, 4, 3), np.float32), np.arange(2.0), "What?", ("one", "two")))  # type: ignore[arg-type]


@pytest.mark.parametrize("token", ["A", " A", "▁A", "ĠA", "(A", "(A)", "A.", "A)", "\nA", "A:"])
def test_variants_of_a_letter_are_recognised(token: str) -> None:
    assert letter_of(token) == "A"


@pytest.mark.parametrize("token", ["a", " a", "An", "AB", "", "(", "1", "Ä"])
def test_other_tokens_are_no_letters(token: str) -> None:
    assert letter_of(token) is None


def test_probabilities_of_letter_variants_are_summed() -> None:
    answer = answer_from_top_tokens([("A", math.log(0.4)), ("B", math.log(0.3)), (" B", math.log(0.3))], 2, "server")
    assert answer is not None
    assert answer.choice == 1
    assert answer.log_probs is not None
    assert np.exp(answer.log_probs) == pytest.approx([0.4, 0.6])
    assert answer.lower_bounds == ()


@pytest.mark.fault("F169")
def test_F169_option_outside_the_top_tokens_has_a_lower_bound() -> None:
    answer = answer_from_top_tokens([("C", math.log(0.6)), ("The", math.log(0.2))], 3, "server")
    assert answer is not None
    assert (answer.choice, answer.lower_bounds) == (2, (True, True, False))
    assert answer.log_probs is not None
    assert np.exp(answer.log_probs) == pytest.approx(np.array([0.2, 0.2, 0.6]))
    # the remaining probability is the tighter bound
    answer = answer_from_top_tokens([("A", math.log(0.75)), ("The", math.log(0.2))], 2, "server")
    assert answer is not None
    assert answer.log_probs is not None
    assert np.exp(answer.log_probs) == pytest.approx([0.75 / 0.8, 0.05 / 0.8])
    assert answer_from_top_tokens([("The", -0.1)], 3, "server") is None
    assert answer_from_top_tokens([("The", math.log(0.9)), ("C", math.log(0.1))], 3, "server") is None


@pytest.mark.fault("F168")
@pytest.mark.parametrize("values", [(math.nan, -1.0), (0.5, -1.0), (-0.1, -0.1), (-math.inf, -1.0), (1e300, 0.0)])
def test_F168_invalid_log_probabilities_are_refused(values: tuple[float, float]) -> None:
    with refused("F168", NonFiniteOutput, match="add up to at most 1"):
        answer_from_top_tokens(zip("AB", values, strict=True), 2, "server")


def test_log_probabilities_are_normalised_over_the_options() -> None:
    answer = answer_from_log_probs([-10.0, -9.0], "model")
    assert answer.choice == 1
    assert answer.log_probs is not None
    assert np.exp(answer.log_probs).sum() == pytest.approx(1)
    with refused("F121", NonFiniteOutput):
        answer_from_log_probs([math.nan, 0.0], "model")
