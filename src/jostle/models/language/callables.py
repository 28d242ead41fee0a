"""Functions as models of questions and of moments.

`(frames, question, options) -> scores or text`, and `(frames, times, sentence, duration) -> windows`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from jostle.errors import BadValue, DataError, NonFiniteOutput
from jostle.metrics.answer_text import read_choice
from jostle.models.language.interface import Answer, MomentModel, Question, QuestionModel, Sentence, Windows

FRAMES = 16  # for a function that does not say how many it wants


@dataclass(frozen=True)
class CallableQuestionModel:
    """Function `(frames, question, options) -> scores or text` as a question model."""

    function: Callable[..., Any]
    frames: int = FRAMES
    foreign: ClassVar[bool] = True

    def describe(self) -> dict[str, object]:
        """Return what the record has of a function: the number of frames."""
        return {"callable": _name(self.function), "frames": self.frames}

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        """Call the function for one question after the other."""
        return [as_answer(self.function(one.frames, one.text, one.options), one.options) for one in questions]


@dataclass(frozen=True)
class CallableMomentModel:
    """Function `(frames, times, sentence, duration) -> windows` as a moment model."""

    function: Callable[..., Any]
    frames: int = FRAMES
    foreign: ClassVar[bool] = True

    def describe(self) -> dict[str, object]:
        """Return what the record has of a function: the number of frames."""
        return {"callable": _name(self.function), "frames": self.frames}

    def locate(self, sentences: Sequence[Sentence]) -> list[Windows]:
        """Call the function for one sentence after the other."""
        return [as_windows(self.function(one.frames, one.times, one.text, one.duration)) for one in sentences]


def callable_model(function: Callable[..., Any], frames: int | None = None) -> CallableQuestionModel:
    """Return a function as a question model.

    Args:
        frames: number of them; by default its attribute `frames`, or 16.

    >>> model = callable_model(lambda frames, question, options: "The answer is B.", frames=4)
    >>> model.answer([Question(np.zeros((4, 2, 2, 3), np.uint8), np.zeros(4), "Q?", ("up", "down"))])[0].choice
    1
    """
    return CallableQuestionModel(function, _frames(function, frames))


def as_question_model(model: object, frames: int | None = None) -> QuestionModel:
    """Return a question model, or a function as one.

    Raises:
        BadValue: if it is neither.
    """
    if isinstance(model, QuestionModel):
        _check_frames(model, frames)
        return model
    if not callable(model):
        raise BadValue(
            f"a {type(model).__name__} answers no questions; give a function (frames, question, options) -> scores or "
            "text, or an object with frames, describe and answer"
        )
    return callable_model(model, frames)


def as_moment_model(model: object, frames: int | None = None) -> MomentModel:
    """Return a moment model, or a function as one.

    Raises:
        BadValue: if it is neither.
    """
    if isinstance(model, MomentModel):
        _check_frames(model, frames)
        return model
    if not callable(model):
        raise BadValue(
            f"a {type(model).__name__} finds no moments; give a function (frames, times, sentence, duration) -> "
            "windows, or an object with frames, describe and locate"
        )
    return CallableMomentModel(model, _frames(model, frames))


def as_answer(output: Any, options: Sequence[str]) -> Answer:
    """Return what a function gave as an answer: text, the number of an option, or a score for each.

    Scores that sum to 1 and are not negative are probabilities; others are logits.

    >>> as_answer([0.2, 0.8], ("up", "down")).choice, as_answer(None, ("up", "down")).choice
    (1, None)
    """
    if output is None or isinstance(output, str):
        return Answer(None, output, read_choice(output, options))
    if isinstance(output, Answer):
        return output
    scores = np.asarray(output, np.float64)
    if scores.ndim == 0 and float(scores).is_integer() and 0 <= int(scores) < len(options):
        return Answer(None, None, int(scores))
    if scores.shape != (len(options),):
        raise DataError(
            f"the model gave {scores.shape} scores for {len(options)} options; give one an option, or text",
            fault="F159",
        )
    if not np.isfinite(scores).all():
        raise NonFiniteOutput("the scores of options are not finite")
    if (scores >= 0).all() and abs(scores.sum() - 1) < 1e-6:
        logs = [math.log(value) if value > 0 else -math.inf for value in scores.tolist()]
    else:
        shifted = scores - scores.max()
        logs = (shifted - math.log(np.exp(shifted).sum())).tolist()
    return Answer(tuple(logs), None, int(scores.argmax()))


def as_windows(output: Any) -> Windows:
    """Return what a function gave as windows: (start, end) or (start, end, score), best first.

    >>> as_windows([(1.0, 3.0), (0.0, 9.0)]).windows
    ((1.0, 3.0, 0.0), (0.0, 9.0, -1.0))
    """
    if isinstance(output, Windows):
        return output
    windows = []
    for rank, window in enumerate(() if output is None else output):
        values = [float(value) for value in window]
        if len(values) not in (2, 3):
            raise DataError(f"the model gave a window of {len(values)} numbers; give start, end, score", fault="F159")
        if not all(map(math.isfinite, values)):
            raise NonFiniteOutput("a window is not finite")
        windows.append((values[0], values[1], values[2] if len(values) == 3 else 0.0 - rank))
    return Windows(tuple(sorted(windows, key=lambda one: -one[2])))


def _frames(function: object, frames: int | None) -> int:
    count = frames if frames is not None else getattr(function, "frames", FRAMES)
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise BadValue(f"frames must be a whole number from 1, got {count!r}")
    return count


def _check_frames(model: QuestionModel | MomentModel, frames: int | None) -> None:
    if frames is not None and frames != model.frames:
        raise BadValue(f"{type(model).__name__} wants {model.frames} frames; leave frames out, or change the model")


def _name(function: object) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))
