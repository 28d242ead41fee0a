"""Replacement of damaged frames by frames made from the nearest undamaged ones; of files, with timestamps and audio."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, get_args

import cv2
import numpy as np
import numpy.typing as npt

from jostle.core.results import Result
from jostle.core.types.clip import Frame, Frames, Times
from jostle.core.types.inspection import describe_decoder
from jostle.core.types.video import VideoSource
from jostle.corruptions.engine.video import output_image_names, pump
from jostle.errors import BadValue, DataError
from jostle.io.video.decode import Reader
from jostle.io.video.encode import Writer

MendMethod = Literal["hold", "blend", "motion"]
Mask = npt.NDArray[np.bool_]
BLEND_UNIT = 1 << 12  # shares of time are multiples of 1 / BLEND_UNIT, so that blending is exact


class MendedSource:
    """A source whose damaged frames are rebuilt when they are read.

    Args:
        damaged: (T,) mask of the frames to replace.
        how: `hold` repeats the last undamaged frame before, or the first after it; `blend` fades evenly from the one
            before to the one after; `motion` moves them towards each other along the optical flow.

    Raises:
        DataError: if every frame is damaged.
    """

    def __init__(self, source: VideoSource, damaged: Mask, how: MendMethod) -> None:
        if how not in get_args(MendMethod):
            raise BadValue(f"unknown mending method {how!r}; choose one of {', '.join(get_args(MendMethod))}")
        if damaged.shape != (len(source),):
            raise BadValue(
                f"the mask of damaged frames has shape {damaged.shape}, not ({len(source)},): one boolean a frame"
            )
        if len(damaged) and damaged.all():
            raise DataError("every frame is damaged, so there is nothing to mend them with")
        self._source, self._damaged, self._how = source, damaged, how
        whole = np.flatnonzero(~damaged)
        after = np.searchsorted(whole, np.arange(len(damaged)))
        self._next = whole[np.minimum(after, len(whole) - 1)] if len(whole) else after
        self._last = whole[np.maximum(after - 1, 0)] if len(whole) else after
        self._flows: tuple[tuple[int, int], _Flow] | None = None

    @property
    def size(self) -> tuple[int, int]:
        return self._source.size

    @property
    def pts(self) -> Times:
        return self._source.pts

    @property
    def fps(self) -> Fraction:
        return self._source.fps

    def __len__(self) -> int:
        return len(self._source)

    def block(self, lo: int, hi: int) -> Frames:
        """Return frames lo to hi - 1 with the damaged ones replaced."""
        frames = self._source.block(lo, hi)
        here = np.flatnonzero(self._damaged[lo:hi])
        if not len(here):
            return frames
        out = np.array(frames)
        for i in here.tolist():
            out[i] = self._rebuild(lo + i)
        return out

    def _rebuild(self, t: int) -> Frame:
        last, following = int(self._last[t]), int(self._next[t])
        if last > t:  # none before
            last = following
        if following < t or self._how == "hold" or last == following:  # none after
            return self._frame(last)
        share = (t - last) * BLEND_UNIT // (following - last)
        if self._how == "blend":
            return blend_frames(self._frame(last), self._frame(following), share)
        if self._flows is None or self._flows[0] != (last, following):
            self._flows = (last, following), _Flow(self._frame(last), self._frame(following))
        return self._flows[1].at(share)

    def _frame(self, t: int) -> Frame:
        frame: Frame = self._source.block(t, t + 1)[0]
        return frame


def blend_frames(one: Frame, other: Frame, share: int) -> Frame:
    """Average two frames in integers, with weight `share` / BLEND_UNIT for the second.

    >>> blend_frames(np.full((1, 1, 3), 10, np.uint8), np.full((1, 1, 3), 21, np.uint8), BLEND_UNIT // 2).tolist()
    [[[16, 16, 16]]]
    """
    mixed = one.astype(np.int32) * (BLEND_UNIT - share) + other.astype(np.int32) * share
    return ((mixed + BLEND_UNIT // 2) // BLEND_UNIT).astype(one.dtype)


class _Flow:
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


Progress = Callable[[int, int], None]


def damage_mask(values: npt.ArrayLike) -> Mask:
    """Return flags of damaged frames from what a caller gave."""
    mask = np.asarray(values)
    if mask.dtype != np.bool_:
        raise BadValue(f"struck is one boolean a frame, got an array of {mask.dtype}")
    return mask


@dataclass(frozen=True)
class MendedVideo(Result):
    """Result of mending one video."""

    json_keys = ("out", "frames", "mended", "audio", "concealed", "undecodable", "how", "warnings")

    path: Path
    frames: int  # number of frames written
    mended: int  # number of frames replaced
    audio: bool  # whether the audio was copied
    warnings: tuple[str, ...]
    concealed: int  # number of frames that show what the decoder concealed
    undecodable: int  # number of frames that the file promises and the decoder did not give
    how: MendMethod

    @property
    def out(self) -> Path:
        """The file or folder that was written."""
        return self.path

    def written(self) -> tuple[Path, ...]:
        """Return the path that was written."""
        return (self.path,)

    def notes(self) -> tuple[str, ...]:
        """Return warnings, and how many frames were mended."""
        decoder = describe_decoder(self.concealed, self.undecodable)
        sound = "" if self.audio else ", no sound"
        return (*self.warnings, f"{self.mended} of {self.frames} frames mended{sound}{decoder}")


def mend_video(
    reader: Reader,
    damaged: Mask,
    out: Path,
    how: MendMethod,
    *,
    lossless: bool = False,
    progress: Progress | None = None,
) -> MendedVideo:
    """Write the mended video; the output file appears when it is complete, or not at all."""
    mended = MendedSource(reader, damaged, how)
    writer = Writer(
        out,
        size=reader.size,
        fps=reader.fps,
        time_base=reader.time_base,
        codec="ffv1" if lossless and out.suffix else None,
        names=output_image_names(reader, lossless),
        faststart=True,
        audio_from=reader.coded_path,
    )
    with writer:
        pump(mended, writer, [int(tick) for tick in reader.ticks], progress)
        reader.check_unchanged()
    return MendedVideo(
        out,
        len(reader),
        int(np.sum(damaged)),
        writer.has_sound,
        (*reader.warnings, *writer.warnings),
        int(reader.concealed.sum()),
        reader.undecodable,
        how,
    )
