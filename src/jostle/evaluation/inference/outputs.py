"""Predictions for one video that are more than an array: boxes of frames, answers and windows with their baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from jostle.core.types.boxes import Boxes
from jostle.core.types.language import MomentPrediction, QuestionAnswer

BASELINES = ("blind", "one_frame")  # no frames, and the one in the middle


Answer = TypeVar("Answer", QuestionAnswer, MomentPrediction)


@dataclass(frozen=True)
class VideoAnswers(Generic[Answer]):
    """Answers to the questions about one video in one cell, or windows for its sentences, in the order of the items.

    Attributes:
        baselines: by `BASELINES`, answers without the video and with one frame; only of the clean cell.
        failed: by `BASELINES`, why the model gave none.
    """

    answers: tuple[Answer, ...]
    baselines: dict[str, tuple[Answer, ...]]
    failed: dict[str, str]


@dataclass(frozen=True)
class ObjectPredictions:
    """Boxes detected in the frames of a video."""

    boxes: tuple[Boxes, ...]  # of each frame, with class indices of the data set
    known: tuple[str, ...]  # the data set's classes that the detector knows

    @property
    def nbytes(self) -> int:
        """Size of the boxes in bytes."""
        return 7 * 8 * sum(len(boxes) for boxes in self.boxes)
