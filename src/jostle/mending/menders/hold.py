"""Mending by repetition."""

from __future__ import annotations

from collections.abc import Callable

from jostle.core.types.clip import Frame
from jostle.mending.mender import mender


@mender("hold")
def hold(frame: Callable[[int], Frame], before: int, t: int, after: int) -> Frame:
    """The last intact frame, or the first after the damage where there is none before."""
    return frame(before)
