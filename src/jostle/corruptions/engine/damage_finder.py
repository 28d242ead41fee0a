"""Protocols of what says which frames of a video are damaged, in each of its states."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from jostle.core.types.video import VideoSource
from jostle.corruptions.engine.context import Mask

Indices = npt.NDArray[np.int64]


class FindsDamage(Protocol):
    """Finder of the damaged frames of one video."""

    def find_damaged(self, state: VideoSource, origin: Indices, /) -> Mask:
        """Return the (T,) mask of damaged frames in a state of the video.

        Args:
            state: the video, corrupted or not.
            origin: for each of its frames the index of the clean frame that it equals, or below 0 for a new one.
        """


@runtime_checkable
class DamageFinder(Protocol):
    """Strategy that says which frames are damaged, for any video.

    One that computes on a device may have a method `to(device)`, which returns a copy there.
    """

    @property
    def name(self) -> str:
        """Name in records."""

    @property
    def fingerprint(self) -> str | None:
        """Fingerprint of weights and settings, or None."""

    def finder_for(self, clean: VideoSource, /) -> FindsDamage:
        """Return the finder for one video, which is given without corruption."""
