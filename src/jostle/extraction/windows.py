"""Which frames a feature has seen, and when that was: the arithmetic of windows, exact and in one place."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from jostle.corrupting.scene import Mask
from jostle.errors import BadValue, UnknownName
from jostle.types.clip import Times

Indices = npt.NDArray[np.int64]
Rule = Literal["all", "released", "released-json"]

_HAIR = 1e-6  # of a frame, so that a moment that falls on a frame in exact numbers is not put before it by rounding


@dataclass(frozen=True)
class WindowGrid:
    """Stretches of `window` frames, one every `stride` frames: number i sees the frames from i * stride on.

    Attributes:
        rule: how many there are. `all`: every full one. `released`: one fewer, as the THUMOS14-C extractors leave out
            the last. `released-json`: as many as the table that comes with them says, which is once more counted
            from a frame less. There is always one, whose missing frames repeat the last frame of the video.

    >>> WindowGrid(16, 4).count(30), WindowGrid(16, 4, "released").count(30)
    (4, 3)
    >>> WindowGrid(16, 4).touched(np.arange(30) == 13).tolist()
    [0, 1, 2, 3]
    """

    window: int
    stride: int
    rule: Rule = "all"

    def __post_init__(self) -> None:
        if self.window < 1 or self.stride < 1:
            raise BadValue(f"window and stride count frames from 1, got {self.window} and {self.stride}")
        if self.rule not in get_args(Rule):
            raise UnknownName("rule for counting windows", self.rule, get_args(Rule))

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
        first = np.arange(self.count(len(struck))) * self.stride
        before = np.concatenate(([0], np.cumsum(struck)))
        return np.flatnonzero(before[np.minimum(first + self.window, len(struck))] > before[first])

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
