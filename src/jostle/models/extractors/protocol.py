"""Protocols of feature extractors; those of `jostle.models` implement them, and users' may."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Frames

Features = npt.NDArray[np.float32]


class ClipWindow(Protocol):
    """Protocol of an extractor's window settings."""

    @property
    def frames(self) -> int:
        """Number of frames in a window."""

    @property
    def stride(self) -> int:
        """Number of frames from one window to the next."""

    @property
    def fps(self) -> float | None:
        """Frame rate that videos are resampled to first; None for their own."""


class FlowExtractor(Protocol):
    """Protocol of extractors from windows of frames and optical flow to features.

    It has what a `FeatureExtractor` has, and says so with `sees_flow`, which others need not have.
    """

    sees_flow: bool

    def flow(self, first: Frames, second: Frames) -> npt.NDArray[np.uint8]:
        """Return (N, H', W', 2) from two stacks (N, H, W, 3) uint8, each pair by itself."""

    def __call__(self, clip_frames: Frames, flow: npt.NDArray[np.uint8]) -> Features:
        """Return (B, dim) from (B, T, H, W, 3) uint8 and (B, T, H', W', 2) uint8."""


class FeatureExtractor(Protocol):
    """Protocol of extractors from windows of frames to features.

    Where `frame_dim` is a number the network is in two parts: `see` takes each frame by itself, and `join` makes the
    feature of a window of what was seen. Both give the same bits for an item whatever stands beside it, which is what
    lets results be put together from pieces; a run checks it on one cell.
    """

    @property
    def spec(self) -> ClipWindow: ...

    @property
    def dim(self) -> int:
        """Length of a feature vector."""

    @property
    def frame_dim(self) -> int | None:
        """Length of a frame encoding; None for a network that processes whole windows."""

    def __call__(self, clip_frames: Frames) -> Features:
        """Return (B, dim) from (B, T, H, W, 3) uint8."""

    def see(self, frames: Frames) -> Features:
        """Return (N, frame_dim) from (N, H, W, 3) uint8."""

    def join(self, encodings: Features) -> Features:
        """Return (B, dim) from (B, T, frame_dim)."""
