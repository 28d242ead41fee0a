"""Spans of the actions in videos, which placements refer to, as tasks keep them in truth.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import numpy as np

from jostle.core.schema import Bounds, Mismatch
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.datasets.dataset import Dataset

Seconds = Annotated[float, Bounds(0)]
ActionSpans = dict[str, tuple[tuple[Seconds, Seconds], ...]]
ActionPairs = dict[str, list[list[float]]]


def known_actions(data: Dataset) -> dict[str, Segments]:
    """Return the actions of each video that the data set annotates besides its labels.

    A video without any counts as one action from beginning to end.
    """
    truth = next((part for part in data.annotations if isinstance(part, Truth)), None)
    return {} if truth is None else truth.actions


def action_pairs(actions: Mapping[str, Segments] | None, videos: Iterable[str]) -> ActionPairs:
    """Return starts and ends in seconds by video, JSON-serializable, for those of `videos` with known actions."""
    known = ((name, actions[name]) for name in videos if actions and name in actions)
    return {name: np.stack([segments.start, segments.end], 1).tolist() for name, segments in known}


def segments_from_pairs(pairs_by_video: Mapping[str, Iterable[Sequence[float]]] | None) -> dict[str, Segments] | None:
    """Invert `action_pairs`, without the labels, which placements do not need; None where none were kept."""
    if pairs_by_video is None:
        return None
    return {name: Segments.from_pairs(pairs) for name, pairs in pairs_by_video.items()}


def check_spans(spans: ActionSpans | None) -> None:
    """Raise Mismatch unless every action ends after it begins."""
    for video, pairs in (spans or {}).items():
        if any(start >= end for start, end in pairs):
            raise Mismatch("has an action that ends before it begins").under(video).under("actions")
