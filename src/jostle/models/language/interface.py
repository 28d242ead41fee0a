"""Interface of video-language models: a question or a sentence to find, over frames with their times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt


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
