"""Matching of an object detector's classes with those of a data set, by name or else by number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jostle.core.types.boxes import Boxes
from jostle.errors import BadValue
from jostle.io.files.video_ids import join_names

# What COCO calls a class of ImageNet-Vid otherwise.
SAME = {
    "cow": "cattle",
    "cat": "domestic cat",
    "boat": "watercraft",
    "aeroplane": "airplane",
    "motorbike": "motorcycle",
}


@dataclass(frozen=True)
class ObjectMatch:
    """Mapping from a detector's labels to those of a data set.

    Attributes:
        how: by name, or by number.
        numbers: of each of the detector's classes the number in the data set, -1 for one that it lacks; None for the
            same numbers.
        known: the data set's classes that the detector can find; the others are not scored.
    """

    how: Literal["by name", "by number"]
    numbers: tuple[int, ...] | None
    known: tuple[str, ...]

    def apply(self, boxes: Boxes) -> Boxes:
        """Return the boxes of the data set's classes; others are dropped."""
        if self.numbers is None:
            inside = (boxes.label >= 0) & (boxes.label < len(self.known))
            label = boxes.label
        else:
            table = np.array([*self.numbers, -1], np.int64)
            outside = (boxes.label < 0) | (boxes.label >= len(self.numbers))
            label = table[np.where(outside, -1, boxes.label)]
            inside = label >= 0
        score = None if boxes.score is None else boxes.score[inside]
        return Boxes(boxes.box[inside], label[inside], score)


def match_objects(model: str, own: Sequence[str], classes: Sequence[str]) -> ObjectMatch:
    """Match the classes of a detector with those of a data set; it need not know all of them.

    Args:
        model: its name, for messages.
        own: names of its classes, in the order of its numbers; none if it does not know them.
        classes: those of the data set.

    Raises:
        BadValue: if it knows none of them.

    >>> match_objects("net", ("person", "Cat", "zebra"), ("zebra", "domestic cat", "whale"))
    ObjectMatch(how='by name', numbers=(-1, 1, 0), known=('zebra', 'domestic cat'))
    """
    if not own:
        return ObjectMatch("by number", None, tuple(classes))
    places = {_plain(name): i for i, name in enumerate(classes)}
    numbers = tuple(places.get(_plain(name), places.get(_plain(SAME.get(name.lower(), "")), -1)) for name in own)
    known = tuple(name for i, name in enumerate(classes) if i in numbers)
    if not known:
        raise BadValue(
            f"{model} knows none of the data set's {len(classes)} classes, {join_names(classes)}; "
            f"its own {len(own)} are {join_names(own)}"
        )
    return ObjectMatch("by name", numbers, known)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()
