"""What is annotated, as a run keeps it: the content of truth.json where the task is not detection."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from jostle.io.files.records import Misfit, Within

Seconds = Annotated[float, Within(0)]
Places = dict[str, tuple[tuple[Seconds, Seconds], ...]]


@dataclass(frozen=True)
class LabelledVideos:
    """Classes of videos, for runs of recognition.

    Attributes:
        videos: the classes of each.
        actions: where actions lie in videos of which that is known; None in older runs.
    """

    classes: tuple[str, ...]
    videos: dict[str, tuple[str, ...]]
    actions: Places | None = None

    def __post_init__(self) -> None:
        _check_places(self.actions)
        known = set(self.classes)
        if not known or len(known) < len(self.classes):
            raise Misfit("are none, or one stands there twice").under("classes")
        for video, labels in self.videos.items():
            if not known.issuperset(labels):
                raise (
                    Misfit(f"has the class {min(set(labels) - known)!r}, which is not among the classes")
                    .under(video)
                    .under("videos")
                )


@dataclass(frozen=True)
class LabelledFrames:
    """Sets of frames and their classes, for runs of pm-k.

    Attributes:
        sets: the frames that look like each anchor.
        labels: the classes that each frame may be taken for.
        actions: where actions lie in videos of which that is known; None in older runs.
    """

    sets: dict[str, tuple[str, ...]]
    labels: dict[str, tuple[int, ...] | int]
    actions: Places | None = None

    def __post_init__(self) -> None:
        _check_places(self.actions)
        if not self.sets:
            raise Misfit("are none").under("sets")
        for anchor, others in self.sets.items():
            for frame in (anchor, *others):
                if frame not in self.labels:
                    raise Misfit(f"lack the frame {frame!r} of the set of {anchor!r}").under("labels")


Side = Annotated[float, Within(-math.inf)]


@dataclass(frozen=True)
class BoxedFrames:
    """Sets of frames and the objects in them, for runs of pm-k of object detectors.

    Attributes:
        classes: their names, in the order of their numbers.
        sets: the frames that look like each anchor.
        boxes: of each frame, rows of class, x1, y1, x2, y2.
        actions: where actions lie in videos of which that is known.
    """

    classes: tuple[str, ...]
    sets: dict[str, tuple[str, ...]]
    boxes: dict[str, tuple[tuple[Side, Side, Side, Side, Side], ...]]
    actions: Places | None = None

    def __post_init__(self) -> None:
        _check_places(self.actions)
        if not self.sets:
            raise Misfit("are none").under("sets")
        for anchor, others in self.sets.items():
            for frame in (anchor, *others):
                if frame not in self.boxes:
                    raise Misfit(f"lack the frame {frame!r} of the set of {anchor!r}").under("boxes")
        for frame, rows in self.boxes.items():
            if not all(row[0] in range(len(self.classes)) and row[1] <= row[3] and row[2] <= row[4] for row in rows):
                raise Misfit("has what is no box of these classes").under(frame).under("boxes")


def _check_places(places: Places | None) -> None:
    for video, pairs in (places or {}).items():
        if any(start >= end for start, end in pairs):
            raise Misfit("has an action that ends before it begins").under(video).under("actions")
