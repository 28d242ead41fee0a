"""What stands in where rows are lost: a straight line from the last sound one before to the first after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from jostle.corruptions.engine.context import Mask
from jostle.corruptions.engine.stages import Source
from jostle.models.extractors.protocol import Features

Indices = npt.NDArray[np.int64]


class Finding(Protocol):
    """Says which frames of a video were struck; `jostle.mending.damage` has those of jostle."""

    def struck(self, top: Source, came_from: Indices) -> Mask:
        """(T,) which frames of a state of the video were struck.

        Args:
            top: the video in this state.
            came_from: for each of its frames the untouched one that it is, or `MADE`.
        """


class Finder(Protocol):
    """Says it of any video."""

    @property
    def name(self) -> str:
        """What it is called in records."""

    @property
    def fingerprint(self) -> str | None:
        """Of its weights, where it has any."""

    def of(self, clean: Source) -> Finding:
        """What says it of one video."""


@dataclass(frozen=True, eq=False)
class Mended:
    """What became of the struck frames of a video.

    Attributes:
        struck: (T,) those that were found.
        left: whether all stayed as they were, as nothing sound was left to lean on.
    """

    struck: Mask
    left: bool = False


@dataclass(frozen=True, eq=False)
class Bridge:
    """What stands in for lost rows.

    Attributes:
        lost: (N,) numbers of the lost rows, in order.
        before, after: (N,) the sound rows on both sides of each; at an end twice the one there is.
        share: (N,) how far it is from the one to the other.

    >>> bridge = Bridge.over(np.array([True, False, True, True, False]))
    >>> bridge.before.tolist(), bridge.after.tolist(), [round(share, 2) for share in bridge.share.tolist()]
    ([1, 1, 1], [1, 4, 4], [0.0, 0.33, 0.67])
    """

    lost: Indices
    before: Indices
    after: Indices
    share: npt.NDArray[np.float32]

    @classmethod
    def over(cls, lost: Mask) -> Bridge:
        """The one over lost rows, of which at least one is not."""
        rows, sound = np.flatnonzero(lost), np.flatnonzero(~lost)
        place = np.searchsorted(sound, rows)
        before, after = sound[np.maximum(place - 1, 0)], sound[np.minimum(place, len(sound) - 1)]
        before, after = np.where(before > rows, after, before), np.where(after < rows, before, after)
        share = np.where(after > before, (rows - before) / np.maximum(after - before, 1), 0.0)
        return cls(rows, before, after, share.astype(np.float32))


def bridged(rows: Features, lost: Mask) -> Features:
    """The rows, the lost ones on a straight line between the sound ones around them; at an end the nearest is held.

    >>> rows = np.array([[0], [9], [9], [3], [9]], np.float32)
    >>> bridged(rows, np.array([False, True, True, False, True])).ravel().tolist()
    [0.0, 1.0, 2.0, 3.0, 3.0]
    """
    bridge = Bridge.over(lost)
    out = np.array(rows)
    before, after = rows[bridge.before], rows[bridge.after]
    out[bridge.lost] = before + (after - before) * bridge.share[:, None]
    return out


def nearest_sound(struck: Mask) -> Indices:
    """(T,) for each frame the nearest that is sound, the earlier of two; itself where it is sound, or where none is.

    >>> nearest_sound(np.array([True, False, True, True, True, False])).tolist()
    [1, 1, 1, 1, 5, 5]
    """
    numbers = np.arange(len(struck))
    if struck.all():
        return numbers
    bridge = Bridge.over(struck)
    numbers[bridge.lost] = np.where(
        bridge.lost - bridge.before <= bridge.after - bridge.lost, bridge.before, bridge.after
    )
    # At an end both are the one there is, on the same side.
    return numbers
