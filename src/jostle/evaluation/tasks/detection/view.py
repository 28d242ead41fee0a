"""Detections along a video, clean and under a corruption, each with its kind of error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jostle.core.types.columns import Flags
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.evaluation.tasks.views import AnnotatedAction, Detection, TimelineView
from jostle.metrics.alignment import align
from jostle.metrics.diagnosis.false_positives import ERROR_KINDS, classify_errors, nearest_instances
from jostle.metrics.matching import NONE, Segmentation, match
from jostle.metrics.protocol import Protocol


def draw_detections(
    truth: Truth,
    sides: Sequence[Predictions],
    rules: Protocol,
    *,
    tiou: float,
    tious: Sequence[float],
    threshold: float,
    least: float,
) -> TimelineView:
    """Return the timeline of the only video of some annotations.

    Args:
        sides: predictions for it, clean and corrupted.
        tiou: overlap from which a detection is right.
        threshold: score from which detections count.
        least: detections of a lower score are left out, clean and corrupted alike.
    """
    (video,), (duration,) = truth.videos, truth.duration.tolist()
    truth = rules.prepare(truth)
    parts = [_judge(_confident(predictions, least), truth, rules, tiou) for predictions in sides]
    order = np.lexsort((truth.end, truth.start)).tolist()
    number = {row: i for i, row in enumerate(order)}
    actions = tuple(
        AnnotatedAction(
            float(truth.start[row]),
            float(truth.end[row]),
            truth.classes[truth.label[row]],
            *(bool(taken[row]) for _, taken in parts),
        )
        for row in order
    )
    clean, corrupted = (_renumber(detections, number) for detections, _ in parts)
    length = duration if np.isfinite(duration) else None
    return TimelineView(video, float(tiou), tuple(tious), actions, clean, corrupted, length, threshold)


def _confident(predictions: Predictions, least: float) -> Predictions:
    rows = predictions.score >= least
    columns = (
        predictions.video[rows],
        predictions.start[rows],
        predictions.end[rows],
        predictions.label[rows],
        predictions.score[rows],
    )
    return Predictions(predictions.videos, predictions.classes, *columns, numbered=predictions.numbered)


def _judge(predictions: Predictions, truth: Truth, rules: Protocol, tiou: float) -> tuple[list[Detection], Flags]:
    """Return every detection of a known class with its kind, and which actions were taken; `action` is their row."""
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


def _renumber(detections: Sequence[Detection], number: dict[int, int]) -> tuple[Detection, ...]:
    renumbered = [replace(one, action=None if one.action is None else number[one.action]) for one in detections]
    return tuple(sorted(renumbered, key=lambda one: (one.start, -one.score)))
