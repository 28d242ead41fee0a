"""Where a video lies and what reads it: one dispatch for files, folders of images, addresses and plugins."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from jostle.core.random import key_for
from jostle.core.types.clip import Frame
from jostle.core.types.video_location import VideoAddress, location_of
from jostle.errors import DataError, MediaError
from jostle.io.video.coded_file import CodedFile
from jostle.io.video.facts import VideoFacts, facts_of, require_pyav
from jostle.io.video.frame_folder import FrameFolder
from jostle.io.video.location import locate
from jostle.io.video.timestamps import DecodeScan
from jostle.io.video.validation import Identity, Limits, PathLike, check_file
from jostle.io.video.video_source import ReadOptions, SourceFrames, SourceKind, registered_kind

Progress = Callable[[int, int], None]


class FrameSource(Protocol):
    """A decoder of one video: FFmpeg, images, or a plugin's source."""

    facts: VideoFacts

    @property
    def coded_path(self) -> Path | None:
        """File whose coded stream the frames come from."""
        ...

    @property
    def scan_key(self) -> str:
        """What a scan depends on besides the state of the video."""
        ...

    @property
    def cache_bytes(self) -> int | None:
        """Size of the cache of pictures; None for that of the reader."""
        ...

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


class VideoKind(Protocol):
    """What lies at the location of a video, before it is opened."""

    is_coded: bool  # whether FFmpeg decodes it, and it states its own frame rate

    @property
    def state(self) -> tuple[str, Identity]:
        """Absolute path or address, and identity, known without reading the content."""
        ...

    def fingerprint(self) -> str:
        """Return `sha256:` and a hash of the content."""
        ...

    def frames(self, options: ReadOptions, progress: Progress | None) -> tuple[str, Identity, FrameSource]:
        """Open it; return path or address, identity and decoder."""
        ...

    def facts(self, options: ReadOptions) -> VideoFacts:
        """Return its facts without a scan."""
        ...


def kind_of(location: PathLike) -> VideoKind:
    """Return what lies at the location of a video: here alone files, folders, addresses and plugins are told apart.

    Nothing is opened for it, and a location where nothing lies counts as that of a file.
    """
    name = os.fsdecode(location)
    path = location_of(name)
    remote = isinstance(path, VideoAddress)
    if not remote and os.path.isdir(name):
        return _Images(name)
    plugin = registered_kind(path) if remote or os.path.isfile(name) else None
    return _CodedVideo(name) if plugin is None else _PluginVideo(path, plugin)


class _Images:
    """A folder of images."""

    is_coded = False

    def __init__(self, path: PathLike) -> None:
        self._path = path

    @property
    def state(self) -> tuple[str, Identity]:
        folder = FrameFolder(self._path, Limits())
        return folder.path, folder.identity

    def fingerprint(self) -> str:
        return FrameFolder(self._path, Limits()).fingerprint()

    def frames(self, options: ReadOptions, progress: Progress | None) -> tuple[str, Identity, FrameSource]:
        from jostle.io.video.images import ImageFrames

        folder = FrameFolder(self._path, options.limits)
        pictures = ImageFrames(
            folder, limits=options.limits, fps=options.fps, threads=options.threads, progress=progress
        )
        return folder.path, folder.identity, pictures

    def facts(self, options: ReadOptions) -> VideoFacts:
        return self.frames(options, None)[2].facts


