"""Questions with options about videos, and the answers of a model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from jostle.core.types.video_items import VideoItems
from jostle.errors import BadValue, DataError

MAX_OPTIONS = 26  # letters


@dataclass(frozen=True, slots=True)
class QuestionItem:
    """One question about a video, with its options.

    Attributes:
        id: unique in its set.
        video: id of the video.
        text: the question, without its options.
        options: without letters, at least two.
        answer: index of the right option; None if it is not published.
        kind: type of question in its data set, or an empty string.
        start: first second of the stretch that the question is about; None for the beginning of the video.
        end: last second of the stretch; None for the end of the video.
        needs_order: whether the answer depends on the order of events; None if nobody says.
        names: how the published file labels each option, such as `Option 1`; empty for letters.
    """

    id: str
    video: str
    text: str
    options: tuple[str, ...]
    answer: int | None
    kind: str = ""
    start: float | None = None
    end: float | None = None
    needs_order: bool | None = None
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 2 <= len(self.options) <= MAX_OPTIONS:
            raise BadValue(f"question {self.id!r}: has {len(self.options)} options; 2 to {MAX_OPTIONS} are possible")
        if self.answer is not None and not 0 <= self.answer < len(self.options):
            raise BadValue(
                f"question {self.id!r}: the right option is {self.answer}, and there are {len(self.options)}; "
                "options count from 0"
            )
        if self.names and len(self.names) != len(self.options):
            raise BadValue(f"question {self.id!r}: has {len(self.names)} names for {len(self.options)} options")
        if self.start is not None and self.end is not None and not 0 <= self.start < self.end < math.inf:
            raise BadValue(f"question {self.id!r}: its stretch {self.start} to {self.end} s has no length; correct it")


@dataclass(frozen=True, repr=False)
class QuestionSet(VideoItems[QuestionItem]):
    """Questions about the videos of a data set, in the order of the file."""

    noun = "question"

    def of_kind(self, kind: str) -> QuestionSet:
        """Return the questions of one type."""
        return QuestionSet(tuple(item for item in self.items if item.kind == kind))

    @property
    def answered(self) -> QuestionSet:
        """The questions whose right option is known."""
        return QuestionSet(tuple(item for item in self.items if item.answer is not None))


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """Answer of a model to one question.

    Attributes:
        choice: index of the option; None if no rule could read the answer.
        probabilities: one an option, which sum to 1; None where only the choice is known.
        text: the generated text, where there is one.
    """

    choice: int | None
    probabilities: tuple[float, ...] | None = None
    text: str | None = None


@dataclass(frozen=True)
class AnswerSet:
    """Answers of one model by the ids of questions."""

    answers: Mapping[str, QuestionAnswer]

    def checked(self, questions: QuestionSet) -> AnswerSet:
        """Return the answers to these questions.

        Raises:
            DataError: F154 if a choice is no option, F156 if probabilities do not fit the options, F152 if no
                question of the set is answered.
        """
        own = {item.id: self.answers[item.id] for item in questions.items if item.id in self.answers}
        if not own and len(questions):
            given = next(iter(self.answers), None)
            raise DataError(
                f"none of the {len(self.answers)} answers is to a question of the set: its ids are like "
                f"{questions.items[0].id!r}, those of the answers like {given!r}; give the ids of the annotations",
                fault="F152",
            )
        for name, answer in own.items():
            options = len(questions.by_id[name].options)
            if answer.choice is not None and not 0 <= answer.choice < options:
                counted = "; options count from 0" if answer.choice == options else ""
                raise DataError(
                    f"question {name!r}: the choice {answer.choice} is none of its {options} options{counted}",
                    fault="F154",
                )
            check_probabilities(name, answer.probabilities, options)
        return AnswerSet(own)

    def __len__(self) -> int:
        return len(self.answers)


def check_probabilities(question: str, probabilities: tuple[float, ...] | None, options: int) -> None:
    """Raise F156 unless probabilities are one for each option, not negative, and sum to 1."""
    if probabilities is None:
        return
    if len(probabilities) != options:
        raise DataError(
            f"question {question!r}: has {len(probabilities)} probabilities for {options} options; give one each",
            fault="F156",
        )
    if not all(math.isfinite(one) and one >= 0 for one in probabilities) or abs(math.fsum(probabilities) - 1) > 1e-3:
        raise DataError(
            f"question {question!r}: its probabilities must be at least 0 and sum to 1; normalise them over the "
            f"options, or give the choice alone; got {', '.join(f'{one:g}' for one in probabilities[:6])}",
            fault="F156",
        )
