"""Action spans of videos in tasks other than detection: placements need them, so a run stores them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.datasets.dataset import Dataset

ActionPairs = dict[str, list[list[float]]]


def known_actions(data: Dataset) -> dict[str, Segments]:
    """Return the actions of each video that the data set annotates besides its labels.

    A video without any counts as one action from beginning to end.
    """
    truth = next((part for part in data.annotations if isinstance(part, Truth)), None)
    return {} if truth is None else truth.actions


def action_pairs(actions: Mapping[str, Segments], videos: Iterable[str]) -> ActionPairs:
    """Return starts and ends in seconds by video, JSON-serializable, for those of `videos` with known actions."""
    known = ((name, actions[name]) for name in videos if name in actions)
    return {name: np.stack([segments.start, segments.end], 1).tolist() for name, segments in known}


def segments_from_pairs(places: Mapping[str, Iterable[Sequence[float]]]) -> dict[str, Segments]:
    """Invert `action_pairs`, without the labels, which placements do not need."""
    return {name: Segments.from_pairs(pairs) for name, pairs in places.items()}
