"""Interface of video-language models: questions and sentences over frames with their times; settings in names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable
from urllib.parse import parse_qsl

import numpy as np
import numpy.typing as npt

from jostle.errors import BadValue


def split_settings(name: str, known: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a name without its settings, and the settings in the types of their defaults.

    Args:
        name: the name, perhaps with `?setting=value&setting=value` behind it, before a `#`.
        known: settings with their defaults.

    Raises:
        BadValue: if there is no such setting, it is given twice, or its value does not fit.

    >>> split_settings("folder?answers=text", {"answers": "log_probs", "tokens": 16})
    ('folder', {'answers': 'text', 'tokens': 16})
    """
    front, _, fragment = name.partition("#")
    plain, mark, query = front.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True) if mark else []
    values = dict(pairs)
    unknown = [key for key, _ in pairs if key not in known]
    if unknown or len(values) < len(pairs) or (mark and not pairs):
        what = f"has no setting {unknown[0]!r}" if unknown else "has a setting without a value, or twice"
        raise BadValue(f"{name}: {what}; write {plain}?NAME=VALUE&NAME=VALUE, with {', '.join(known)}")
    settings = dict(known)
    for key, text in values.items():
        try:
            settings[key] = type(known[key])(text)
        except ValueError:
            raise BadValue(f"{name}: {key} is {known[key]!r} or the like, not {text!r}") from None
    return plain + (f"#{fragment}" if fragment else ""), settings


@dataclass(frozen=True, slots=True)
class Question:
    """Question about a video, in the form that a model takes."""

    frames: npt.NDArray[np.uint8]  # (T, H, W, 3), RGB; T may be 0 (blind baseline)
    times: npt.NDArray[np.float64]  # (T,), seconds in the video
    text: str  # the question itself
    options: tuple[str, ...]  # without letters


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of a model to a question."""

    log_probs: tuple[float, ...] | None  # one an option, normalised over the options; None where only text is known
    text: str | None  # answer in words, where the model gave one
    choice: int | None  # index of the option chosen; None: unreadable
    lower_bounds: tuple[bool, ...] = ()  # options whose value is only a bound (outside a server's top-k)


@runtime_checkable
class QuestionModel(Protocol):
    """Model that answers questions about videos."""

    @property
    def frames(self) -> int:
        """Number of frames that it wants; sampled at the middles of equal parts."""

    def describe(self) -> dict[str, object]:
        """Return what goes into the record: prompt, template, frames, pixels, tokens, precision, versions."""

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer questions, each as if alone."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Sentence whose windows are to be found in a video."""

    frames: npt.NDArray[np.uint8]  # (T, H, W, 3), RGB
    times: npt.NDArray[np.float64]  # (T,), seconds in the video
    text: str
    duration: float  # of the video, in seconds


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of a video that a model proposes for a sentence."""

    windows: tuple[tuple[float, float, float], ...]  # start, end, score, best first


@runtime_checkable
class MomentModel(Protocol):
    """Model that finds sentences in videos."""

    @property
    def frames(self) -> int:
        """Number of frames that it wants; sampled at the middles of equal parts."""

    def describe(self) -> dict[str, object]:
        """Return what goes into the record."""

    def locate(self, sentences: Sequence[Sentence]) -> list[Windows]:
        """Find sentences, each as if alone."""
