"""Where in a clip its action lies, in runs that are not about that: placements go by it, so a run keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.datasets.dataset import Dataset

Places = dict[str, list[list[float]]]


def known_actions(data: Dataset) -> dict[str, Segments]:
    """The actions of each video that the data set has beside its labels.

    A video that is not among them counts as one action from beginning to end.
    """
    truth = next((part for part in data.annotations if isinstance(part, Truth)), None)
    return {} if truth is None else truth.actions


def places_of(actions: Mapping[str, Segments], videos: Iterable[str]) -> Places:
    """Starts and ends in seconds, by video, ready for JSON; those of `videos` of which they are known."""
    found = ((name, actions[name]) for name in videos if name in actions)
    return {name: np.stack([own.start, own.end], 1).tolist() for name, own in found}


def actions_at(places: Mapping[str, Iterable[Sequence[float]]]) -> dict[str, Segments]:
    """What `places_of` was given, without the labels, which no placement asks for."""
    return {name: Segments.from_pairs(pairs) for name, pairs in places.items()}
