"""What the engine asks of an extractor; those of `jostle.models` have it, and so may anybody's."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Frames

Features = npt.NDArray[np.float32]


class Wanted(Protocol):
    """What an extractor wants to see."""

    @property
    def frames(self) -> int:
        """Frames of a window."""

    @property
    def stride(self) -> int:
        """Frames from one window to the next."""

    @property
    def fps(self) -> float | None:
        """Rate that videos are brought to first; None for their own."""


class FlowExtractor(Protocol):
    """Windows of frames and of the optical flow between them in, one feature each out.

    It has what a `FeatureExtractor` has, and says so with `sees_flow`, which others need not have.
    """

    sees_flow: bool

    def flow(self, first: Frames, second: Frames) -> npt.NDArray[np.uint8]:
        """(N, H', W', 2) from two stacks (N, H, W, 3) uint8, each pair by itself."""

    def __call__(self, clip_frames: Frames, flow: npt.NDArray[np.uint8]) -> Features:
        """(B, dim) from (B, T, H, W, 3) uint8 and (B, T, H', W', 2) uint8."""


class FeatureExtractor(Protocol):
    """Windows of frames in, one feature each out.

    Where `frame_dim` is a number the network is in two parts: `see` takes each frame by itself, and `join` makes the
    feature of a window of what was seen. Both give the same bits for an item whatever stands beside it, which is what
    lets results be put together from pieces.
    """

    @property
    def spec(self) -> Wanted: ...

    @property
    def dim(self) -> int:
        """Length of a feature."""

    @property
    def frame_dim(self) -> int | None:
        """Length of what is seen of one frame; None for a network that sees a window whole."""

    def __call__(self, clip_frames: Frames) -> Features:
        """(B, dim) from (B, T, H, W, 3) uint8."""

    def see(self, frames: Frames) -> Features:
        """(N, frame_dim) from (N, H, W, 3) uint8."""

    def join(self, seen: Features) -> Features:
        """(B, dim) from (B, T, frame_dim)."""
