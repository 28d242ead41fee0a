"""Fixtures that build small ground truth and predictions from rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth

Row = tuple[Any, ...]


def make_truth(rows: Sequence[Row], videos: Sequence[str] = ("u", "v", "w"), **more: Any) -> Truth:
    """Build ground truth from rows of (video, class, start, end)."""
    classes = tuple(dict.fromkeys(row[1] for row in rows))
    return Truth(
        videos=tuple(videos),
        classes=classes,
        video=[videos.index(row[0]) for row in rows],
        start=[row[2] for row in rows],
        end=[row[3] for row in rows],
        label=[classes.index(row[1]) for row in rows],
        **more,
    )


def make_predictions(rows: Sequence[Row]) -> Predictions:
    """Build predictions from rows of (video, class, start, end, score)."""
    videos = tuple(dict.fromkeys(row[0] for row in rows))
    classes = tuple(dict.fromkeys(row[1] for row in rows))
    return Predictions(
        videos=videos,
        classes=classes,
        video=[videos.index(row[0]) for row in rows],
        start=[row[2] for row in rows],
        end=[row[3] for row in rows],
        label=[classes.index(row[1]) for row in rows],
        score=[row[4] for row in rows],
    )


@pytest.fixture(scope="session")
def truth_of() -> Callable[..., Truth]:
    return make_truth


@pytest.fixture(scope="session")
def predictions_of() -> Callable[..., Predictions]:
    return make_predictions
