"""Classification and object detection in single frames: those that a job names, once per cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from jostle.core.types.boxes import Boxes
from jostle.core.types.clip import Frames
from jostle.corruptions.engine.stages import origins
from jostle.datasets.class_matching import ClassMatch, ObjectMatch, Scores
from jostle.errors import BadValue
from jostle.evaluation.inference.footage import open_footage
from jostle.evaluation.inference.jobs import VideoJob, VideoResult
from jostle.evaluation.inference.outputs import ObjectPredictions
from jostle.evaluation.inference.recognition import ClipModel, ClipScorer, Pending, submit_clips, submit_frames
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.features.caches import SlidingFrames
from jostle.features.extraction import Cost

Answer = TypeVar("Answer")  # output of a model for one frame
Output = TypeVar("Output")


def predict_frames(
    job: VideoJob,
    submit: Callable[[Frames], Pending[Answer]],
    batch: int,
    together: Callable[[Sequence[Answer]], Output],
) -> VideoResult[Output]:
    """Run a model on the frames of a job, and return its outputs in the same order.

    Args:
        submit: starts a model on clips of one frame, (B, 1, H, W, 3); what it returns waits for one answer per clip.
        together: combines the answers of a cell.
    """
    with open_footage(job) as footage:
        numbers = np.array([footage.number_of(frame) for frame in job.frames], np.int64)
        in_time = np.argsort(numbers, kind="stable")  # codecs decode forwards only
        scorer = ClipScorer(job.name, lambda frames, _: submit(frames), batch if job.reuse else 1, reuse=job.reuse)
        clean = Cost()
        for cell in job.cells:
            top = footage.under(cell)
            came_from, frame_window = origins(top)[numbers], SlidingFrames(top, numbers[:, None])
            for i in in_time.tolist():
                scorer.request((cell.name, i), came_from[i : i + 1], numbers[i : i + 1], frame_window)
            if cell.name == CLEAN:
                scorer.flush()
                clean = scorer.cost(footage.decoded)
        scorer.wait()
        outputs = {cell.name: together([scorer[cell.name, i] for i in range(len(numbers))]) for cell in job.cells}
        frame_indices = tuple(np.unique(numbers).tolist())
        return VideoResult(outputs, clean, scorer.cost(footage.decoded, clean), frame_indices=frame_indices)


@dataclass(frozen=True)
class FramePredictor:
    """Predictor of a frame classifier for the frames that a job names; a frame is a clip of length one."""

    model: ClipModel
    match: ClassMatch  # maps the model's classes to the data set's
    batch: int = 1  # frames per call
    # Context manager for model calls, such as one that limits threads.
    guard: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def reuses(self) -> bool:
        """Whether frames share batches; alone, equal frames are computed equally."""
        return self.batch > 1

    def __call__(self, job: VideoJob) -> VideoResult[Scores]:
        """Return (frames, classes) scores for each cell, in the sequence of the job's frames."""
        with self.guard():
            return predict_frames(job, partial(submit_clips, self.model, self.match), self.batch, np.stack)


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

    @property
    def foreign(self) -> bool:
        """Whether the callable is not an `ObjectDetector`."""
        return type(self.find).__module__.split(".")[0] != "jostle"

    def __call__(self, frames: Frames) -> Sequence[Boxes]:
        """Return the boxes of each frame.

        Raises:
            BadValue: if the callable returns something else.
        """
        outputs = self.find(frames)
        if len(outputs) != len(frames) or not all(isinstance(one, Boxes) and one.score is not None for one in outputs):
            text = repr(outputs)[:100]
            raise BadValue(f"{self.name} must return Boxes with scores for each of {len(frames)} frames, not {text}")
        return outputs


@dataclass(frozen=True)
class ObjectPredictor:
    """Predictor of an object detector for the frames that a job names."""

    model: ObjectModel
    match: ObjectMatch  # maps the model's classes to the data set's
    batch: int = 1  # frames per call
    # Context manager for model calls, such as one that limits threads.
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
        return lambda: [self.match.apply(one) for one in pending()]
