"""Labelled frames in sets that look alike, as they come with a data set: what pm-k is computed from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class FrameSets:
    """Anchors, the frames that look like them, and the classes of both.

    A frame is named by its video and its own name there, `<video>/<frame>`.

    Attributes:
        sets: the neighbours of each anchor.
        labels: the class numbers of each frame.

    >>> found = FrameSets({"v/5.jpg": ["v/4.jpg"], "w/9.jpg": []}, {"v/5.jpg": [1], "v/4.jpg": [1], "w/9.jpg": [0]})
    >>> found.frames, found.videos
    (('v/5.jpg', 'v/4.jpg', 'w/9.jpg'), ('v', 'w'))
    """

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
        """What is left when frames are absent: a set without its anchor goes, other frames leave their sets."""
        gone = set(absent)
        sets = {a: [f for f in others if f not in gone] for a, others in self.sets.items() if a not in gone}
        return FrameSets(sets, {frame: labels for frame, labels in self.labels.items() if frame not in gone})

    def __len__(self) -> int:
        return len(self.sets)

    def __repr__(self) -> str:
        return f"FrameSets({len(self)} anchors, {len(self.frames)} frames of {len(self.videos)} videos)"
