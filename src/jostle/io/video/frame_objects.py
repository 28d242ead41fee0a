"""Videos as objects of other libraries: a torchcodec `VideoDecoder`, or anything with frames and timestamps.

Objects are recognised by their attributes; no library is imported for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from jostle.core.random import key_for
from jostle.core.types.clip import Clip, Frame, Frames, Times, check_rate
from jostle.errors import BadValue, MediaError
from jostle.io.video.timestamps import Ticks, exact_ticks

BLOCK = 32  # frames requested from a decoder at once
FRAMES = ("frames", "data")  # attributes of objects that are no decoders
TIMES = ("pts_seconds", "pts", "timestamps", "times")


def is_frame_object(value: Any) -> bool:
    """Return whether a value is a decoder, or has frames and timestamps.

    >>> is_frame_object(Clip.at_rate(np.zeros((2, 4, 4, 3), np.uint8), 25)), is_frame_object("video.mp4")
    (True, False)
    """
    if isinstance(value, str | bytes | os.PathLike | np.ndarray):
        return False
    return hasattr(value, "get_frames_in_range") or (
        any(hasattr(value, name) for name in FRAMES) and any(hasattr(value, name) for name in TIMES)
    )


class ObjectReader:
    """Frames of an object, from the first to the last, with times that begin at 0 as those of a file do.

    Args:
        video: a decoder, or an object with `frames` or `data` and with timestamps in seconds.
        fps: its rate; by default what it says, or else what its timestamps say.

    Attributes:
        fps: the nominal rate.
        pts: (T,) presentation times in seconds, known when all frames were read.
    """

    def __init__(self, video: Any, fps: Fraction | float | None = None) -> None:
        self._video = video
        self._decodes = hasattr(video, "get_frames_in_range")
        count = len(video) if self._decodes else len(_first_attribute(video, FRAMES))
        if not count:
            raise MediaError(f"{type(video).__name__}: has no frames", fault="F4")
        self._count = count
        self._size: tuple[int, int] | None = None
        self._seconds: dict[int, float] = {}
        if not self._decodes:
            seconds = _as_seconds(_first_attribute(video, TIMES), count, video)
            self._seconds = dict(enumerate(seconds.tolist()))
        self.fps = self._rate(fps)

    def __len__(self) -> int:
        return self._count

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._seconds.clear()

    def block(self, lo: int, hi: int) -> Frames:
        """Return the (hi - lo, H, W, 3) RGB pixels of frames `lo` to `hi` (exclusive)."""
        if self._decodes:
            batch = self._video.get_frames_in_range(lo, hi)
            pixels = batch.data
            self._seconds.update(zip(range(lo, hi), _as_seconds(batch.pts_seconds, hi - lo, self._video), strict=True))
        else:
            pixels = _first_attribute(self._video, FRAMES)[lo:hi]
        frames = _as_frames(pixels, hi - lo, self._video)
        size = (frames.shape[1], frames.shape[2])
        if self._size not in (None, size):
            raise MediaError(f"{type(self._video).__name__}: frames {lo} to {hi} have another size", fault="F184")
        self._size = size
        return frames

    def __iter__(self) -> Iterator[Frame]:
        for lo in range(0, self._count, BLOCK):
            yield from self.block(lo, min(lo + BLOCK, self._count))

    def time_of(self, number: int) -> float:
        """Return the time of one frame in seconds, as the object says it."""
        if number not in self._seconds:
            lo = number // BLOCK * BLOCK
            self.block(lo, min(lo + BLOCK, self._count))
        return self._seconds[number]

    @property
    def pts(self) -> Times:
        return self.times(0, self._count)

    def times(self, lo: int, hi: int) -> Times:
        """Return the times of frames `lo` to `hi` (exclusive), from the first frame of the video on."""
        ticks, time_base = self.ticks(lo, hi)
        return np.asarray(ticks * float(time_base.numerator) / float(time_base.denominator), np.float64)

    def ticks(self, lo: int, hi: int) -> tuple[Ticks, Fraction]:
        """Return the times of frames as multiples of a time base, of which the file's own times are exact ones."""
        seconds = np.array([self.time_of(number) for number in range(lo, hi)]) - self.time_of(0)
        if (np.diff(seconds) <= 0).any():
            raise MediaError(f"{type(self._video).__name__}: timestamps do not increase", fault="F184")
        return exact_ticks(seconds, self.fps)

    def _rate(self, fps: Fraction | float | None) -> Fraction:
        metadata = getattr(self._video, "metadata", None)
        known = getattr(metadata, "average_fps", None) or getattr(self._video, "fps", None) or fps
        if known is not None:
            return check_rate(known)
        if self._count < 2:
            return check_rate(30)
        step = np.median(np.diff([self.time_of(number) for number in range(min(self._count, BLOCK))]))
        return check_rate(1 / float(step) if step > 0 else 30)


