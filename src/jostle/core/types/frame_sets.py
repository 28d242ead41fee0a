"""Labelled sets of similar frames in a data set, for pm-k."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jostle.core.types.boxes import Boxes


@dataclass(frozen=True)
class FrameSets:
    """Anchors, the frames similar to them, and the classes of both.

    A frame is named by its video and its own name there, `<video>/<frame>`.

    Attributes:
        sets: the neighbours of each anchor.
        labels: the class numbers of each frame.

    >>> found = FrameSets({"v/5.jpg": ["v/4.jpg"], "w/9.jpg": []}, {"v/5.jpg": [1], "v/4.jpg": [1], "w/9.jpg": [0]})
    >>> found.frames, found.videos
    (('v/5.jpg', 'v/4.jpg', 'w/9.jpg'), ('v', 'w'))
    """

    task: ClassVar[str] = "frames"  # that it is the truth of
    holds: ClassVar[str] = "sets of frames"
    unit: ClassVar[str] = "anchors"

    sets: Mapping[str, Sequence[str]]
    labels: Mapping[str, Sequence[int] | int]

    @property
    def frames(self) -> tuple[str, ...]:
        """Every frame of the sets, once."""
        return tuple(dict.fromkeys(f for anchor, others in self.sets.items() for f in (anchor, *others)))

    @property
    def videos(self) -> tuple[str, ...]:
        """Every video that a frame of the sets is from, once."""
        return tuple(dict.fromkeys(frame.rpartition("/")[0] for frame in self.frames))

    def without(self, absent: Collection[str]) -> FrameSets:
        """Return the sets without some frames; a set without its anchor is dropped."""
        gone = set(absent)
        sets = {a: [f for f in others if f not in gone] for a, others in self.sets.items() if a not in gone}
        return FrameSets(sets, {frame: labels for frame, labels in self.labels.items() if frame not in gone})

    def of_videos(self, names: Collection[str]) -> FrameSets:
        """Return the sets of the named videos, with the labels of all frames."""
        return FrameSets(_sets_of(self.sets, names), self.labels)

    def __len__(self) -> int:
        return len(self.sets)

    def __repr__(self) -> str:
        return f"FrameSets({len(self)} anchors, {len(self.frames)} frames of {len(self.videos)} videos)"


@dataclass(frozen=True)
class BoxSets:
    """Anchors, the frames similar to them, and the objects in both.

    A frame is named by its video and its own name there, `<video>/<frame>`.

    Attributes:
        classes: their places are the class numbers.
        sets: the neighbours of each anchor.
        boxes: the true boxes of each frame, in pixels from its upper left corner.

    >>> one = Boxes([[0, 0, 10, 10]], [0])
    >>> found = BoxSets(("dog",), {"v/5.jpg": ["v/4.jpg"]}, {"v/5.jpg": one, "v/4.jpg": one})
    >>> found.frames, found.videos, len(found)
    (('v/5.jpg', 'v/4.jpg'), ('v',), 1)
    """

    task: ClassVar[str] = "objects"  # that it is the truth of
    holds: ClassVar[str] = "boxes of objects"
    unit: ClassVar[str] = "anchors"

    classes: tuple[str, ...]
    sets: Mapping[str, Sequence[str]]
    boxes: Mapping[str, Boxes]

    @property
    def frames(self) -> tuple[str, ...]:
        """Every frame of the sets, once."""
        return FrameSets(self.sets, {}).frames

    @property
    def videos(self) -> tuple[str, ...]:
        """Every video that a frame of the sets is from, once."""
        return FrameSets(self.sets, {}).videos

    def without(self, absent: Collection[str]) -> BoxSets:
        """Return the sets without some frames; a set without its anchor is dropped."""
        gone = set(absent)
        boxes = {frame: boxes for frame, boxes in self.boxes.items() if frame not in gone}
        return BoxSets(self.classes, FrameSets(self.sets, {}).without(absent).sets, boxes)

    def of_videos(self, names: Collection[str]) -> BoxSets:
        """Return the sets of the named videos, with the boxes of all frames."""
        return BoxSets(self.classes, _sets_of(self.sets, names), self.boxes)

    def only(self, classes: Collection[str]) -> BoxSets:
        """Return the sets with boxes of these classes only; class numbers stay."""
        indices = [i for i, name in enumerate(self.classes) if name in set(classes)]
        if len(indices) == len(self.classes):
            return self
        filtered = {frame: np.isin(boxes.label, indices) for frame, boxes in self.boxes.items()}
        boxes = {
            frame: Boxes(one.box[filtered[frame]], one.label[filtered[frame]]) for frame, one in self.boxes.items()
        }
        return BoxSets(self.classes, self.sets, boxes)

    def __len__(self) -> int:
        return len(self.sets)

    def __repr__(self) -> str:
        objects = sum(len(boxes) for boxes in self.boxes.values())
        return f"BoxSets({len(self)} anchors, {len(self.frames)} frames, {objects} objects)"


def _sets_of(sets: Mapping[str, Sequence[str]], names: Collection[str]) -> dict[str, Sequence[str]]:
    selected = set(names)
    return {anchor: others for anchor, others in sets.items() if anchor.rpartition("/")[0] in selected}
