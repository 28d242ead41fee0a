"""One video under one corruption: what is there, what was found before and after, and what kind of error each is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from jostle.core.types.columns import Flags
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.metrics.alignment import align
from jostle.metrics.diagnosis.false_positives import ERROR_KINDS, classify_errors, nearest_instances
from jostle.metrics.matching import NONE, Segmentation, match
from jostle.reporting.analysis.cell_scores import predictions_on
from jostle.reporting.analysis.record import RunRecord


@dataclass(frozen=True)
class AnnotatedAction:
    """Annotated action on a timeline.

    Attributes:
        found_clean: whether a detection of its class took it on clean video.
        found_corrupted: whether one did under the corruption.
    """

    start: float
    end: float
    label: str
    found_clean: bool
    found_corrupted: bool

    @property
    def lost(self) -> bool:
        """Found on clean video, and missed under the corruption."""
        return self.found_clean and not self.found_corrupted


@dataclass(frozen=True)
class Detection:
    """Detection on a timeline, with its kind of error.

    Attributes:
        tiou: its overlap with the action of any class that it overlaps most; 0 with none.
        kind: `true_positive`, or the kind of error, in the words of DETAD.
        action: the number of that action, or of the one it took; None if it touches none.
    """

    start: float
    end: float
    label: str
    score: float
    tiou: float
    kind: str
    action: int | None


@dataclass(frozen=True)
class VideoTimeline:
    """A video under a corruption.

    Attributes:
        cell: the corruption.
        tiou: the overlap from which a detection is right.
        actions: by their beginning.
        clean: detections on clean video, by their beginning.
        corrupted: detections under the corruption.
    """

    video: str
    cell: str
    tiou: float
    actions: tuple[AnnotatedAction, ...]
    clean: tuple[Detection, ...]
    corrupted: tuple[Detection, ...]

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
    """A score from which on there are as many detections on clean video as actions: a fair cut for pictures.

    A detector gives hundreds of unsure detections a video, which matter to average precision and to nobody's eye.
    """
    predictions, truth = record.predictions(CLEAN), record.truth
    if len(predictions) <= len(truth) or not len(truth):
        return float(predictions.score.min(initial=0.0))
    return float(np.partition(predictions.score, -len(truth))[-len(truth)])


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
