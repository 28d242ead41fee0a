"""Mending along the optical flow, whose last bits depend on the build of OpenCV."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np

from jostle.core.types.clip import Frame
from jostle.mending.mender import mender
from jostle.mending.menders.blend import BLEND_UNIT, blend_frames, share_of_way


@mender("motion")
class Motion:
    """Both frames, moved towards each other along the optical flow between them, and blended."""

    def __init__(self) -> None:
        self._flows: tuple[tuple[int, int], Flow] | None = None  # of the damage that was mended last

    def __call__(self, frame: Callable[[int], Frame], before: int, t: int, after: int) -> Frame:
        if before == after:
            return frame(before)
        if self._flows is None or self._flows[0] != (before, after):
            self._flows = (before, after), Flow(frame(before), frame(after))
        return self._flows[1].at(share_of_way(before, t, after))


class Flow:
    """Motion-compensated interpolation between two frames by dense inverse search (Kroeger et al., 2016)."""

    def __init__(self, one: Frame, other: Frame) -> None:
        self._one, self._other = one, other
        grey = [np.asarray(cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY)) for frame in (one, other)]
        height, width = grey[0].shape
        columns, rows = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
        self._grid = np.stack([columns, rows], -1)
        self._forward = self._backward = np.zeros((height, width, 2), np.float32)
        if min(height, width) >= 32:  # the flow of smaller pictures is meaningless
            flow = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
            nothing: Any = None
            self._forward = np.asarray(flow.calc(grey[0], grey[1], nothing), np.float32)
            self._backward = np.asarray(flow.calc(grey[1], grey[0], nothing), np.float32)

    def at(self, share: int) -> Frame:
        """Return the frame at a share of the way, in units of BLEND_UNIT."""
        fraction = share / BLEND_UNIT
        # Backward warping: the motion at a pixel stands in for the motion at its origin.
        before = self._grid - np.float32(fraction) * self._forward
        after = self._grid - np.float32(1 - fraction) * self._backward
        nothing: Any = None
        sides = [
            np.asarray(cv2.remap(frame, where, nothing, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), np.uint8)
            for frame, where in ((self._one, before), (self._other, after))
        ]
        return blend_frames(sides[0], sides[1], share)
