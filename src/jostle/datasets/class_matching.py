"""Matching of a model's classes, or an object detector's, with those of a data set: by name, or else by number."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from jostle.core.formatting import join_names
from jostle.core.types.boxes import Boxes
from jostle.errors import BadValue
from jostle.metrics.class_projection import IMAGENET_CLASSES, project_classes

Scores = npt.NDArray[np.float32]
Projection = Literal["imagenet-vid", "ytbb"]

_EMPTY_NAME = re.compile(r"(label|class)?[ _]?\d+", re.IGNORECASE)  # placeholder names of libraries


@dataclass(frozen=True)
class ClassMatch:
    """Mapping from a model's scores to scores of a data set's classes."""

    # By name, or by number; the latter also if classes of ImageNet are merged into fewer.
    how: Literal["by name", "by number"]
    outputs: int | None  # number of scores that the model must return; None for any number from `least` on
    # Column of each class of the data set among the model's scores; empty if they are the same.
    columns: tuple[int, ...] = ()
    least: int = 1  # smallest valid number of scores
    project: Projection | None = None  # merges the scores of ImageNet's classes, if the model returns those

    def apply(self, scores: Scores, model: str) -> Scores:
        """Map (B, classes of the model) to (B, classes of the data set)."""
        count = scores.shape[1]
        if self.project is not None and count == IMAGENET_CLASSES:
            return np.asarray(project_classes(scores, self.project), np.float32)
        if self.outputs is not None and count != self.outputs:
            raise BadValue(
                f"{model} returns {count} scores, and there are {self.outputs} classes; pass a model of these classes, "
                "or one that names its own"
            )
        if count < self.least:
            raise BadValue(f"{model} returns {count} scores, and the labels go up to class {self.least - 1}")
        return scores[:, list(self.columns)] if self.columns else scores


def match_classes(model: str, own: Sequence[str], classes: Sequence[str], *, numbered: bool = False) -> ClassMatch:
    """Match the classes of a model with those of a data set.

    Names are compared without regard to case, spaces and hyphens. A model may know more classes than the data set has.

    Args:
        own: names of its classes; none if it does not know them.
        numbered: whether the data set's names are mere numbers.

    >>> match_classes("net", ("Sit down", "jump", "run"), ("run", "sit_down")).columns
    (2, 0)
    """
    if not own or numbered or all(_EMPTY_NAME.fullmatch(name) for name in own):
        if own and len(own) != len(classes):
            raise BadValue(
                f"{model} has {len(own)} classes without names, the data set {len(classes)}; pass one of these classes"
            )
        return ClassMatch("by number", len(classes))
    places = _column_indices(own, classes)
    unknown = [name for name in classes if name not in places]
    if unknown:
        raise BadValue(
            f"{model} does not know {len(unknown)} of the data set's {len(classes)} classes: {join_names(unknown)}; "
            f"its own {len(own)} are {join_names(own)}"
        )
    columns = tuple(places[name] for name in classes)
    return ClassMatch("by name", len(own), () if columns == tuple(range(len(own))) else columns)


def _column_indices(own: Sequence[str], classes: Sequence[str]) -> dict[str, int]:
    """Return the index in `own` of each of `classes` that it has."""
    plain = [_plain(name) for name in own]
    if max(Counter(plain).values()) > 1 or max(Counter(map(_plain, classes)).values()) > 1:
        exact = {name: place for place, name in enumerate(own)}
        return {name: exact[name] for name in classes if name in exact}
    by_name = {name: place for place, name in enumerate(plain)}
    return {name: by_name[_plain(name)] for name in classes if _plain(name) in by_name}


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


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
    """Mapping from a detector's labels to those of a data set."""

    how: Literal["by name", "by number"]  # by name, or by number
    # Of each of the detector's classes the number in the data set, -1 for one that it lacks; None for the same numbers.
    numbers: tuple[int, ...] | None
    known: tuple[str, ...]  # the data set's classes that the detector can find; the others are not scored

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
        own: names of its classes, in the order of its numbers; none if it does not know them.

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
