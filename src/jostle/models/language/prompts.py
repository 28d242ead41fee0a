"""The prompt of a question, metadata of its frames, and probabilities of its options from those of tokens."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.errors import BadValue, NonFiniteOutput
from jostle.models.language.interface import Answer, Question

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
TEMPLATE = "{question}\n{options}\nAnswer with the letter of the right option only."
OPTION = "{letter}. {option}"
# A lower-case letter is more often the article "a" than an answer.
_VARIANT = re.compile(r"[\s▁ĠĊ]*\(?([A-Z])[).:]?[\s▁ĠĊ]*")
MOST = 0.5  # of the probability of a position that letters must hold together to count
EXCESS = 1e-3  # that log-probabilities of servers may be above 0, of rounding


def write_prompt(question: Question) -> str:
    """Return the text that a model is given beside the frames.

    >>> none = np.zeros((0, 1, 1, 3), np.uint8), np.zeros(0)
    >>> print(write_prompt(Question(*none, "What is it?", ("a cat", "a dog"))))
    What is it?
    A. a cat
    B. a dog
    Answer with the letter of the right option only.
    """
    options = "\n".join(
        OPTION.format(letter=letter, option=option) for letter, option in zip(LETTERS, question.options, strict=False)
    )
    return TEMPLATE.format(question=question.text, options=options)


def check_question(question: Question) -> None:
    """Raise unless a question is valid: 2 to 26 options, and a time for each frame.

    Raises:
        BadValue: F166 for options, F167 for frames and their times.
    """
    options, frames, times = question.options, question.frames, question.times
    if not 2 <= len(options) <= len(LETTERS):
        raise BadValue(
            f"{question.text!r}: has {len(options)} options; a question to a model has 2 to {len(LETTERS)}",
            fault="F166",
        )
    if frames.ndim != 4 or frames.shape[-1] != 3 or frames.dtype != np.uint8:
        raise BadValue(
            f"{question.text!r}: frames must be (T, H, W, 3) uint8, not {frames.shape} {frames.dtype}", fault="F167"
        )
    if times.shape != (len(frames),) or not np.isfinite(times).all() or (np.diff(times) < 0).any():
        raise BadValue(
            f"{question.text!r}: {len(frames)} frames need as many times in seconds, which do not fall; "
            f"these are {times.tolist()}",
            fault="F167",
        )


def letter_of(token: str) -> str | None:
    """Return the letter that a token stands for, None for any other token.

    >>> [letter_of(token) for token in ("A", " B", "(C", "D.", "a", "AB", "")]
    ['A', 'B', 'C', 'D', None, None, None]
    """
    match = _VARIANT.fullmatch(token)
    return match[1] if match else None


def answer_from_log_probs(values: Sequence[float], what: str) -> Answer:
    """Return the answer of log-probabilities, one an option, normalised over the options.

    Raises:
        NonFiniteOutput: F121 if one is NaN or infinite.
    """
    scores = np.asarray(values, np.float64)
    if not np.isfinite(scores).all():
        raise NonFiniteOutput(f"{what}: log-probabilities of options are not finite: {scores.tolist()}")
    normal = scores - np.logaddexp.reduce(scores)
    return Answer(tuple(normal.tolist()), None, int(np.argmax(scores)))


def answer_from_top_tokens(top: Iterable[tuple[str, float]], options: int, what: str) -> Answer | None:
    """Return the answer of the most probable tokens of a position; None if letters of options are not most of it.

    A tiny probability of a letter says nothing where nearly all of it is on other words: together the letters must hold
    more than half.

    An option that is not among them has at most the probability of the least probable one, and at most what all of them
    leave over: it is given that bound, and marked.

    Args:
        top: tokens and their log-probabilities.
        options: number of options.
        what: the model, for messages.

    Raises:
        NonFiniteOutput: F168 if log-probabilities are no such numbers, or add up to more than 1.

    >>> answer = answer_from_top_tokens([("B", -0.1), (" B", -3.0), ("The", -4.0)], 2, "server")
    >>> answer.choice, answer.lower_bounds
    (1, (True, False))
    """
    listed = list(top)
    total = sum(math.exp(min(value, 1.0)) for _, value in listed)
    if any(not math.isfinite(value) or value > EXCESS for _, value in listed) or total > 1 + EXCESS * len(listed):
        raise NonFiniteOutput(
            f"{what}: the log-probabilities that it sent are none: {listed[:5]}; they should be below 0, and their "
            "probabilities should add up to at most 1",
            fault="F168",
        )
    scores = [-math.inf] * options
    for token, value in listed:
        letter = letter_of(token)
        index = LETTERS.index(letter) if letter else options
        if index < options:
            scores[index] = float(np.logaddexp(scores[index], value))
    bounded = [score == -math.inf for score in scores]
    if sum(math.exp(score) for score in scores) <= MOST:
        return None
    least = min(value for _, value in listed)
    bound = min(least, math.log(max(1 - total, 1e-9)))
    choice = int(np.argmax(scores))
    filled = np.array([bound if unknown else score for score, unknown in zip(scores, bounded, strict=True)])
    normal = filled - np.logaddexp.reduce(filled)
    return Answer(tuple(normal.tolist()), None, choice, tuple(bounded) if any(bounded) else ())


TICKS = 1000.0  # "frames" a second in which times are written; processors know times only as numbers of frames


def video_metadata(times: npt.NDArray[np.float64]) -> dict[str, Any]:
    """Return `fps`, `frames_indices`, `total_num_frames` and `duration` that give frames their true times.

    A processor computes the time of a frame as its index divided by fps, and the rate of the frames as their
    number divided by the duration. Frames are at the middles of equal parts, so the parts are as long as the distance
    of two frames, and the first part begins half of that before the first frame.

    >>> known = video_metadata(np.array([0.5, 1.5, 2.5]))
    >>> known["frames_indices"], known["total_num_frames"], known["duration"]
    ([500, 1500, 2500], 3000, 3.0)
    """
    count = len(times)
    part = float(times[-1] - times[0]) / (count - 1) if count > 1 else 2 * float(times[0])
    duration = max(part * count, 1 / TICKS)
    return {
        "fps": TICKS,
        "frames_indices": [round(time * TICKS) for time in times.tolist()],
        "total_num_frames": max(round(duration * TICKS), 1),
        "duration": duration,
    }
