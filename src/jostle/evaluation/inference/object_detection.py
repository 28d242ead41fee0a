"""Object detection in single frames: those of the sets that pm-k is computed from, once per cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from jostle.core.types.boxes import Boxes
from jostle.core.types.clip import Frames
from jostle.datasets.object_classes import ObjectMatch
from jostle.errors import BadValue
from jostle.evaluation.inference.jobs import VideoJob, VideoResult
from jostle.evaluation.inference.recognition import Pending, submit_frames
from jostle.evaluation.inference.single_frames import predict_frames


class ObjectModel(Protocol):
    """Protocol of models from frames to boxes; every `jostle.models.ObjectDetector` implements it."""

    @property
    def name(self) -> str: ...

    def __call__(self, frames: Frames) -> Sequence[Boxes]:
        """Return scored boxes for each of (N, H, W, 3) uint8 frames, independent of the batch."""


@dataclass(frozen=True)
class NamedObjectModel:
    """User's callable with a name."""

    find: Callable[[Frames], Sequence[Boxes]]
    name: str

    def __call__(self, frames: Frames) -> Sequence[Boxes]:
        """Return the boxes of each frame."""
        return self.find(frames)


@dataclass(frozen=True)
class ObjectPredictions:
    """Boxes detected in the frames of a video.

    Attributes:
        boxes: of each frame, with class indices of the data set.
        known: the data set's classes that the detector knows.
    """

    boxes: tuple[Boxes, ...]
    known: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """Size of the boxes in bytes."""
        return 7 * 8 * sum(len(boxes) for boxes in self.boxes)


@dataclass(frozen=True)
class ObjectPredictor:
    """Predictor of an object detector for the frames that a job names.

    Attributes:
        match: maps the model's classes to the data set's.
        batch: frames per call.
        guard: context manager for model calls, such as one that limits threads.
    """

    model: ObjectModel
    match: ObjectMatch
    batch: int = 1
    guard: Callable[[], AbstractContextManager[None]] = nullcontext

    def __call__(self, job: VideoJob) -> VideoResult[ObjectPredictions]:
        """Return boxes for each cell, in the order of the job's frames."""
        with self.guard():
            return predict_frames(job, self._boxes, self.batch, self._collect)

    def _collect(self, boxes: Sequence[Boxes]) -> ObjectPredictions:
        return ObjectPredictions(tuple(boxes), self.match.known)

    def _boxes(self, clips: Frames) -> Pending[Boxes]:
        """Submit clips of one frame to the detector."""
        pending = submit_frames(self.model, clips[:, 0])
        return lambda: self._match(pending(), len(clips))

    def _match(self, outputs: Sequence[Boxes], count: int) -> Sequence[Boxes]:
        if len(outputs) != count or not all(isinstance(one, Boxes) and one.score is not None for one in outputs):
            text = repr(outputs)[:100]
            raise BadValue(f"{self.model.name} must return Boxes with scores for each of {count} frames, not {text}")
        return [self.match.apply(one) for one in outputs]
