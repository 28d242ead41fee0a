"""Order in which options are shown: as given, drawn, or all cyclic orders of a drawn one.

Models prefer some letters. A drawn order spreads that over the options; cyclic orders take it out, at the price of one
pass for each option.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from jostle.core.random import rng_for
from jostle.errors import BadValue
from jostle.models.language.interface import Answer, Question, QuestionModel

Orders = Literal["given", "drawn", "cyclic"]
Order = tuple[int, ...]  # index among the options as given, of each option as shown


@dataclass(frozen=True)
class OptionOrder:
    """Question model that shows options in another order, and answers in the order in which they were given.

    Attributes:
        model: the model that is asked.
        orders: `given`; `drawn`; or `cyclic`: probabilities are averaged over all rotations of the drawn order, and
            where only text is known the most frequent choice is taken.
        seed: of the draw, which depends on nothing else but the texts of the question and its options: clean and
            corrupted videos show the same order.
    """

    model: QuestionModel
    orders: Orders = "drawn"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.orders not in get_args(Orders):
            raise BadValue(f"orders of options are {', '.join(get_args(Orders))}, not {self.orders!r}")

    @property
    def frames(self) -> int:
        """Number of frames that the model wants."""
        return self.model.frames

    def describe(self) -> dict[str, object]:
        """Return what the record has of the model, and the order of options."""
        return {**self.model.describe(), "option_order": {"orders": self.orders, "seed": self.seed}}

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer questions; the letters in texts are those that were shown."""
        orders = [self._orders(question) for question in questions]
        shown = [
            replace(question, options=tuple(question.options[i] for i in order))
            for question, several in zip(questions, orders, strict=True)
            for order in several
        ]
        answers = iter(self.model.answer(shown))
        return [join_answers([restore_order(next(answers), order) for order in several]) for several in orders]

    def _orders(self, question: Question) -> list[Order]:
        count = len(question.options)
        if self.orders == "given":
            return [tuple(range(count))]
        order = draw_order(question, self.seed)
        rotations = count if self.orders == "cyclic" else 1
        return [order[i:] + order[:i] for i in range(rotations)]


def draw_order(question: Question, seed: int) -> Order:
    """Draw the order in which options are shown; it does not depend on the order in which they are given."""
    options = question.options
    by_text = sorted(range(len(options)), key=lambda i: (options[i], i))
    rng = rng_for(seed, "option order", question.text, *(options[i] for i in by_text))
    return tuple(by_text[i] for i in rng.permutation(len(options)).tolist())


def restore_order(answer: Answer, order: Order) -> Answer:
    """Return an answer to options as shown in the order in which they were given.

    >>> restore_order(Answer((-0.1, -2.4), "A", 0), (1, 0))
    Answer(log_probs=(-2.4, -0.1), text='A', choice=1, lower_bounds=())
    """
    place = [order.index(i) for i in range(len(order))]
    return Answer(
        None if answer.log_probs is None else tuple(answer.log_probs[i] for i in place),
        answer.text,
        None if answer.choice is None else order[answer.choice],
        tuple(answer.lower_bounds[i] for i in place) if answer.lower_bounds else (),
    )


def join_answers(answers: Sequence[Answer]) -> Answer:
    """Return one answer of several to the same question: probabilities are averaged, or choices counted.

    A tie between choices is unreadable.
    """
    if len(answers) == 1:
        return answers[0]
    texts = [answer.text for answer in answers if answer.text is not None]
    text = " | ".join(texts) if texts else None
    rows = [answer.log_probs for answer in answers if answer.log_probs is not None]
    if len(rows) == len(answers):
        mean = np.logaddexp.reduce(np.array(rows), axis=0) - np.log(len(rows))
        bounded = tuple(
            any(bool(answer.lower_bounds) and answer.lower_bounds[i] for answer in answers) for i in range(len(mean))
        )
        return Answer(tuple(mean.tolist()), text, int(mean.argmax()), bounded if any(bounded) else ())
    best = Counter(answer.choice for answer in answers if answer.choice is not None).most_common(2)
    tied = len(best) == 2 and best[0][1] == best[1][1]
    return Answer(None, text, None if tied or not best else best[0][0])
