"""Journals: files of one event per line, validated line by line; one dataclass per kind of event."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import check_rate
from jostle.errors import BadValue, DataError, ResourceError
from jostle.io.files.records import Count, ValidationError, parse_record


@dataclass(frozen=True)
class DamagedFrames:
    """Corrupted frames that an inspector found in a video in a cell, and that were mended."""

    found: tuple[tuple[Count, Count], ...] = ()  # half-open ranges of frames
    left: bool = False  # whether something was not mended, as no intact frame was left

    @classmethod
    def of(cls, mask: npt.NDArray[np.bool_], *, left: bool) -> DamagedFrames:
        """Convert one boolean per frame to ranges.

        >>> DamagedFrames.of(np.array([False, True, True, False, True]), left=False).found
        ((1, 3), (4, 5))
        """
        edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]]))).tolist()
        return cls(tuple(zip(edges[::2], edges[1::2], strict=True)), left)


@dataclass(frozen=True)
class VideoKept:
    """Results of a video were stored in a file."""

    video: str
    path: str
    sha256: str  # checksum of the results file
    kept: tuple[Count, int]  # size and modification time of that file
    cells: tuple[tuple[Count, Count], ...]  # cells with results, as ranges in the benchmark's list
    # `size`, `changed_ns`, `source`: identity of the video file.
    size: Count | None = None
    changed_ns: int | None = None
    source: str | None = None
    fps: str | None = None  # frame rate of a folder of images that does not record one
    portion: Count | None = None  # number of the portion, where results are stored by portions
    # Indices of the frames that the model processed, if not all, separated by blanks to keep journals short.
    shown: str | None = None
    cost: dict[str, Any] | None = None
    mended: dict[str, DamagedFrames] | None = None  # corrupted frames found, by cell; None without mending
    # By cell, what the network had adapted to before the video, as a hash of their names; None without adaptation.
    histories: dict[str, str] | None = None
    event: Literal["video"] = "video"

    def __post_init__(self) -> None:
        if self.fps is not None:
            try:
                check_rate(self.fps)
            except BadValue:
                raise ValidationError(f"is {self.fps[:40]!r}, no rate").under("fps") from None


@dataclass(frozen=True)
class VideoFailed:
    """A video could not be used: class of the error, its message and its fault code."""

    video: str
    error: str
    message: str
    fault: str
    portion: Count | None = None
    event: Literal["failed"] = "failed"


@dataclass(frozen=True)
class VideoList:
    """List of videos that cells refer to by its key, as most have the same."""

    key: str
    videos: tuple[str, ...]
    event: Literal["list"] = "list"


@dataclass(frozen=True)
class CellWritten:
    """Predictions of a cell were written: checksum of the file, and key of the list of its videos."""

    cell: str
    sha256: str
    list: str
    event: Literal["cell"] = "cell"


@dataclass(frozen=True)
class WorkDone:
    """Videos were processed: wall-clock time, and time of all workers by kind of work."""

    videos: Count  # number of videos, or portions of them
    workers: Count
    seconds: float  # wall-clock time from the first video to the last
    # `decoding`, `corrupting`, `model`: seconds of the workers; `model` is waiting where the model has its own process.
    decoding: float
    corrupting: float
    model: float
    disk: float  # seconds of the main process for writing
    limit: Literal["decoding", "corrupting", "model", "disk"]
    apart: bool = False  # whether the model runs in a process of its own
    event: Literal["work"] = "work"


Event = VideoKept | VideoFailed | VideoList | CellWritten | WorkDone
_KINDS: dict[str, type[Any]] = {kind.event: kind for kind in (VideoKept, VideoFailed, VideoList, CellWritten, WorkDone)}


def parse_event(plain: Any) -> Event:
    """Convert a decoded line of a journal to an event.

    Raises:
        ValidationError: if it is not a valid event.
    """
    kind = plain.get("event") if isinstance(plain, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValidationError(f"is none of {', '.join(_KINDS)}").under("event")
    event: Event = parse_record(_KINDS[kind], plain)
    return event


def event_to_dict(event: Event) -> dict[str, Any]:
    """Convert an event to a JSON-serializable dictionary, its kind first."""
    fields = {"event": event.event} | asdict(event)
    return {key: value for key, value in fields.items() if value is not None}


R = TypeVar("R")
LARGEST = 512 << 20  # bytes; the journal of a million videos is smaller


def check_regular_file(path: Path) -> None:
    """Raise a DataError if a path exists and is not a regular file: reading a pipe might never end."""
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise DataError(f"{path}: not a regular file; remove it, and the same `jostle run` resumes", fault="F110")


def read_bytes_checked(path: Path) -> bytes:
    """Read a regular file of limited size."""
    try:
        check_regular_file(path)
        if path.stat().st_size > LARGEST:
            raise DataError(f"{path}: larger than {LARGEST} bytes; start again in a new folder", fault="F110")
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}); check its type and permissions", fault="F110"
        ) from None


def parse_lines(path: Path, data: bytes, fit: Callable[[Any], R], remedy: str) -> Iterator[R]:
    """Yield the record of each complete line; an incomplete last line is ignored.

    Args:
        fit: converts a plain value to a record, or raises `ValidationError`.
    """
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            yield fit(json.loads(line))
        except (ValueError, RecursionError, ValidationError) as error:
            why = f" ({error})" if isinstance(error, ValidationError) else ""
            raise DataError(f"{path}: line {number} is damaged{why}; {remedy}", fault="F110") from None


def read_events(path: Path) -> list[Event]:
    """Read the events of a journal; an incomplete last line is ignored.

    Raises:
        DataError: if the file cannot be read, or a complete line is not an event.
    """
    return _parse_events(path, read_bytes_checked(path) if os.path.lexists(path) else b"")


class Journal:
    """Journal open for writing by the process that owns its folder.

    Attributes:
        events: events so far.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            check_regular_file(path)
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise DataError(f"{path}: cannot be written ({error.strerror}); choose another folder") from None
        try:
            data = read_bytes_checked(path)
            self.events = _parse_events(path, data)
            os.ftruncate(self._handle, data.rfind(b"\n") + 1)  # drop the incomplete line of a killed process
        except BaseException:
            os.close(self._handle)
            raise

    def note(self, event: Event) -> None:
        """Add an event; it is on the disk when this returns."""
        line = json.dumps(event_to_dict(event), allow_nan=False).encode() + b"\n"
        try:
            while line:
                line = line[os.write(self._handle, line) :]
            os.fsync(self._handle)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise ResourceError(f"no space left on the disk for {self._path}; free some, then run again") from None
            raise DataError(f"{self._path}: cannot be written ({error.strerror})") from None
        self.events.append(event)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._handle)


def _parse_events(path: Path, data: bytes) -> list[Event]:
    lists: set[str] = set()

    def event(plain: Any) -> Event:
        parsed = parse_event(plain)
        if isinstance(parsed, VideoList):
            lists.add(parsed.key)
        elif isinstance(parsed, CellWritten) and parsed.list not in lists:
            raise ValidationError(f"is {parsed.list!r}, which no earlier line defines").under("list")
        return parsed

    return list(parse_lines(path, data, event, "remove it, and the work it records is done again"))
