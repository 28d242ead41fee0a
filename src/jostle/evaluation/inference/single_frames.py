"""Single frames of a video: those that an order names, each looked at once in every cell."""

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
from jostle.evaluation.inference.footage import footage_of
from jostle.evaluation.inference.jobs import Looked, Order
from jostle.evaluation.inference.recognition import ClipModel, Later, Scoring, scored
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.features.frames import Belt
from jostle.features.result import Cost

Answer = TypeVar("Answer")  # of a model on one frame
Found = TypeVar("Found")


def look_at_frames(
    order: Order,
    look: Callable[[Frames], Later[Answer]],
    batch: int,
    together: Callable[[Sequence[Answer]], Found],
) -> Looked[Found]:
    """What a model finds in the frames of an order, in their order there.

    Args:
        look: has a model look at some clips of one frame, (B, 1, H, W, 3); what it gives waits for an answer for each.
        batch: frames given at once.
        together: makes one thing of the answers in a cell.
    """
    with footage_of(order) as footage:
        numbers = np.array([footage.number_of(frame) for frame in order.frames], np.int64)
        in_time = np.argsort(numbers, kind="stable")  # codecs go forwards only
        scoring = Scoring(order.name, lambda frames, _: look(frames), batch)
        clean = Cost()
        for cell in order.cells:
            top = footage.under(cell)
            came_from, belt = origins(top)[numbers], Belt(top, numbers[:, None])
            for i in in_time.tolist():
                scoring.want((cell.name, i), came_from[i : i + 1], numbers[i : i + 1], belt)
            if cell.name == CLEAN:
                scoring.finish()
                clean = scoring.cost(footage.decoded)
        scoring.answered()
        found = {cell.name: together([scoring[cell.name, i] for i in range(len(numbers))]) for cell in order.cells}
        shown = tuple(np.unique(numbers).tolist())
        return Looked(found, clean, scoring.cost(footage.decoded, clean), shown=shown)


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
