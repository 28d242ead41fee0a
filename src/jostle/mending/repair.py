"""Frames in the place of struck ones, made of the nearest whole ones before and after."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal, get_args

import cv2
import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Frame, Frames, Times
from jostle.corruptions.engine.stages import Source
from jostle.errors import BadValue, DataError

How = Literal["hold", "blend", "motion"]
Mask = npt.NDArray[np.bool_]
PARTS = 1 << 12  # a share of time is a whole number of these, so that blending is exact


class Mended:
    """A source whose struck frames are made anew when they are asked for.

    Args:
        below: the frames as they are.
        struck: (T,) which of them are not to be shown.
        how: `hold` shows the last whole frame before, or the first after where there is none; `blend` goes evenly from
            the one before to the one after; `motion` lets them move towards each other on the way, by optical flow.

    Raises:
        DataError: if every frame was struck.
    """

    def __init__(self, below: Source, struck: Mask, how: How) -> None:
        if how not in get_args(How):
            raise BadValue(f"frames are mended by {', '.join(get_args(How))}, not {how!r}")
        if struck.shape != (len(below),):
            raise BadValue(f"{len(below)} frames, and {struck.shape} say which were struck; one boolean a frame")
        if len(struck) and struck.all():
            raise DataError("every frame was struck, so there is nothing to mend them with")
        self._below, self._struck, self._how = below, struck, how
        whole = np.flatnonzero(~struck)
        after = np.searchsorted(whole, np.arange(len(struck)))
        self._next = whole[np.minimum(after, len(whole) - 1)] if len(whole) else after
        self._last = whole[np.maximum(after - 1, 0)] if len(whole) else after
        self._flows: tuple[tuple[int, int], _Flow] | None = None

    @property
    def size(self) -> tuple[int, int]:
        return self._below.size

    @property
    def pts(self) -> Times:
        return self._below.pts

    @property
    def fps(self) -> Fraction:
        return self._below.fps

    def __len__(self) -> int:
        return len(self._below)

    def block(self, lo: int, hi: int) -> Frames:
        """Frames lo..hi-1, mended."""
        frames = self._below.block(lo, hi)
        here = np.flatnonzero(self._struck[lo:hi])
        if not len(here):
            return frames
        out = np.array(frames)
        for i in here.tolist():
            out[i] = self._made(lo + i)
        return out

    def _made(self, t: int) -> Frame:
        last, following = int(self._last[t]), int(self._next[t])
        if last > t:  # none before
            last = following
        if following < t or self._how == "hold" or last == following:  # none after
            return self._frame(last)
        share = (t - last) * PARTS // (following - last)
        if self._how == "blend":
            return blended(self._frame(last), self._frame(following), share)
        if self._flows is None or self._flows[0] != (last, following):
            self._flows = (last, following), _Flow(self._frame(last), self._frame(following))
        return self._flows[1].at(share)

    def _frame(self, t: int) -> Frame:
        frame: Frame = self._below.block(t, t + 1)[0]
        return frame


def blended(one: Frame, other: Frame, share: int) -> Frame:
    """A mean of two frames, in whole numbers: `share` of PARTS is the other's.

    >>> blended(np.full((1, 1, 3), 10, np.uint8), np.full((1, 1, 3), 21, np.uint8), PARTS // 2).tolist()
    [[[16, 16, 16]]]
    """
    mixed = one.astype(np.int32) * (PARTS - share) + other.astype(np.int32) * share
    return ((mixed + PARTS // 2) // PARTS).astype(np.uint8)


class _Flow:
    """How two frames go over into each other: where each pixel goes (dense inverse search, Kroeger et al., 2016)."""

    def __init__(self, one: Frame, other: Frame) -> None:
        self._one, self._other = one, other
        grey = [np.asarray(cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY)) for frame in (one, other)]
        height, width = grey[0].shape
        columns, rows = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
        self._grid = np.stack([columns, rows], -1)
        self._there = self._back = np.zeros((height, width, 2), np.float32)
        if min(height, width) >= 32:  # of smaller pictures it tells nothing
            flow = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
            nothing: Any = None
            self._there = np.asarray(flow.calc(grey[0], grey[1], nothing), np.float32)
            self._back = np.asarray(flow.calc(grey[1], grey[0], nothing), np.float32)

    def at(self, share: int) -> Frame:
        """The frame between the two."""
        part = share / PARTS
        # A pixel of the frame between is looked for where it came from, as if motion were the same around it.
        before = self._grid - np.float32(part) * self._there
        after = self._grid - np.float32(1 - part) * self._back
        nothing: Any = None
        sides = [
            np.asarray(cv2.remap(frame, where, nothing, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), np.uint8)
            for frame, where in ((self._one, before), (self._other, after))
        ]
        return blended(sides[0], sides[1], share)
