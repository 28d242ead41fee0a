"""Writing of videos: atomic, and with equal bytes for equal frames."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from jostle.core.environment import refuses_gpl
from jostle.core.types.clip import Frame, check_rate
from jostle.errors import BadValue, MediaError, ResourceError
from jostle.io.files.atomic import replace_and_sync, temporary_for
from jostle.io.video.validation import PathLike, printable_name

if TYPE_CHECKING:
    from jostle.io.video.video_file import Sink

CodecName = Literal["h264", "h265", "vp9", "ffv1", "images"]

GOP = 60  # frames from key frame to key frame: two seconds of ordinary video; it affects the bytes of a file


def viewing_codec() -> CodecName:
    """Return the codec of clips that are only looked at, in a browser: H.264, or VP9 where GPL encoders are refused."""
    return "vp9" if refuses_gpl() else "h264"


class Writer:
    """Writer of one video file or image folder.

    Frames are written to a temporary file beside the target, which is replaced when everything is on disk. If
    anything fails, the temporary file is removed and the target stays unchanged.

    H.264 is written in 4:2:0, which every browser plays; its sides must be even, so an odd size is written
    in 4:4:4, which keeps it exactly and which Chromium plays. FFV1 stores RGB without loss. Colours are
    BT.601, limited range. Matroska rounds times to milliseconds; mp4, mov and a folder of images keep them
    exactly.

    Args:
        path: the target: `.mp4`, `.mov`, `.mkv` or `.avi`, or a folder for images.
        size: (height, width) of every frame.
        fps: the nominal rate.
        time_base: seconds in a tick; one frame at `fps` if not given.
        codec: "h264", "h265", "vp9", "ffv1" (lossless, in .mkv) or "images" (a folder of PNG and `times.json`);
            None chooses by the path: a name without extension is a folder, anything else H.264.
        quality: lower is better: the constant rate factor of H.265 (default 18); for H.264 (default 16) a constant
            quantiser of the same fidelity is used, which gives the same file on all processors.
        gop: maximum number of frames between key frames of H.264 or H.265. Fewer make seeking faster, the file
            larger, and the decoded pixels slightly different.
        faststart: put the index of an mp4 or mov before its pictures, so that a browser plays while it loads. The
            finished file is rewritten once; its pictures stay the same.
        names: file names for a folder of images, one for each frame; .jpg is written as JPEG of high quality, which is
            lossy, any other suffix as PNG.
        audio_from: a file whose first audio stream is copied untouched.
        metadata: tags to write into the file.

    Attributes:
        warnings: what could not be kept, such as sound that the container cannot hold.
        has_sound: whether sound is copied along.
    """

    def __init__(
        self,
        path: PathLike,
        *,
        size: tuple[int, int],
        fps: Fraction | float,
        time_base: Fraction | None = None,
        codec: CodecName | None = None,
        quality: float | None = None,
        gop: int = GOP,
        faststart: bool = False,
        names: Sequence[str] | None = None,
        audio_from: PathLike | None = None,
        metadata: dict[str, str] | None = None,
    ) -> None:
        self.path = Path(os.fsdecode(path))
        self._size = (int(size[0]), int(size[1]))
        if min(self._size) < 1:
            raise BadValue(f"size must be (height, width) in pixels, got {size}")
        if gop < 1:
            raise BadValue(f"gop must be at least one frame, got {gop}")
        self.fps = check_rate(fps)
        self.time_base = time_base or 1 / self.fps
        self.codec: CodecName = codec or ("images" if not self.path.suffix else "h264")
        _check_target(self.path, folder=self.codec == "images")
        self._last: int | None = None
        self._frames = 0
        temporary = temporary_for(self.path)
        self._sink: Sink | None
        if self.codec == "images":
            from jostle.io.video.video_file import ImageFolder

            self._sink = ImageFolder(temporary, fps=self.fps, time_base=self.time_base, names=names)
        else:
            from jostle.io.video.video_file import VideoFile

            self._sink = VideoFile(
                temporary,
                suffix=self.path.suffix.lower(),
                size=self._size,
                fps=self.fps,
                time_base=self.time_base,
                codec=self.codec,
                quality=quality,
                gop=gop,
                faststart=faststart,
                audio_from=audio_from,
                metadata=metadata or {},
            )
        self.warnings: tuple[str, ...] = tuple(self._sink.warnings)
        self.has_sound: bool = self._sink.has_sound

    def write(self, frame: Frame, tick: int | None = None) -> None:
        """Add one (H, W, 3) RGB frame, displayed at `tick` times `time_base`; None means one frame after the last."""
        if self._sink is None:
            raise BadValue(f"{printable_name(self.path)}: already closed; open another Writer")
        if frame.shape != (*self._size, 3) or frame.dtype != "uint8":
            raise BadValue(
                f"{printable_name(self.path)}: a frame must be uint8 of shape {(*self._size, 3)}, "
                f"got {frame.dtype} of {frame.shape}"
            )
        if tick is None:
            tick = 0 if self._last is None else self._last + max(1, round(1 / (self.fps * self.time_base)))
        tick = int(tick)
        if self._last is not None and tick <= self._last:
            raise BadValue(f"{printable_name(self.path)}: tick {tick} is not later than {self._last}")
        try:
            self._sink.write(frame, tick)
        except BaseException as error:
            self.discard()
            raise self._to_user_error(error) from error
        self._last = tick
        self._frames += 1

    def close(self) -> None:
        """Finish the file and rename it to its final name."""
        if self._sink is None:
            return
        if not self._frames:
            self.discard()
            raise MediaError(f"{printable_name(self.path)}: no frame was written", fault="F16")
        sink = self._sink
        try:
            sink.finish()
            replace_and_sync(sink.temporary, self.path)
        except BaseException as error:
            self.discard()
            raise self._to_user_error(error) from error
        self._sink = None

    def discard(self) -> None:
        """Remove what was written and leave the target unchanged."""
        if self._sink is not None:
            sink, self._sink = self._sink, None
            sink.discard()

    def _to_user_error(self, error: BaseException) -> BaseException:
        if isinstance(error, MediaError | BadValue) or not isinstance(error, Exception):
            return error
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            folder = self.path.parent
            return ResourceError(f"no space left on the disk for {folder / self.path.name}; free some, then run again")
        return MediaError(f"{printable_name(self.path)}: writing failed ({error}); nothing was kept", fault="F16")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


def _check_target(path: Path, *, folder: bool) -> None:
    parent = path.parent
    if not parent.is_dir():
        raise MediaError(f"{path}: its folder does not exist; create {parent}", fault="F65")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise MediaError(f"{path}: no permission to write into {parent}", fault="F65")
    if folder:
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            raise MediaError(f"{path}: is not empty; name a new or an empty folder")
    elif path.is_dir():
        raise MediaError(f"{path}: is a folder; name a file, or ask for images")
