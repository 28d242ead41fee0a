"""True and predicted windows of the sentences about a video, clean and under a corruption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jostle.core.types.language import MomentItem, MomentPrediction
from jostle.evaluation.tasks.views import AnnotatedAction, Detection, TimelineView
from jostle.metrics.moments import RECALL_TIOUS, window_overlap


def draw_windows(
    video: str,
    items: Sequence[MomentItem],
    sides: Sequence[Mapping[str, MomentPrediction]],
    tiou: float,
    most: int | None = None,
) -> TimelineView:
    """Return the windows of a video as actions and detections labelled by their sentences.

    Args:
        sides: predictions by the id of a sentence, clean and corrupted.
        tiou: overlap from which a window is right, and a sentence found by its first one.
        most: windows of each sentence; by default all.
    """
    rows = sorted(((item, window) for item in items for window in item.windows), key=lambda row: row[1])
    number = {(item.id, window): i for i, (item, window) in enumerate(rows)}
    actions = tuple(
        AnnotatedAction(*window, item.text, *(_first_overlap(item, side.get(item.id)) >= tiou for side in sides))
        for item, window in rows
    )
    clean, corrupted = (
        tuple(
            sorted(
                (one for item in items for one in _detections(item, side.get(item.id), number, tiou, most)),
                key=lambda one: (one.start, -one.score),
            )
        )
        for side in sides
    )
    lengths = [item.duration for item in items if item.duration is not None]
    return TimelineView(
        video, tiou, tuple(RECALL_TIOUS), actions, clean, corrupted, max(lengths, default=None), by_sentence=True
    )


def _first_overlap(item: MomentItem, prediction: MomentPrediction | None) -> float:
    if prediction is None or not prediction.windows:
        return 0.0
    return max(window_overlap(prediction.windows[0][:2], window) for window in item.windows)


def _detections(
    item: MomentItem,
    prediction: MomentPrediction | None,
    number: Mapping[tuple[str, tuple[float, float]], int],
    tiou: float,
    most: int | None,
) -> list[Detection]:
    """Return the windows of a sentence, each with the true one that it overlaps most."""
    detections = []
    for rank, (start, end, score) in enumerate(() if prediction is None else prediction.windows[:most]):
        nearest = max(item.windows, key=lambda window: window_overlap((start, end), window))
        overlap = window_overlap((start, end), nearest)
        kind = "true_positive" if overlap >= tiou else "localization" if overlap > 0 else "background"
        action = number[item.id, nearest] if overlap else None
        detections.append(Detection(start, end, item.text, score, overlap, kind, action, first=rank == 0))
    return detections