class _CodedVideo:
    """A coded video: a local file, a member of an archive, or at an address."""

    is_coded = True

    def __init__(self, location: PathLike) -> None:
        self._location = location

    @property
    def state(self) -> tuple[str, Identity]:
        file = locate(self._location)
        return file.name, file.identity

    def fingerprint(self) -> str:
        file = locate(self._location)
        try:
            with file.open() as content:
                return f"sha256:{_sha256(content)}"
        except OSError as error:
            raise MediaError(
                f"{file.path}: cannot be read ({error.strerror}); check its permissions", fault="F18"
            ) from None

    def _file(self) -> CodedFile:
        file = locate(self._location)
        require_pyav("reading video")
        return file

    def frames(self, options: ReadOptions, progress: Progress | None) -> tuple[str, Identity, FrameSource]:
        file = self._file()
        from jostle.io.video.ffmpeg_frames import FfmpegFrames

        return file.name, file.identity, FfmpegFrames(file, limits=options.limits, threads=options.threads)

    def facts(self, options: ReadOptions) -> VideoFacts:
        file = self._file()
        from jostle.io.video.ffmpeg import open_input, picture_stream

        with open_input(file, options.limits) as container:
            stream = picture_stream(container, file.name, options.limits)
            return facts_of(container, stream, file.name, file.identity.size)


class _PluginVideo:
    """What a registered function opens: a file, or an address."""

    is_coded = False

    def __init__(self, path: Path, kind: SourceKind) -> None:
        self._path, self._kind = path, kind

    @property
    def state(self) -> tuple[str, Identity]:
        if not isinstance(self._path, VideoAddress):
            return check_file(self._path)
        name = os.fspath(self._path)
        frames = SourceFrames(name, 0, self._kind, ReadOptions())
        try:
            return name, self._address_state(frames)
        finally:
            frames.close()

    def _address_state(self, frames: SourceFrames) -> Identity:
        """Return the state that a source states, or else its address, length and size."""
        facts = frames.facts
        size, version = frames.state or (0, key_for(0, facts.width, facts.height, facts.declared_frames or 0) >> 1)
        return Identity(0, key_for(0, os.fspath(self._path)) >> 1, size, version)

    def fingerprint(self) -> str:
        name, identity = self.state
        if isinstance(self._path, VideoAddress):
            return f"sha256:{hashlib.sha256(f'{name} {identity}'.encode()).hexdigest()}"
        with open(name, "rb") as content:
            return f"sha256:{_sha256(content)}"

    def frames(self, options: ReadOptions, progress: Progress | None) -> tuple[str, Identity, FrameSource]:
        if isinstance(self._path, VideoAddress):
            frames = SourceFrames(os.fspath(self._path), 0, self._kind, options)
            return os.fspath(self._path), self._address_state(frames), frames
        name, identity = check_file(self._path)
        return name, identity, SourceFrames(name, identity.size, self._kind, options)

    def facts(self, options: ReadOptions) -> VideoFacts:
        frames = self.frames(options, None)[2]
        frames.close()
        return frames.facts


def _sha256(content: Any) -> str:
    return hashlib.file_digest(content, "sha256").hexdigest()


def identity_of(path: PathLike) -> tuple[str, Identity]:
    """Return the absolute path of a video and its identity, without reading the content.

    Raises:
        MediaError: if there is no such video.
    """
    return kind_of(path).state


def fingerprint_of(path: PathLike) -> str:
    """Return `sha256:` and a hash of a video's bytes, or of the names, bytes and times of images.

    Raises:
        MediaError: if it cannot be read.
    """
    return kind_of(path).fingerprint()


def open_source(
    path: PathLike, options: ReadOptions, progress: Progress | None = None
) -> tuple[str, Identity, FrameSource]:
    """Open a video; return its absolute path, identity and decoder."""
    return kind_of(path).frames(options, progress)


def source_state(path: Path, fps: Fraction | None = None) -> tuple[int, int]:
    """Return size and modification time in nanoseconds, which identify one state of a video.

    Of what has no modification time the second number is a hash: for a folder of images of all names, sizes and times.
    Where a video does not state its rate, the given one counts too.

    Raises:
        MediaError: if the file does not exist or the folder is empty.
    """
    kind = kind_of(path)
    _, identity = kind.state
    if fps is None or kind.is_coded:
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
    """Return the facts of a video; raises MediaError if it is not one.

    Nothing is opened but the video itself, whatever it refers to.

    Args:
        fps: the rate of what does not state its own.
    """
    return kind_of(path).facts(ReadOptions(fps, limits or Limits()))
