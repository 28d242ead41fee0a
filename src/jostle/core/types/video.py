"""Videos as sources of frames by number: what reads a file, a clip in memory, and every stage of a corruption."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Clip, Frames, Times


class VideoSource(Protocol):
    """Frames of one video, by number.

    A source may also have these, which readers look for:

    - `close()`, called when it is no longer needed;
    - `concealed`, (T,) whether a frame shows what a decoder made up;
    - `names`, one name for each frame;
    - `bit_rate`, bits a second of the coded video;
    - `state()`, (size, version) of a video without a local file, by which a later one is known to be the same.

    Attributes:
        size: (height, width) in pixels.
        pts: (T,) presentation times in seconds, strictly increasing.
        fps: the nominal rate.
    """

    @property
    def size(self) -> tuple[int, int]: ...
    @property
    def pts(self) -> Times: ...
    @property
    def fps(self) -> Fraction: ...
    def __len__(self) -> int: ...
    def block(self, lo: int, hi: int) -> Frames:
        """Return frames lo to hi - 1 as (n, H, W, 3) uint8 RGB, which the caller must not modify."""
        ...


class ClipSource:
    """Source of the frames of a clip in memory."""

    def __init__(self, clip: Clip) -> None:
        self._clip = clip
        self.size, self.pts, self.fps = clip.size, clip.pts, clip.fps

    def __len__(self) -> int:
        return len(self._clip)

    def block(self, lo: int, hi: int) -> Frames:
        return self._clip.frames[lo:hi]

    def take(self, indices: npt.NDArray[np.int64]) -> Frames:
        """Return frames in any order."""
        return self._clip.frames.take(indices, axis=0, mode="clip")
