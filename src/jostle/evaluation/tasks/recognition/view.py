"""Scores of the classes of a video, clean and under a corruption."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jostle.core.types.columns import Floats
from jostle.core.types.score_table import ScoreTable
from jostle.core.types.video_labels import VideoLabels
from jostle.evaluation.tasks.views import ClassScore, ClassScoresView
from jostle.metrics.accuracy import videos_within_top_k

MOST = 8  # classes of each side, the highest


def draw_class_scores(labels: VideoLabels, sides: Sequence[ScoreTable], k: int) -> ClassScoresView:
    """Return the scores of the only video of some labels.

    Args:
        sides: scores of it, clean and corrupted.
        k: how many guesses the model has.
    """
    true = set(labels.label.tolist())
    clean, corrupted = (side.scores[0].astype(np.float64) for side in sides)
    displayed = true | set(_highest(clean)) | set(_highest(corrupted))
    right_clean, right_corrupted = (bool(videos_within_top_k(labels, side, k)[0]) for side in sides)
    return ClassScoresView(
        labels.videos[0],
        k,
        right_clean,
        right_corrupted,
        tuple(
            ClassScore(labels.classes[label], float(clean[label]), float(corrupted[label]), label in true)
            for label in sorted(displayed, key=lambda label: (-clean[label], label))
        ),
        len(labels.classes),
    )


def _highest(scores: Floats) -> Sequence[int]:
    indices: list[int] = np.argsort(-scores, kind="stable")[:MOST].tolist()
    return indices
