"""Scores of one cell of a run by its metric: overall, by class, by video, and for each bootstrap draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.core.types.columns import Floats
from jostle.errors import DataError
from jostle.evaluation.results.record import RunRecord
from jostle.metrics.measured import Measured, Weights


@dataclass(frozen=True, eq=False)
class CellScores:
    """Scores of one cell, or of one class in it, overall and broken down."""

    value: float  # by the benchmark's metric; NaN where it cannot be had
    by_class: Floats  # in the order of the metric's classes; NaN for a class without an instance
    by_video: Floats  # the value of each video alone, NaN where nothing is annotated in it
    drawn: Floats  # the value in each draw; empty where there are none
    # Number of answers of each video, where the value is a share of right ones; else None
    answers: Floats | None = None
    # The value in each draw with one more video, which nobody has seen, at its worst and at its best; None where the
    # draws have no such video
    ends: tuple[Floats, Floats] | None = None

    @property
    def videos(self) -> int:
        """Number of videos that have a value."""
        return int(np.isfinite(self.by_video).sum())


def measured_cell(record: RunRecord, cell: str, videos: Sequence[str], weights: Weights) -> CellScores:
    """Measure one cell on these videos.

    Args:
        weights: (draws, videos) how often each counts; no rows for no draws. One column more is the weight of a video
            that nobody has seen.

    Raises:
        DataError: if the cell lacks one of the videos.
    """
    return _arrange(record, measure_cell(record, cell, videos), videos, weights)


def class_scores(record: RunRecord, cell: str, videos: Sequence[str], weights: Weights, name: str) -> CellScores:
    """Return the scores of one class in a cell.

    Args:
        weights: as in `measured_cell`.

    Raises:
        DataError: if scores of the metric are not by class.
    """
    part = measure_cell(record, cell, videos).of_class(name)
    if part is None:
        raise DataError(f"{record.folder}: {record.metric.name} has no scores by class", fault="F150")
    return _arrange(record, part, videos, weights)


def measure_cell(record: RunRecord, cell: str, videos: Sequence[str]) -> Measured:
    """Measure one cell on these videos by the metric of the run, as the run itself did for its scores."""
    return record.task.measured(predictions_of(record, cell, videos), videos)


def video_values(record: RunRecord, cell: str, videos: Sequence[str]) -> dict[str, float]:
    """Return the value of each of some videos by itself."""
    measured = measure_cell(record, cell, videos)
    return dict(zip(measured.videos, measured.by_video.tolist(), strict=True))


def _arrange(record: RunRecord, measured: Measured, videos: Sequence[str], weights: Weights) -> CellScores:
    """Return what was measured in the order of the videos, in all draws."""
    place = {name: i for i, name in enumerate(videos)}
    own = [place[name] for name in measured.videos]
    by_class = measured.by_class
    by_video = np.full(len(videos), np.nan)
    by_video[own] = measured.by_video
    answers = None
    if measured.trials is not None:
        answers = np.zeros(len(videos))
        answers[own] = measured.trials
    if own != list(range(len(videos))):
        weights = weights[:, [*own, *range(len(videos), weights.shape[1])]]
    drawn, ends = measured.drawn(weights) or (np.zeros(0), None)
    return CellScores(
        measured.value,
        np.array([by_class.get(name, np.nan) for name in record.classes], np.float64),
        by_video,
        drawn,
        answers,
        ends,
    )


def predictions_of(record: RunRecord, cell: str, videos: Sequence[str]) -> Any:
    """Return the predictions of a cell for these videos, as the metric of the run takes them.

    Raises:
        DataError: if the cell lacks one of the videos.
    """
    predictions = record.predictions(cell)
    names = set(record.task.videos_of(predictions))
    if lacking := [name for name in videos if name not in names]:
        raise DataError(
            f"{record.folder}: {cell} lacks {len(lacking)} videos, as {lacking[0]!r}; run again, which adds them"
        )
    return record.task.restrict(predictions, videos)
