"""Which frames a feature has seen, and when that was: the arithmetic of windows, exact and in one place."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Times
from jostle.corruptions.engine.context import Mask
from jostle.errors import BadValue, UnknownName

Indices = npt.NDArray[np.int64]
Rule = Literal["all", "released", "released-json"]
ReleasedFault = Literal["skipped-window", "early-row"]

_HAIR = 1e-6  # of a frame, so that a moment that falls on a frame in exact numbers is not put before it by rounding


@dataclass(frozen=True)
class WindowGrid:
    """Stretches of `window` frames, one every `stride` frames: number i sees the frames from i * stride on.

    Attributes:
        rule: how many there are. `all`: every full one. `released`: one fewer, as the THUMOS14-C extractors leave out
            the last. `released-json`: as many as the table that comes with them says, which is once more counted
            from a frame less. There is always one, whose missing frames repeat the last frame of the video.
        released_faults: what those extractors get wrong when they replace clean rows by corrupted ones, none unless
            named. `skipped-window`: they count frames from 1 here and from 0 there, so that a window stays clean if
            the one struck frame in it is its first. `early-row`: what was computed goes to the row before, and what
            belongs to the first row to the last.

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
    released_faults: tuple[ReleasedFault, ...] = ()

    def __post_init__(self) -> None:
        if self.window < 1 or self.stride < 1:
            raise BadValue(f"window and stride count frames from 1, got {self.window} and {self.stride}")
        if self.rule not in get_args(Rule):
            raise UnknownName("rule for counting windows", self.rule, get_args(Rule))
        for fault in self.released_faults:
            if fault not in get_args(ReleasedFault):
                raise UnknownName("fault of the released extractors", fault, get_args(ReleasedFault))

    def count(self, frames: int) -> int:
        """Windows of a video with so many frames."""
        if frames < 1:
            raise BadValue("a video without frames has no windows")
        if self.rule == "all":
            made = (frames - self.window) // self.stride + 1
        elif self.rule == "released":
            made = (frames - self.window) // self.stride
        else:
            made = (frames - self.window - 1) // self.stride
        return max(made, 1)

    def frames_of(self, windows: Indices, frames: int) -> Indices:
        """(B, window): the frames that these windows of a video of so many frames see."""
        made = windows[:, None] * self.stride + np.arange(self.window)
        return np.asarray(np.minimum(made, frames - 1), np.int64)

    def touched(self, struck: Mask) -> Indices:
        """The windows that see at least one struck frame, in order."""
        return self._touched(struck, self.count(len(struck)))

    def patched(self, struck: Mask) -> tuple[Indices, Indices]:
        """The windows to compute again, in order, and the row of clean features that each of them replaces.

        Without faults, these are the windows that see a struck frame, and their own rows.
        """
        rows = self.count(len(struck))
        early = "early-row" in self.released_faults
        count = rows + 1 if early else rows  # for the last row there is one more
        windows = self._touched(struck, count)
        if "skipped-window" in self.released_faults:
            windows = self._as_released(struck, count)
        return windows, (windows - 1) % rows if early else windows

    def _touched(self, struck: Mask, count: int) -> Indices:
        first = np.minimum(np.arange(count) * self.stride, len(struck))
        before = np.concatenate(([0], np.cumsum(struck)))
        return np.flatnonzero(before[np.minimum(first + self.window, len(struck))] > before[first])

    def _as_released(self, struck: Mask, count: int) -> Indices:
        """The windows of the program's formula, which takes the number of a frame to be counted from 1."""
        which = np.zeros(count + 1, np.int64)
        frames = np.flatnonzero(struck)
        first = np.maximum((frames - 1 - self.window) // self.stride + 1, 0)
        last = np.minimum(np.maximum((frames - 1) // self.stride, 0), count - 1)
        some = first <= last
        np.add.at(which, first[some], 1)
        np.add.at(which, last[some] + 1, -1)
        return np.flatnonzero(np.cumsum(which[:-1]) > 0)

    def times(self, count: int, fps: float) -> Times:
        """(count,) seconds that windows stand for: the middle of what each has seen."""
        return np.asarray((np.arange(count) * self.stride + 0.5 * self.window) / fps, np.float64)


def retimed(pts: Times, fps: Fraction, rate: float | None) -> Indices:
    """The frame that a video shows at each tick of another rate; every frame once if `rate` is None.

    >>> retimed(np.arange(6) / 30, Fraction(30), 15.0).tolist()
    [0, 2, 4]
    """
    if rate is None:
        return np.arange(len(pts), dtype=np.int64)
    lasts = float(pts[-1] - pts[0]) + float(1 / fps)
    ticks = np.arange(max(int(lasts * rate + _HAIR), 1)) / rate
    return np.searchsorted(pts - pts[0], ticks + _HAIR / rate, side="right") - 1


def mean_rate(pts: Times, fps: Fraction) -> float:
    """Frames a second: the nominal rate, or where frames do not keep to it, what it is over the whole video."""
    nominal = fps.numerator / fps.denominator
    if len(pts) < 2 or np.abs(pts - pts[0] - np.arange(len(pts)) / nominal).max() < 0.5 / nominal:
        return nominal
    return (len(pts) - 1) / float(pts[-1] - pts[0])
