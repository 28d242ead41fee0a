"""Objects in single frames: those of the sets that pm-k is computed from, each looked at once in every cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from jostle.core.types.boxes import Boxes
from jostle.core.types.clip import Frames
from jostle.datasets.object_classes import ObjectMatch
from jostle.errors import BadValue
from jostle.evaluation.inference.jobs import Looked, Order
from jostle.evaluation.inference.recognition import Later, later
from jostle.evaluation.inference.single_frames import look_at_frames


class ObjectModel(Protocol):
    """Frames in, boxes out; every `jostle.models.ObjectDetector` does that."""

    @property
    def name(self) -> str: ...

    def __call__(self, frames: Frames) -> Sequence[Boxes]:
        """The objects in each of (N, H, W, 3) uint8, with scores; the same for a frame in any company."""


@dataclass(frozen=True)
class NamedModel:
    """Somebody's callable with a name."""

    find: Callable[[Frames], Sequence[Boxes]]
    name: str

    def __call__(self, frames: Frames) -> Sequence[Boxes]:
        """The objects in each frame."""
        return self.find(frames)


@dataclass(frozen=True)
class FoundObjects:
    """What was found in the frames of a video.

    Attributes:
        boxes: of each frame, in the data set's numbers of classes.
        known: the data set's classes that the detector can find.
    """

    boxes: tuple[Boxes, ...]
    known: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """What it takes up."""
        return 7 * 8 * sum(len(boxes) for boxes in self.boxes)


@dataclass(frozen=True)
class SeeingObjects:
    """Looks at the frames of a video that an order names.

    Attributes:
        match: makes labels of the data set of the model's.
        batch: frames given at once.
        guard: a context to work in, such as one that keeps a library to one thread.
    """

    model: ObjectModel
    match: ObjectMatch
    batch: int = 1
    guard: Callable[[], AbstractContextManager[None]] = nullcontext

    def __call__(self, order: Order) -> Looked[FoundObjects]:
        """Boxes in each cell, in the order of the order's frames."""
        with self.guard():
            return look_at_frames(order, self._boxes, self.batch, self._found)

    def _found(self, boxes: Sequence[Boxes]) -> FoundObjects:
        return FoundObjects(tuple(boxes), self.match.known)

    def _boxes(self, clips: Frames) -> Later[Boxes]:
        """The objects in clips of one frame."""
        answer = later(self.model, clips[:, 0])
        return lambda: self._checked(answer(), len(clips))

    def _checked(self, given: Sequence[Boxes], count: int) -> Sequence[Boxes]:
        if len(given) != count or not all(isinstance(one, Boxes) and one.score is not None for one in given):
            gave = repr(given)[:100]
            raise BadValue(f"{self.model.name} has to give Boxes with scores for each of {count} frames, not {gave}")
        return [self.match.apply(one) for one in given]
