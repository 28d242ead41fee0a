"""Clips: frames of a video in memory with their presentation times."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.notebook import animated_png
from jostle.errors import BadValue

Frame = npt.NDArray[np.uint8]  # (H, W, 3) RGB
Frames = npt.NDArray[np.uint8]  # (T, H, W, 3) RGB
_BYTE = np.dtype(np.uint8)
_PREVIEW_FRAMES, _PREVIEW_SIDE = 16, 160  # of the preview in a notebook
Times = npt.NDArray[np.float64]  # (T,) seconds
# Without exponents, which a fraction would expand to any number of digits.
_RATE = re.compile(r"\s*\d{1,12}(\.\d{1,12}|/\d{1,12})?\s*", re.ASCII)


def check_frames(frames: Any) -> Frames:
    """Return `frames` if it is a (T, H, W, 3) uint8 array; raise BadValue otherwise."""
    if not isinstance(frames, np.ndarray):
        raise BadValue(f"frames must be a NumPy array of shape (T, H, W, 3), not {type(frames).__name__}")
    if frames.ndim != 4 or frames.shape[-1] != 3:
        raise BadValue(f"frames must have shape (T, H, W, 3), got {frames.shape}; RGB is the last axis")
    if frames.dtype != _BYTE:
        raise BadValue(f"frames must be uint8 in 0..255, got {frames.dtype}; convert before calling")
    if 0 in frames.shape[1:]:
        raise BadValue(f"frames must have a height and a width, got {frames.shape}")
    return frames


def check_rate(fps: Any) -> Fraction:
    """Convert `fps` to an exact, positive fraction; 29.97 and 23.976 become the NTSC rates they stand for."""
    if isinstance(fps, float):
        return _check_float_rate(fps)
    if isinstance(fps, Fraction) and fps > 0 and fps.denominator <= 1001:
        return fps
    return _check_rate(fps)


@lru_cache(256)
def _check_float_rate(fps: float) -> Fraction:
    return _check_rate(fps)  # exact arithmetic is slow, and most callers pass one of a few rates


def _check_rate(fps: Any) -> Fraction:
    try:
        if isinstance(fps, bool) or (isinstance(fps, str) and not _RATE.fullmatch(fps)):
            raise ValueError
        rate = Fraction(fps) if isinstance(fps, str | int | Fraction) else Fraction(float(fps))
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise BadValue(f"fps must be a positive number, got {fps!r}") from None
    if rate <= 0:
        raise BadValue(f"fps must be a positive number, got {fps!r}")
    ntsc = Fraction(round(rate * 1001 / 1000) * 1000, 1001)
    if rate.denominator > 1001 and abs(rate - ntsc) < Fraction(1, 1000):
        return ntsc
    return rate.limit_denominator(1_000_000)


@dataclass(frozen=True, eq=False)
class Clip:
    """Frames with their presentation times.

    Attributes:
        frames: (T, H, W, 3) uint8 RGB, read-only.
        pts: (T,) float64 seconds, strictly increasing: presentation times, not source times.
        fps: nominal rate as a fraction; times are always taken from `pts`.

    >>> clip = Clip.at_rate(np.zeros((4, 2, 2, 3), np.uint8), 25)
    >>> clip[1:3].pts.tolist()
    [0.04, 0.08]
    """

    frames: Frames
    pts: Times
    fps: Fraction

    def __post_init__(self) -> None:
        pts = _check_times(np.array(self.pts, dtype=np.float64), len(check_frames(self.frames)))
        self._set(self.frames, pts, check_rate(self.fps))

    def _set(self, frames: Frames, pts: Times, fps: Fraction) -> Clip:
        """Set the fields to checked values."""
        # Kernels need frames that are contiguous in memory; others are copied.
        whole = frames.flags.c_contiguous or frames[0].flags.c_contiguous
        view = frames.view() if whole else np.ascontiguousarray(frames)
        view.setflags(write=False)
        object.__setattr__(self, "frames", view)
        object.__setattr__(self, "pts", pts)
        object.__setattr__(self, "fps", fps)
        return self

    @classmethod
    def at_rate(cls, frames: Frames, fps: Fraction | float) -> Clip:
        """Create a clip at a constant rate whose first frame is at 0 s."""
        rate = check_rate(fps)
        times = even_times(len(check_frames(frames)), rate.numerator, rate.denominator)
        return object.__new__(cls)._set(frames, times, rate)

    def with_frames(self, frames: Frames) -> Clip:
        """Return a clip of the same times with other frames of the same number and size."""
        if frames.shape != self.frames.shape or frames.dtype != np.uint8:
            raise BadValue(f"frames must stay {self.frames.shape} uint8, got {frames.shape} {frames.dtype}")
        return object.__new__(Clip)._set(frames, self.pts, self.fps)

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, part: slice) -> Clip:
        if not isinstance(part, slice):
            raise BadValue("a clip is cut with a slice, such as clip[10:20]; clip.frames[10] is one frame")
        return Clip(self.frames[part], self.pts[part], self.fps)

    @property
    def size(self) -> tuple[int, int]:
        """(height, width) in pixels."""
        return self.frames.shape[1], self.frames.shape[2]

    def _repr_html_(self) -> str:
        """Render a small animated preview for notebooks."""
        if not len(self):
            return f"<p>{escape(repr(self))}</p>"
        rows = np.linspace(0, len(self) - 1, min(len(self), _PREVIEW_FRAMES)).round().astype(np.int64)
        step = max(1, -(-max(self.size) // _PREVIEW_SIDE))
        # Dropping two bits of each colour is hardly visible at this size, and halves the file.
        small = np.ascontiguousarray(self.frames[rows][:, ::step, ::step] & np.uint8(0xFC))
        ends = np.append(self.pts[rows][1:], self.pts[-1] + float(1 / self.fps))
        data = base64.b64encode(animated_png(small, (ends - self.pts[rows]).tolist())).decode("ascii")
        text = escape(repr(self))
        return f'<figure><img alt="{text}" src="data:image/png;base64,{data}"><figcaption>{text}</figcaption></figure>'

    def __repr__(self) -> str:
        height, width = self.size
        span = f"{self.pts[0]:.3f}-{self.pts[-1]:.3f} s" if len(self) else "empty"
        return f"Clip({len(self)} frames of {width}x{height}, {span}, {float(self.fps):.3f} fps)"


def _check_times(pts: Times, count: int) -> Times:
    """Return `pts`, made read-only, if they are valid times of `count` frames."""
    if pts.shape != (count,):
        raise BadValue(f"a clip of {count} frames needs {count} timestamps, got {pts.shape}")
    if not np.isfinite(pts).all() or (np.diff(pts) <= 0).any():
        raise BadValue("timestamps of a clip must be finite and strictly increasing")
    pts.setflags(write=False)
    return pts


@lru_cache(16)
def even_times(count: int, numerator: int, denominator: int) -> Times:
    """Return the read-only, cached times of a clip at a constant rate."""
    # Clips have few lengths and rates, and checking their times takes longer than copying a frame.
    return _check_times(times_at_rate(count, Fraction(numerator, denominator)), count)


def times_at_rate(n: int, fps: Fraction) -> Times:
    """Return the times of `n` frames at a constant rate, each the float64 nearest to the exact fraction."""
    return np.arange(n, dtype=np.float64) * fps.denominator / fps.numerator
