"""Scores of single frames: those of the sets that pm-k is computed from."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import numpy as np

from jostle.looking.class_match import ClassMatch, Scores
from jostle.looking.recognition import ClipModel, scored
from jostle.looking.single_frames import look_at_frames
from jostle.looking.work import Looked, Order


@dataclass(frozen=True)
class SeeingFrames:
    """Looks at the frames of a video that an order names; a frame is a clip of one.

    Attributes:
        match: makes scores of the data set's classes of the model's.
        batch: frames given at once.
        guard: a context to work in, such as one that keeps a library to one thread.
    """

    model: ClipModel
    match: ClassMatch
    batch: int = 1
    guard: Callable[[], AbstractContextManager[None]] = nullcontext

    def __call__(self, order: Order) -> Looked[Scores]:
        """(frames, classes) in each cell, in the order of the order's frames."""
        with self.guard():
            return look_at_frames(order, partial(scored, self.model, self.match), self.batch, np.stack)
