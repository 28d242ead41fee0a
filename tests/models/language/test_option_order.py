"""Orders in which options are shown, and answers in the order in which they were given."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest

from jostle.errors import BadValue
from jostle.models.language.interface import Answer, Question, QuestionModel
from jostle.models.language.option_order import OptionOrder, Orders, draw_order, join_answers, restore_order

LIKED = {"cat": 0.5, "dog": 0.3, "cow": 0.15, "ant": 0.05}


class Reader:
    """A model that knows how much it likes each option, and likes letters by their place besides."""

    def __init__(self, letters: Sequence[float] = (1, 1, 1, 1), text: bool = False) -> None:
        self.frames, self.letters, self.text, self.seen = 4, letters, text, list[tuple[str, ...]]()

    def describe(self) -> dict[str, object]:
        return {"name": "reader"}

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        self.seen += [question.options for question in questions]
        return [self._one(question.options) for question in questions]

    def _one(self, options: tuple[str, ...]) -> Answer:
        liked = np.array([LIKED[option] for option in options]) * self.letters[: len(options)]
        choice = int(liked.argmax())
        if self.text:
            return Answer(None, "ABCD"[choice], choice)
        return Answer(tuple(np.log(liked / liked.sum()).tolist()), None, choice)


def question(options: tuple[str, ...] = tuple(LIKED), text: str = "Which?", frames: int = 2) -> Question:
    return Question(np.zeros((frames, 4, 4, 3), np.uint8), np.arange(float(frames)), text, options)


@pytest.mark.parametrize("orders", ["given", "drawn", "cyclic"])
def test_answers_are_in_the_order_given_whatever_is_shown(orders: Orders) -> None:
    model = OptionOrder(Reader(), orders)
    assert isinstance(model, QuestionModel)
    for options in permutations(LIKED):
        (answer,) = model.answer([question(options)])
        assert answer.choice == options.index("cat")
        assert answer.log_probs is not None
        assert np.exp(answer.log_probs) == pytest.approx([LIKED[option] for option in options])


def test_the_order_depends_on_texts_and_seed_only() -> None:
    shown = {tuple(options[i] for i in draw_order(question(options), 0)) for options in permutations(LIKED)}
    assert len(shown) == 1  # neither on the order given
    assert draw_order(question(frames=2), 0) == draw_order(question(frames=0), 0)  # nor on the frames
    assert len({draw_order(question(), seed) for seed in range(50)}) > 10
    assert len({draw_order(question(text=str(i)), 0) for i in range(50)}) > 10


def test_every_order_is_drawn_alike() -> None:
    drawn = Counter(draw_order(question(("cat", "dog", "cow"), str(i)), 0) for i in range(1200))
    assert len(drawn) == 6
    assert min(drawn.values()) > 140


def test_options_that_are_the_same_text_keep_their_places() -> None:
    assert sorted(draw_order(question(("cat", "cat", "dog")), 0)) == [0, 1, 2]


def test_cyclic_orders_take_out_a_preference_for_a_letter() -> None:
    reader = Reader(letters=(4, 1, 1, 1))
    asked = [question(text=str(i)) for i in range(20)]
    once = [answer.choice for answer in OptionOrder(reader, "drawn").answer(asked)]
    assert len(set(once)) > 1  # the letter decides
    reader.seen.clear()
    answers = OptionOrder(reader, "cyclic").answer(asked)
    assert len(reader.seen) == 20 * 4
    for i in range(20):
        for place in range(4):
            assert {options[place] for options in reader.seen[4 * i : 4 * i + 4]} == set(LIKED)
    assert {answer.choice for answer in answers} == {0}
    assert len({tuple(np.round(answer.log_probs or (), 6)) for answer in answers}) <= 6  # of the cyclic orders
    assert all(math.isclose(sum(math.exp(value) for value in answer.log_probs or ()), 1) for answer in answers)


def test_texts_are_counted_and_a_tie_is_unreadable() -> None:
    (answer,) = OptionOrder(Reader(text=True), "cyclic").answer([question()])
    assert (answer.choice, answer.log_probs) == (0, None)
    assert sorted((answer.text or "").split(" | ")) == ["A", "B", "C", "D"]
    said = [Answer(None, "x", choice) for choice in (0, 1, None)]
    assert join_answers(said).choice is None
    assert join_answers([*said, Answer(None, "x", 1)]).choice == 1
    assert join_answers([Answer(None, "x", None)] * 2).choice is None
    mixed = join_answers([Answer((-0.1, -2.4), None, 0), Answer(None, "A", 0)])
    assert (mixed.log_probs, mixed.choice) == (None, 0)


def test_bounds_go_along_with_their_options() -> None:
    bounded = Answer((-0.1, -3.0, -4.0), None, 0, (False, True, False))
    assert restore_order(bounded, (2, 0, 1)).lower_bounds == (True, False, False)
    joined = join_answers([bounded, Answer((-0.1, -3.0, -4.0), None, 0)])
    assert joined.lower_bounds == (False, True, False)
    zero = join_answers([Answer((0.0, -math.inf), None, 0), Answer((-math.inf, 0.0), None, 1)])
    assert np.exp(zero.log_probs or ()) == pytest.approx([0.5, 0.5])


def test_the_record_says_the_order() -> None:
    model = OptionOrder(Reader(), "cyclic", seed=7)
    assert model.describe() == {"name": "reader", "option_order": {"orders": "cyclic", "seed": 7}}
    assert model.frames == 4
    with pytest.raises(BadValue, match="given, drawn, cyclic"):
        OptionOrder(Reader(), "random")  # type: ignore[arg-type]
