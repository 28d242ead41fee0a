"""Prediction for single frames of a video: those that a job names, once per cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from jostle.core.types.clip import Frames
from jostle.corruptions.engine.stages import origins
from jostle.datasets.class_matching import ClassMatch, Scores
from jostle.evaluation.inference.footage import open_footage
from jostle.evaluation.inference.jobs import VideoJob, VideoResult
from jostle.evaluation.inference.recognition import ClipModel, ClipScorer, Pending, submit_clips
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.features.frames import SlidingFrames
from jostle.features.result import Cost

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
        batch: frames per call.
        together: combines the answers of a cell.
    """
    with open_footage(job) as footage:
        numbers = np.array([footage.number_of(frame) for frame in job.frames], np.int64)
        in_time = np.argsort(numbers, kind="stable")  # codecs decode forwards only
        scorer = ClipScorer(job.name, lambda frames, _: submit(frames), batch)
        clean = Cost()
        for cell in job.cells:
            top = footage.under(cell)
            came_from, belt = origins(top)[numbers], SlidingFrames(top, numbers[:, None])
            for i in in_time.tolist():
                scorer.request((cell.name, i), came_from[i : i + 1], numbers[i : i + 1], belt)
            if cell.name == CLEAN:
                scorer.flush()
                clean = scorer.cost(footage.decoded)
        scorer.wait()
        outputs = {cell.name: together([scorer[cell.name, i] for i in range(len(numbers))]) for cell in job.cells}
        frame_indices = tuple(np.unique(numbers).tolist())
        return VideoResult(outputs, clean, scorer.cost(footage.decoded, clean), frame_indices=frame_indices)


@dataclass(frozen=True)
class FramePredictor:
    """Predictor of a frame classifier for the frames that a job names; a frame is a clip of length one.

    Attributes:
        match: maps the model's classes to the data set's.
        batch: frames per call.
        guard: context manager for model calls, such as one that limits threads.
    """

    model: ClipModel
    match: ClassMatch
    batch: int = 1
    guard: Callable[[], AbstractContextManager[None]] = nullcontext

    def __call__(self, job: VideoJob) -> VideoResult[Scores]:
        """Return (frames, classes) scores for each cell, in the sequence of the job's frames."""
        with self.guard():
            return predict_frames(job, partial(submit_clips, self.model, self.match), self.batch, np.stack)
