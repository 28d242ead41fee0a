"""Where the pictures of a video come from: a file or a folder of images, told apart at this door and nowhere else."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Protocol

from jostle.core.types.clip import Frame
from jostle.errors import MediaError
from jostle.io.video.frame_folder import FrameFolder
from jostle.io.video.probe import VideoFacts, have_pyav
from jostle.io.video.timestamps import Survey
from jostle.io.video.validation import Identity, Limits, PathLike, checked_file


class Source(Protocol):
    """A decoder of one video: `media.pictures` by FFmpeg, `media.opencv` where PyAV is missing, `media.images`."""

    facts: VideoFacts

    def survey(self, keep: Any) -> Survey: ...
    def foretold(self, least_bytes: int) -> Survey | None:
        """What a survey will find, if more than so many bytes of pictures, and if it can be known before decoding."""
        ...

    def adopt(self, survey: Survey) -> None: ...
    def pictures(self, start: int) -> Iterator[tuple[int, Any]]: ...
    def entry_before(self, number: int) -> int: ...
    def rgb(self, frame: Any) -> Frame: ...
    def weight(self, frame: Any) -> int: ...
    def close(self) -> None: ...


def is_images(path: PathLike) -> bool:
    """Whether a path is to be read as images."""
    return os.path.isdir(path)


def identity_of(path: PathLike) -> tuple[str, Identity]:
    """The absolute path of a video, and what tells one state of it from another without reading it.

    Raises:
        MediaError: if there is no such video.
    """
    if is_images(path):
        folder = FrameFolder(path, Limits())
        return folder.path, folder.identity
    return checked_file(path)


def fingerprint_of(path: PathLike) -> str:
    """`sha256:` and a hash of the content: of a file of its bytes, of images of their names, bytes and times.

    Raises:
        MediaError: if it cannot be read.
    """
    if is_images(path):
        return FrameFolder(path, Limits()).fingerprint()
    name, _ = checked_file(path)
    try:
        with open(name, "rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except OSError as error:
        raise MediaError(f"{name}: cannot be read ({error.strerror}); check its permissions", fault="F18") from None


def open_source(
    path: PathLike,
    *,
    limits: Limits,
    threads: int | None,
    fps: Fraction | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[str, Identity, Source]:
    """The absolute path of a video, its identity, and what decodes it.

    Args:
        fps: the rate of images, where nothing else says it.
    """
    if is_images(path):
        from jostle.io.video.images import ImagePictures

        folder = FrameFolder(path, limits)
        pictures = ImagePictures(folder, limits=limits, fps=fps, threads=threads, progress=progress)
        return folder.path, folder.identity, pictures
    name, identity = checked_file(path)
    if have_pyav():
        from jostle.io.video.ffmpeg_frames import Pictures

        return name, identity, Pictures(name, identity.size, limits=limits, threads=threads)
    from jostle.io.video.opencv import OpencvPictures

    return name, identity, OpencvPictures(name, limits=limits)
