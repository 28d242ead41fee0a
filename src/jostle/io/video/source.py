"""Frame sources: opening a video file or a folder of images with the right decoder, and fingerprints of both."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from jostle.core.random import key_for
from jostle.core.types.clip import Frame
from jostle.errors import DataError, MediaError
from jostle.io.video.facts import VideoFacts, facts_of, require_pyav
from jostle.io.video.frame_folder import FrameFolder
from jostle.io.video.timestamps import DecodeScan
from jostle.io.video.validation import Identity, Limits, PathLike, check_file


class FrameSource(Protocol):
    """A decoder of one video: FFmpeg, or images."""

    facts: VideoFacts

    def scan(self, keep: Any) -> DecodeScan: ...
    def predict_scan(self, least_bytes: int) -> DecodeScan | None:
        """Predict a scan of more than `least_bytes` bytes of pictures from the index; None if it is unreliable."""
        ...

    def use_scan(self, scan: DecodeScan) -> None: ...
    def pictures(self, start: int) -> Iterator[tuple[int, Any]]: ...
    def seek_point(self, number: int) -> int: ...
    def rgb(self, frame: Any) -> Frame: ...
    def weight(self, frame: Any) -> int: ...
    def close(self) -> None: ...


def is_images(path: PathLike) -> bool:
    """Return whether a path is read as a folder of images."""
    return os.path.isdir(path)


def identity_of(path: PathLike) -> tuple[str, Identity]:
    """Return the absolute path of a video and its identity, without reading the content.

    Raises:
        MediaError: if there is no such video.
    """
    if is_images(path):
        folder = FrameFolder(path, Limits())
        return folder.path, folder.identity
    return check_file(path)


def fingerprint_of(path: PathLike) -> str:
    """Return `sha256:` and a hash of a file's bytes, or of the names, bytes and times of images.

    Raises:
        MediaError: if it cannot be read.
    """
    if is_images(path):
        return FrameFolder(path, Limits()).fingerprint()
    name, _ = check_file(path)
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
) -> tuple[str, Identity, FrameSource]:
    """Open a video, of images without `times.json` at a rate; return its absolute path, identity and decoder."""
    if is_images(path):
        from jostle.io.video.images import ImageFrames

        folder = FrameFolder(path, limits)
        pictures = ImageFrames(folder, limits=limits, fps=fps, threads=threads, progress=progress)
        return folder.path, folder.identity, pictures
    name, identity = check_file(path)
    require_pyav("reading video")
    from jostle.io.video.ffmpeg_frames import FfmpegFrames

    return name, identity, FfmpegFrames(name, identity.size, limits=limits, threads=threads)


def source_state(path: Path, fps: Fraction | None = None) -> tuple[int, int]:
    """Return size and modification time in nanoseconds, which identify one state of a video.

    For a folder of images the second number is a hash of all names, sizes and times, and of the given frame rate.

    Raises:
        MediaError: if the file does not exist or the folder is empty.
    """
    _, identity = identity_of(path)
    if fps is None or not is_images(path):
        return identity.size, identity.mtime_ns
    return identity.size, key_for(identity.mtime_ns, "fps", str(fps)) >> 1


def file_fingerprint(path: Path) -> str:
    """Return the checksum of a file, prefixed with `sha256:`."""
    digest = sha256_of_file(path)
    if digest is None:
        raise DataError(f"{path}: cannot be read; check the path and its permissions")
    return f"sha256:{digest}"


def sha256_of_file(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def probe(path: PathLike, *, limits: Limits | None = None, fps: Fraction | None = None) -> VideoFacts:
    """Return the facts of a video file or a folder of images; raises MediaError if it is not a video.

    Only local, regular files are opened, and nothing that they point to.

    Args:
        fps: the rate of images, where nothing else says it.
    """
    limits = limits or Limits()
    if os.path.isdir(path):
        from jostle.io.video.frame_folder import FrameFolder
        from jostle.io.video.images import ImageFrames

        return ImageFrames(FrameFolder(path, limits), limits=limits, fps=fps).facts
    name, identity = check_file(path)
    require_pyav("reading video")
    from jostle.io.video.ffmpeg import open_input, picture_stream

    with open_input(name, limits) as container:
        stream = picture_stream(container, name, limits)
        return facts_of(container, stream, name, identity.size)
