"""Replacement of damaged frames by frames made from the nearest undamaged ones; of files, with timestamps and audio."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

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
from jostle.mending.mender import Mender, find_mender, for_one_video, mender_name

Mask = npt.NDArray[np.bool_]
MendMethod = str | Mender  # name or import path of a mender, or a mender


class MendedSource:
    """A source whose damaged frames are rebuilt when they are read.

    Args:
        damaged: (T,) mask of the frames to replace.
        how: a mender, by name, by import path or as it is.

    Raises:
        DataError: if every frame is damaged.
    """

    def __init__(self, source: VideoSource, damaged: Mask, how: MendMethod) -> None:
        if damaged.shape != (len(source),):
            raise BadValue(
                f"the mask of damaged frames has shape {damaged.shape}, not ({len(source)},): one boolean a frame"
            )
        if len(damaged) and damaged.all():
            raise DataError("every frame is damaged, so there is nothing to mend them with")
        self._source, self._damaged = source, damaged
        self._name, self._repair = mender_name(how), for_one_video(find_mender(how))
        whole = np.flatnonzero(~damaged)
        after = np.searchsorted(whole, np.arange(len(damaged)))
        self._next = whole[np.minimum(after, len(whole) - 1)] if len(whole) else after
        self._last = whole[np.maximum(after - 1, 0)] if len(whole) else after

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
        before, after = int(self._last[t]), int(self._next[t])
        if before > t:  # none before
            before = after
        if after < t:  # none after
            after = before
        frame = self._repair(self._frame, before, t, after)
        height, width = self.size
        if not isinstance(frame, np.ndarray) or frame.shape != (height, width, 3) or frame.dtype != np.uint8:
            what = f"{frame.shape} {frame.dtype}" if isinstance(frame, np.ndarray) else type(frame).__name__
            raise BadValue(f"mender {self._name}: returned {what} for frame {t}, not ({height}, {width}, 3) uint8")
        return frame

    def _frame(self, t: int) -> Frame:
        frame: Frame = self._source.block(t, t + 1)[0].view()
        frame.flags.writeable = False  # others see it too
        return frame


Progress = Callable[[int, int], None]


def damage_mask(values: npt.ArrayLike) -> Mask:
    """Return flags of damaged frames from what a caller gave."""
    mask = np.asarray(values)
    if mask.dtype != np.bool_:
        raise BadValue(f"damaged is one boolean a frame, got an array of {mask.dtype}")
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
    how: str  # name of the mender

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
        mender_name(how),
    )
