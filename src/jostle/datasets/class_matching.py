"""Which scores of a model belong to which class of a data set: by name where both have names, else by number."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from jostle.errors import BadValue
from jostle.io.files.video_ids import listing
from jostle.metrics.class_projection import IMAGENET_CLASSES, project_classes

Scores = npt.NDArray[np.float32]
Projection = Literal["imagenet-vid", "ytbb"]

_EMPTY_NAME = re.compile(r"(label|class)?[ _]?\d+", re.IGNORECASE)  # what libraries write where nobody named anything


@dataclass(frozen=True)
class ClassMatch:
    """How scores of a model become scores of a data set's classes.

    Attributes:
        how: by name, or by number; the latter also where classes of ImageNet are merged into fewer.
        wanted: how many scores the model has to give; None for any number from `least` on.
        columns: of each class of the data set the place among the model's scores; empty where they are the same.
        least: the fewest scores that make sense.
        project: merges the scores of ImageNet's classes, if the model gives those.
    """

    how: Literal["by name", "by number"]
    wanted: int | None
    columns: tuple[int, ...] = ()
    least: int = 1
    project: Projection | None = None

    def apply(self, scores: Scores, model: str) -> Scores:
        """(B, classes of the data set) from (B, classes of the model).

        Raises:
            BadValue: if the model gives another number of scores.
        """
        given = scores.shape[1]
        if self.project is not None and given == IMAGENET_CLASSES:
            return np.asarray(project_classes(scores, self.project), np.float32)
        if self.wanted is not None and given != self.wanted:
            raise BadValue(
                f"{model} gives {given} scores, and there are {self.wanted} classes; give a model of these classes, or "
                "one that names its own"
            )
        if given < self.least:
            raise BadValue(f"{model} gives {given} scores, and the labels go up to class {self.least - 1}")
        return scores[:, list(self.columns)] if self.columns else scores


def match_classes(model: str, own: Sequence[str], classes: Sequence[str], *, numbered: bool = False) -> ClassMatch:
    """Match the classes of a model with those of a data set.

    Names are compared without regard to case, spaces and hyphens. A model may know more classes than the data set has.

    Args:
        model: its name, for messages.
        own: names of its classes; none if it does not know them.
        classes: those of the data set.
        numbered: whether the data set's names are mere numbers.

    Raises:
        BadValue: if the model does not know a class of the data set.

    >>> match_classes("net", ("Sit down", "jump", "run"), ("run", "sit_down")).columns
    (2, 0)
    """
    if not own or numbered or all(_EMPTY_NAME.fullmatch(name) for name in own):
        if own and len(own) != len(classes):
            raise BadValue(
                f"{model} has {len(own)} classes without names, the data set {len(classes)}; give one of these classes"
            )
        return ClassMatch("by number", len(classes))
    places = _places(own, classes)
    unknown = [name for name in classes if name not in places]
    if unknown:
        raise BadValue(
            f"{model} does not know {len(unknown)} of the data set's {len(classes)} classes: {listing(unknown)}; its "
            f"own {len(own)} are {listing(own)}"
        )
    columns = tuple(places[name] for name in classes)
    return ClassMatch("by name", len(own), () if columns == tuple(range(len(own))) else columns)


def _places(own: Sequence[str], classes: Sequence[str]) -> dict[str, int]:
    """The place of each of `classes` that is among `own`."""
    plain = [_plain(name) for name in own]
    if max(Counter(plain).values()) > 1 or max(Counter(map(_plain, classes)).values()) > 1:
        exact = {name: place for place, name in enumerate(own)}
        return {name: exact[name] for name in classes if name in exact}
    by_name = {name: place for place, name in enumerate(plain)}
    return {name: by_name[_plain(name)] for name in classes if _plain(name) in by_name}


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()