def read_object(
    video: Any, start: float | None = None, stop: float | None = None, *, fps: Fraction | float | None = None
) -> Clip:
    """Read part of a decoder into memory; arguments as of `jostle.read`."""
    reader = ObjectReader(video, fps)
    lo = 0 if start is None else _number_at(reader, start, "start")
    hi = len(reader) if stop is None else max(lo, _number_at(reader, stop, "stop"))
    parts = [reader.block(at, min(at + BLOCK, hi)) for at in range(lo, hi, BLOCK)] or [reader.block(0, 1)[:0]]
    return Clip(np.concatenate(parts), reader.times(lo, hi), reader.fps)


def write_object(video: Any, folder: Path, *, fps: Fraction | float | None = None) -> Path:
    """Write the frames of an object as a folder of PNG images with their times, which every verb reads.

    Files are dated by a hash of their content, so that the same frames, written again, count as the same video.
    """
    from jostle.io.video.encode import Writer

    reader = ObjectReader(video, fps)
    size = reader.block(0, 1).shape[1:3]
    ticks, time_base = reader.ticks(0, len(reader))  # a pass of its own, as the time base belongs to all of them
    with Writer(folder, size=size, fps=reader.fps, time_base=time_base, codec="images") as writer:
        for frame, tick in zip(reader, ticks.tolist(), strict=True):
            writer.write(frame, tick)
    for path in folder.iterdir():
        stamp = key_for(0, path.read_bytes()) >> 2  # fits a file system's clock
        os.utime(path, ns=(stamp, stamp))
    return folder


def _number_at(reader: ObjectReader, position: float, name: str) -> int:
    """Return the number of a frame, or of the first frame at or after a time."""
    if isinstance(position, bool) or not isinstance(position, int | float | np.integer | np.floating):
        raise BadValue(f"{name} must be a frame number (int) or a time in seconds (float), got {position!r}")
    if not position >= 0:
        raise BadValue(f"{name} must not be negative, got {position!r}; frames and seconds count from 0")
    if isinstance(position, int | np.integer):
        return min(int(position), len(reader))
    lo, hi = 0, len(reader)
    while lo < hi:
        middle = (lo + hi) // 2
        at = float(reader.times(middle, middle + 1)[0])
        lo, hi = (middle + 1, hi) if at < position else (lo, middle)
    return lo


def _first_attribute(video: Any, names: tuple[str, ...]) -> Any:
    return next(getattr(video, name) for name in names if hasattr(video, name))


def _as_array(value: Any) -> npt.NDArray[Any]:
    """Convert an array or a tensor of any device, whose library need not be known."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    if isinstance(value, list | tuple) and value and hasattr(value[0], "detach"):
        value = [one.detach().cpu().numpy() for one in value]
    return np.asarray(value)


def _as_seconds(values: Any, count: int, video: Any) -> npt.NDArray[np.float64]:
    seconds = _as_array(values)
    if seconds.dtype.kind != "f":
        raise MediaError(
            f"{type(video).__name__}: timestamps must be floating-point seconds, not {seconds.dtype}, which may count "
            "something else",
            fault="F184",
        )
    if seconds.shape != (count,) or not np.isfinite(seconds).all():
        raise MediaError(
            f"{type(video).__name__}: {count} frames need {count} finite timestamps, got {seconds.shape}", fault="F184"
        )
    return seconds.astype(np.float64)


def _as_frames(pixels: Any, count: int, video: Any) -> Frames:
    """Convert to (T, H, W, 3) uint8 RGB, from channels last or first."""
    frames = _as_array(pixels)
    if frames.dtype != np.uint8 or frames.ndim != 4 or len(frames) != count:
        raise MediaError(
            f"{type(video).__name__}: {count} frames must be a (T, H, W, 3) or (T, 3, H, W) uint8 array, got "
            f"{frames.shape} {frames.dtype}",
            fault="F184",
        )
    first, last = frames.shape[1] == 3, frames.shape[3] == 3
    if first == last:
        raise MediaError(
            f"{type(video).__name__}: frames of shape {frames.shape[1:]} have their channels "
            f"{'first or last, which cannot be known' if first else 'nowhere: RGB needs three'}",
            fault="F184",
        )
    return np.ascontiguousarray(frames.transpose(0, 2, 3, 1) if first else frames)
