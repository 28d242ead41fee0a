"""Mending by an even fade, in integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jostle.core.types.clip import Frame
from jostle.mending.mender import mender

BLEND_UNIT = 1 << 12  # shares of time are multiples of 1 / BLEND_UNIT, so that blending is exact


@mender("blend")
def blend(frame: Callable[[int], Frame], before: int, t: int, after: int) -> Frame:
    """An even fade from the frame before to the one after."""
    if before == after:
        return frame(before)
    return blend_frames(frame(before), frame(after), share_of_way(before, t, after))


def share_of_way(before: int, t: int, after: int) -> int:
    """Return how far a frame is from one to another, in units of BLEND_UNIT."""
    return (t - before) * BLEND_UNIT // (after - before)


def blend_frames(one: Frame, other: Frame, share: int) -> Frame:
    """Average two frames in integers, with weight `share` / BLEND_UNIT for the second.

    >>> blend_frames(np.full((1, 1, 3), 10, np.uint8), np.full((1, 1, 3), 21, np.uint8), BLEND_UNIT // 2).tolist()
    [[[16, 16, 16]]]
    """
    mixed = one.astype(np.int32) * (BLEND_UNIT - share) + other.astype(np.int32) * share
    return ((mixed + BLEND_UNIT // 2) // BLEND_UNIT).astype(one.dtype)
