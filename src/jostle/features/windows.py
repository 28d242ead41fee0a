"""Exact arithmetic of feature windows: the frames and the time that each of them covers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import get_args

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Times
from jostle.corruptions.engine.context import Mask
from jostle.errors import BadValue, UnknownName
from jostle.features.options import ReleasedBug, Rule

Indices = npt.NDArray[np.int64]

_EPSILON = 1e-6  # frames; keeps rounding from putting a time that equals a timestamp before it


@dataclass(frozen=True)
class WindowGrid:
    """Windows of `window` frames every `stride` frames: window i begins at frame i * stride.

    Attributes:
        rule: number of windows. `all`: every full one. `released`: one fewer, as the THUMOS14-C extractors leave out
            the last. `released-json`: as their published table counts them, from one frame less. There is always at
            least one, padded by repeating the last frame of the video.
        reproduce_bugs: bugs of those extractors in replacing clean rows by corrupted ones; none by default.
            `skipped-window`: frames are counted from 1 in one place and from 0 in another, so that a window stays
            clean if its only corrupted frame is its first. `early-row`: each row is written one row too early, and
            the first row's to the last.

    >>> WindowGrid(16, 4).count(30), WindowGrid(16, 4, "released").count(30)
    (4, 3)
    >>> WindowGrid(16, 4).touched(np.arange(40) == 20).tolist()
    [2, 3, 4, 5]
    >>> windows, rows = WindowGrid(16, 4, "released", ("skipped-window", "early-row")).patched(np.arange(40) == 20)
    >>> windows.tolist(), rows.tolist()
    ([1, 2, 3, 4], [0, 1, 2, 3])
    """

    window: int
    stride: int
    rule: Rule = "all"
    reproduce_bugs: tuple[ReleasedBug, ...] = ()

    def __post_init__(self) -> None:
        if self.window < 1 or self.stride < 1:
            raise BadValue(f"window and stride must be at least 1 frame, got {self.window} and {self.stride}")
        if self.rule not in get_args(Rule):
            raise UnknownName("rule for counting windows", self.rule, get_args(Rule))
        for fault in self.reproduce_bugs:
            if fault not in get_args(ReleasedBug):
                raise UnknownName("bug of the released extractors", fault, get_args(ReleasedBug))

    def count(self, frames: int) -> int:
        """Return the number of windows of a video."""
        if frames < 1:
            raise BadValue("a video without frames has no windows")
        if self.rule == "all":
            count = (frames - self.window) // self.stride + 1
        elif self.rule == "released":
            count = (frames - self.window) // self.stride
        else:
            count = (frames - self.window - 1) // self.stride
        return max(count, 1)

    def frames_of(self, windows: Indices, frames: int) -> Indices:
        """Return the (B, window) frame indices of some windows of a video with this many frames."""
        indices = windows[:, None] * self.stride + np.arange(self.window)
        return np.asarray(np.minimum(indices, frames - 1), np.int64)

    def touched(self, changed: Mask) -> Indices:
        """Return the windows that contain at least one changed frame, in order."""
        return self._touched(changed, self.count(len(changed)))

    def patched(self, changed: Mask) -> tuple[Indices, Indices]:
        """Return the windows to recompute, in order, and the row of clean features that each of them replaces.

        Without reproduced bugs, these are the windows with a changed frame, and their own rows.
        """
        rows = self.count(len(changed))
        early = "early-row" in self.reproduce_bugs
        count = rows + 1 if early else rows  # one more window fills the last row
        windows = self._touched(changed, count)
        if "skipped-window" in self.reproduce_bugs:
            windows = self._as_released(changed, count)
        return windows, (windows - 1) % rows if early else windows

    def _touched(self, changed: Mask, count: int) -> Indices:
        first = np.minimum(np.arange(count) * self.stride, len(changed))
        before = np.concatenate(([0], np.cumsum(changed)))
        return np.flatnonzero(before[np.minimum(first + self.window, len(changed))] > before[first])

    def _as_released(self, changed: Mask, count: int) -> Indices:
        """Return the windows by the released formula, which takes frame numbers to be 1-based."""
        which = np.zeros(count + 1, np.int64)
        frames = np.flatnonzero(changed)
        first = np.maximum((frames - 1 - self.window) // self.stride + 1, 0)
        last = np.minimum(np.maximum((frames - 1) // self.stride, 0), count - 1)
        valid = first <= last
        np.add.at(which, first[valid], 1)
        np.add.at(which, last[valid] + 1, -1)
        return np.flatnonzero(np.cumsum(which[:-1]) > 0)

    def times(self, count: int, fps: float) -> Times:
        """Return (count,) the centre of each window in seconds."""
        return np.asarray((np.arange(count) * self.stride + 0.5 * self.window) / fps, np.float64)


class VideoWindows:
    """Windows of one video, and which of them a changed frame touches.

    Args:
        ticks: the frame of the source at each frame of the grid.
        flow: whether windows show the optical flow from each frame to the next as well.

    Attributes:
        count: how many there are.
        frames: (T + 1, window) frames of the source that each shows, with one window beyond the last for "early-row".
    """

    def __init__(self, grid: WindowGrid, ticks: Indices, *, flow: bool) -> None:
        self.grid = grid
        self.count = grid.count(len(ticks))
        self._ticks, self._flow = ticks, flow
        self._numbers = grid.frames_of(np.arange(self.count + 1, dtype=np.int64), len(ticks))
        self.frames = ticks[self._numbers]

    def flow_ends(self, windows: Indices) -> tuple[Indices, Indices]:
        """Return the frames of the source that flow leads from and to; the last frame repeats the flow before it."""
        first = np.minimum(self._numbers[windows], max(len(self._ticks) - 2, 0))
        return self._ticks[first], self._ticks[np.minimum(first + 1, len(self._ticks) - 1)]

    def patched(self, changed: Mask) -> tuple[Indices, Indices]:
        """Return `WindowGrid.patched` by changed frames of the source."""
        return self.grid.patched(self._changed_ticks(changed))

    def touched(self, changed: Mask) -> Mask:
        """Return the (T,) mask of windows that contain a changed frame of the source, or flow from or to one."""
        windows = np.zeros(self.count, np.bool_)
        windows[self.grid.touched(self._changed_ticks(changed))] = True
        return windows

    def _changed_ticks(self, frames: Mask) -> Mask:
        at_ticks: Mask = frames[self._ticks]
        if not self._flow:
            return at_ticks
        changed = at_ticks.copy()
        changed[:-1] |= at_ticks[1:]
        changed[-1:] |= at_ticks[-2:-1]  # the last frame repeats the flow of the one before
        return changed


def resample_frames(pts: Times, fps: Fraction, rate: float | None) -> Indices:
    """Return the frame on display at each tick of another rate; every frame once if `rate` is None.

    >>> resample_frames(np.arange(6) / 30, Fraction(30), 15.0).tolist()
    [0, 2, 4]
    """
    if rate is None:
        return np.arange(len(pts), dtype=np.int64)
    duration = float(pts[-1] - pts[0]) + float(1 / fps)
    ticks = np.arange(max(int(duration * rate + _EPSILON), 1)) / rate
    return np.searchsorted(pts - pts[0], ticks + _EPSILON / rate, side="right") - 1


def mean_rate(pts: Times, fps: Fraction) -> float:
    """Return the nominal frame rate, or the mean rate of a video whose timestamps deviate from it."""
    nominal = fps.numerator / fps.denominator
    if len(pts) < 2 or np.abs(pts - pts[0] - np.arange(len(pts)) / nominal).max() < 0.5 / nominal:
        return nominal
    return (len(pts) - 1) / float(pts[-1] - pts[0])
