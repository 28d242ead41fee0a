"""Annotations stored in a run: the content of truth.json for tasks other than detection."""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass
from typing import Annotated

from jostle.core.types.language import MomentItem, QuestionItem
from jostle.io.files.records import Bounds, ValidationError

Seconds = Annotated[float, Bounds(0)]
ActionSpans = dict[str, tuple[tuple[Seconds, Seconds], ...]]


@dataclass(frozen=True)
class LabelledVideos:
    """Classes of videos, for runs of recognition."""

    classes: tuple[str, ...]
    videos: dict[str, tuple[str, ...]]  # classes of each video
    actions: ActionSpans | None = None  # spans of the actions in videos, where known; None in older runs

    def __post_init__(self) -> None:
        _check_spans(self.actions)
        known = set(self.classes)
        if not known or len(known) < len(self.classes):
            raise ValidationError("must be distinct and not empty").under("classes")
        for video, labels in self.videos.items():
            if not known.issuperset(labels):
                raise (
                    ValidationError(f"has the class {min(set(labels) - known)!r}, which is not among the classes")
                    .under(video)
                    .under("videos")
                )


@dataclass(frozen=True)
class LabelledFrames:
    """Sets of frames and their classes, for runs of pm-k."""

    sets: dict[str, tuple[str, ...]]  # frames similar to each anchor
    labels: dict[str, tuple[int, ...] | int]  # accepted classes of each frame
    actions: ActionSpans | None = None  # spans of the actions in videos, where known; None in older runs

    def __post_init__(self) -> None:
        _check_spans(self.actions)
        _check_sets(self.sets, self.labels, "labels")


Side = Annotated[float, Bounds(-math.inf)]


@dataclass(frozen=True)
class BoxedFrames:
    """Sets of frames and the objects in them, for runs of pm-k of object detectors."""

    classes: tuple[str, ...]  # class names by index
    sets: dict[str, tuple[str, ...]]  # frames similar to each anchor
    boxes: dict[str, tuple[tuple[Side, Side, Side, Side, Side], ...]]  # of each frame, rows of class, x1, y1, x2, y2
    actions: ActionSpans | None = None  # spans of the actions in videos, where known

    def __post_init__(self) -> None:
        _check_spans(self.actions)
        _check_sets(self.sets, self.boxes, "boxes")
        for frame, rows in self.boxes.items():
            if not all(row[0] in range(len(self.classes)) and row[1] <= row[3] and row[2] <= row[4] for row in rows):
                raise ValidationError("has an invalid box or class").under(frame).under("boxes")


@dataclass(frozen=True)
class QuestionedVideos:
    """Questions about videos, for runs of questions."""

    questions: tuple[QuestionItem, ...]
    actions: ActionSpans | None = None  # spans of the actions in videos, where known

    def __post_init__(self) -> None:
        _check_spans(self.actions)
        if not self.questions:
            raise ValidationError("must not be empty").under("questions")


@dataclass(frozen=True)
class DescribedVideos:
    """Sentences about videos, for runs of moments."""

    moments: tuple[MomentItem, ...]
    actions: ActionSpans | None = None  # the windows of each video, each once

    def __post_init__(self) -> None:
        _check_spans(self.actions)
        if not self.moments:
            raise ValidationError("must not be empty").under("moments")


def _check_spans(spans: ActionSpans | None) -> None:
    for video, pairs in (spans or {}).items():
        if any(start >= end for start, end in pairs):
            raise ValidationError("has an action that ends before it begins").under(video).under("actions")


def _check_sets(sets: dict[str, tuple[str, ...]], known: Container[str], key: str) -> None:
    if not sets:
        raise ValidationError("must not be empty").under("sets")
    for anchor, others in sets.items():
        for frame in (anchor, *others):
            if frame not in known:
                raise ValidationError(f"lack the frame {frame!r} of the set of {anchor!r}").under(key)
