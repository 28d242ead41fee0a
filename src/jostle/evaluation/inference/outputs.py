"""Predictions for one video that are more than an array: boxes of frames, answers and windows with their baselines."""

from __future__ import annotations

from dataclasses import dataclass

from jostle.core.types.boxes import Boxes
from jostle.core.types.language import MomentPrediction, QuestionAnswer

BASELINES = ("blind", "one_frame")  # no frames, and the one in the middle


@dataclass(frozen=True)
class VideoAnswers:
    """Answers to the questions of one video in one cell, in the order of the questions.

    Attributes:
        baselines: by `BASELINES`, answers without the video and with one frame; only of the clean cell.
        failed: by `BASELINES`, why the model gave none.
    """

    answers: tuple[QuestionAnswer, ...]
    baselines: dict[str, tuple[QuestionAnswer, ...]]
    failed: dict[str, str]


@dataclass(frozen=True)
class VideoMoments:
    """Windows for the sentences of one video in one cell, in the order of the sentences; see `VideoAnswers`."""

    predictions: tuple[MomentPrediction, ...]
    baselines: dict[str, tuple[MomentPrediction, ...]]
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
