"""One video of a run of recognition or of frames: what the model answered, clean and under a corruption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from jostle.core.types.columns import Floats
from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.reporting.analysis.cell_scores import right_answers, table_rows
from jostle.reporting.analysis.record import RunRecord


@dataclass(frozen=True)
class ClassScore:
    """Scores of one class, clean and corrupted.

    Attributes:
        true: whether the video is of this class.
    """

    label: str
    clean: float
    corrupted: float
    true: bool


@dataclass(frozen=True)
class Answers:
    """A video before a recogniser.

    Attributes:
        k: how many guesses it has.
        right_clean, right_corrupted: whether a class of the video is among them.
        scores: the classes of the video, and those that were scored highest, clean or corrupted; best clean first.
        classes: how many there are in all.
    """

    video: str
    cell: str
    k: int
    right_clean: bool
    right_corrupted: bool
    scores: tuple[ClassScore, ...]
    classes: int

    def to_dict(self) -> dict[str, Any]:
        """Return the answers as plain values for JSON."""
        return {"format": 1, **asdict(self)}


def answers_of(record: RunRecord, video: str, cell: str, *, most: int = 8) -> Answers:
    """Return a recogniser's scores for a video, clean and under a cell.

    Args:
        most: how many of the highest classes are given, of each side.

    Raises:
        UnknownName: if the run has no such video or cell.
    """
    if record.task != "recognition":
        raise BadValue(f"{record.folder}: a run of {record.task} has no scores of videos")
    if video not in record.labels.videos:
        raise UnknownName(f"video of {record.folder}", video, record.labels.videos)
    clean, corrupted = (table_rows(record, which, [video])[0] for which in (CLEAN, cell))
    labels = record.labels.of_videos([video])
    true = set(labels.label.tolist())
    displayed = true | set(_highest(clean, most)) | set(_highest(corrupted, most))
    return Answers(
        video,
        cell,
        record.about.content.k or 1,
        bool(right_answers(record, CLEAN, [video])[0]),
        bool(right_answers(record, cell, [video])[0]),
        tuple(
            ClassScore(record.labels.classes[k], float(clean[k]), float(corrupted[k]), k in true)
            for k in sorted(displayed, key=lambda k: (-clean[k], k))
        ),
        len(record.labels.classes),
    )


@dataclass(frozen=True)
class FrameAnswer:
    """A frame before a classifier.

    Attributes:
        frame: its name, `<video>/<frame>`.
        classes: those it may be taken for.
        clean, corrupted: the predicted class; None where the frame was not evaluated.
    """

    frame: str
    classes: tuple[int, ...]
    clean: int | None
    corrupted: int | None

    @property
    def right_clean(self) -> bool:
        """Whether the clean answer is one of the classes."""
        return self.clean in self.classes

    @property
    def right_corrupted(self) -> bool:
        """Whether the answer under the corruption is one of the classes."""
        return self.corrupted in self.classes

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values for JSON."""
        return {**asdict(self), "right_clean": self.right_clean, "right_corrupted": self.right_corrupted}


@dataclass(frozen=True)
class FrameSetAnswers:
    """An anchor and the frames that look like it."""

    anchor: FrameAnswer
    neighbours: tuple[FrameAnswer, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the answers as plain values for JSON."""
        return {"anchor": self.anchor.to_dict(), "neighbours": [one.to_dict() for one in self.neighbours]}


def frame_answers(record: RunRecord, video: str, cell: str) -> tuple[FrameSetAnswers, ...]:
    """Return a frame classifier's answers for the frame sets of a video.

    Raises:
        UnknownName: if the run has no such video or cell.
    """
    if record.task != "frames":
        raise BadValue(f"{record.folder}: a run of {record.task} has no sets of frames")
    sets = {a: others for a, others in record.frames.sets.items() if a.rpartition("/")[0] == video}
    if not sets:
        raise UnknownName(f"video of {record.folder}", video, record.frames.videos)
    clean, corrupted = (_taken_for(record, which) for which in (CLEAN, cell))
    held_to_anchor = record.about.content.labels_of == "anchor"

    def answer(frame: str, anchor: str) -> FrameAnswer:
        labels = record.frames.labels[anchor if held_to_anchor else frame]
        classes = (labels,) if isinstance(labels, int) else tuple(labels)
        return FrameAnswer(frame, classes, clean.get(frame), corrupted.get(frame))

    return tuple(
        FrameSetAnswers(answer(anchor, anchor), tuple(answer(frame, anchor) for frame in others))
        for anchor, others in sets.items()
    )


def _taken_for(record: RunRecord, cell: str) -> Mapping[str, int]:
    names, scores = record.table(cell)
    return dict(zip(names, scores.argmax(axis=1).tolist(), strict=True))


def _highest(scores: Floats, most: int) -> Sequence[int]:
    indices: list[int] = np.argsort(-scores, kind="stable")[:most].tolist()
    return indices
