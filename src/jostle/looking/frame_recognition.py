"""Scores of single frames: those of the sets that pm-k is computed from, each looked at once in every cell."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np

from jostle.benchmarks.recipe import CLEAN
from jostle.corrupting.stages import origins
from jostle.extraction.engine import Cost
from jostle.extraction.frames import Belt
from jostle.looking.class_match import ClassMatch, Scores
from jostle.looking.footage import footage_of
from jostle.looking.recognition import ClipModel, Scoring
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
        with self.guard(), footage_of(order) as footage:
            numbers = np.array([footage.number_of(frame) for frame in order.frames], np.int64)
            in_time = np.argsort(numbers, kind="stable")  # codecs go forwards only
            scoring = Scoring(order.name, self.model, self.match, self.batch)
            clean = Cost()
            for cell in order.cells:
                top = footage.under(cell)
                came_from, belt = origins(top)[numbers], Belt(top)
                for i in in_time.tolist():
                    scoring.want((cell.name, i), came_from[i : i + 1], numbers[i : i + 1], belt)
                if cell.name == CLEAN:
                    scoring.finish()
                    clean = scoring.cost(footage.decoded)
            scoring.finish()
            found = {cell.name: np.stack([scoring[cell.name, i] for i in range(len(numbers))]) for cell in order.cells}
            shown = tuple(np.unique(numbers).tolist())
            return Looked(found, clean, scoring.cost(footage.decoded, clean), shown=shown)
