"""One video of a run, clean and under a corruption: detections along it with their kinds of error, or answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from jostle.core.types.columns import Flags, Floats
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.cell_scores import predictions_on, right_answers, table_rows
from jostle.evaluation.results.record import RunRecord
from jostle.metrics.alignment import align
from jostle.metrics.diagnosis.false_positives import ERROR_KINDS, classify_errors, nearest_instances
from jostle.metrics.matching import NONE, Segmentation, match
from jostle.metrics.score import operating_score as score_at_count


@dataclass(frozen=True)
class AnnotatedAction:
    """Annotated action on a timeline."""

    start: float
    end: float
    label: str
    found_clean: bool  # whether a detection of its class took it on clean video
    found_corrupted: bool  # whether one did under the corruption

    @property
    def lost(self) -> bool:
        """Found on clean video, and missed under the corruption."""
        return self.found_clean and not self.found_corrupted


@dataclass(frozen=True)
class Detection:
    """Detection on a timeline, with its kind of error."""

    start: float
    end: float
    label: str
    score: float
    tiou: float  # its overlap with the action of any class that it overlaps most; 0 with none
    kind: str  # `true_positive`, or the kind of error, in the words of DETAD
    action: int | None  # the number of that action, or of the one it took; None if it touches none


@dataclass(frozen=True)
class VideoTimeline:
    """A video under a corruption."""

    video: str
    cell: str  # the corruption
    tiou: float  # the overlap from which a detection is right
    actions: tuple[AnnotatedAction, ...]  # by their beginning
    clean: tuple[Detection, ...]  # detections on clean video, by their beginning
    corrupted: tuple[Detection, ...]  # detections under the corruption

    @property
    def end(self) -> float:
        """Time at which the last action or detection ends."""
        ends = [*(one.end for one in self.actions), *(one.end for one in (*self.clean, *self.corrupted))]
        return max(ends, default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the timeline as plain values for JSON."""
        return {"format": 1, **asdict(self)}


def timeline_of(
    record: RunRecord, video: str, cell: str, *, tiou: float | None = None, sure: float = 0.0
) -> VideoTimeline:
    """The timeline of a video of a run of detection.

    Args:
        tiou: the overlap from which a detection is right; by default the middle one of the benchmark.
        sure: detections below this score neither count nor are given, clean and corrupted alike.

    Raises:
        UnknownName: if the run has no such video or cell.
    """
    if record.task != "detection":
        raise BadValue(f"{record.folder}: a run of {record.task} has no detections to lay along a video")
    if video not in record.truth.videos:
        raise UnknownName(f"video of {record.folder}", video, record.truth.videos)
    tious = record.about.content.tious
    threshold = tious[len(tious) // 2] if tiou is None else tiou
    rules = record.rules
    truth = rules.prepare(record.truth.of_videos([video]))
    parts = {}
    for which in (CLEAN, cell):
        predictions = _sure(predictions_on(record, which, [video]), sure)
        parts[which] = _judged(predictions, truth, record, threshold)
    order = np.lexsort((truth.end, truth.start)).tolist()
    number = {row: i for i, row in enumerate(order)}
    actions = tuple(
        AnnotatedAction(
            float(truth.start[row]),
            float(truth.end[row]),
            truth.classes[truth.label[row]],
            bool(parts[CLEAN][1][row]),
            bool(parts[cell][1][row]),
        )
        for row in order
    )
    clean, corrupted = (_numbered(parts[which][0], number) for which in (CLEAN, cell))
    return VideoTimeline(video, cell, float(threshold), actions, clean, corrupted)


def operating_score(record: RunRecord) -> float:
    """Return the score from which on there are as many detections on clean video as actions."""
    return score_at_count(record.predictions(CLEAN).score, len(record.truth))


def _sure(predictions: Predictions, sure: float) -> Predictions:
    rows = predictions.score >= sure
    columns = (
        predictions.video[rows],
        predictions.start[rows],
        predictions.end[rows],
        predictions.label[rows],
        predictions.score[rows],
    )
    return Predictions(predictions.videos, predictions.classes, *columns, numbered=predictions.numbered)


def _judged(predictions: Predictions, truth: Truth, record: RunRecord, tiou: float) -> tuple[list[Detection], Flags]:
    """Every detection of a known class with its kind, and which actions were taken; `action` is a row of the truth."""
    rules = record.rules
    aligned = align(predictions, truth)
    matched = np.full(len(aligned), NONE, np.int64)
    if len(truth):
        matches = match(aligned, truth, rules, np.array([tiou]))
        hit = np.flatnonzero(matches.taken_by[0] != NONE)
        matched[matches.ranking.order[matches.taken_by[0, hit]]] = hit
    near, overlap = nearest_instances(aligned, truth, Segmentation(np.arange(len(truth)), truth.start, truth.end))
    kind = classify_errors(overlap, np.append(truth.label, NONE)[near] == aligned.label, tiou)
    kind[matched != NONE] = 0
    own = np.where(matched != NONE, matched, near)
    detections = [
        Detection(
            float(aligned.start[i]),
            float(aligned.end[i]),
            truth.classes[aligned.label[i]],
            float(aligned.score[i]),
            float(overlap[i]),
            ERROR_KINDS[kind[i]],
            None if own[i] == NONE else int(own[i]),
        )
        for i in range(len(aligned))
    ]
    return detections, np.isin(np.arange(len(truth)), matched)


def _numbered(detections: Sequence[Detection], number: dict[int, int]) -> tuple[Detection, ...]:
    placed = [replace(one, action=None if one.action is None else number[one.action]) for one in detections]
    return tuple(sorted(placed, key=lambda one: (one.start, -one.score)))


@dataclass(frozen=True)
class ClassScore:
    """Scores of one class, clean and corrupted."""

    label: str
    clean: float
    corrupted: float
    true: bool  # whether the video is of this class


@dataclass(frozen=True)
class Answers:
    """A video before a recogniser."""

    video: str
    cell: str
    k: int  # how many guesses it has
    # Whether a class of the video is among them
    right_clean: bool
    right_corrupted: bool
    # The classes of the video, and those that were scored highest, clean or corrupted; best clean first
    scores: tuple[ClassScore, ...]
    classes: int  # how many there are in all

    def to_dict(self) -> dict[str, Any]:
        """Return the answers as plain values for JSON."""
        return {"format": 1, **asdict(self)}


def answers_of(record: RunRecord, video: str, cell: str, *, most: int = 8) -> Answers:
    """Return a recogniser's scores for a video, clean and under a cell: the `most` highest classes of each side."""
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
    """A frame before a classifier."""

    frame: str  # its name, `<video>/<frame>`
    classes: tuple[int, ...]  # those it may be taken for
    # The predicted class; None where the frame was not evaluated
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
