"""Single frames of a video: those that an order names, each looked at once in every cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from jostle.benchmarks.recipe import CLEAN
from jostle.corrupting.stages import origins
from jostle.extraction.frames import Belt
from jostle.extraction.made import Cost
from jostle.looking.footage import footage_of
from jostle.looking.recognition import Later, Scoring
from jostle.looking.work import Looked, Order
from jostle.types.clip import Frames

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
