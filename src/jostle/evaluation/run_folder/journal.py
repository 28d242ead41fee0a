"""Journal of a run: a ledger of one event per line; one dataclass per kind of event."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from jostle.core.schema import Count, Mismatch, parse
from jostle.core.types.clip import check_rate
from jostle.errors import BadValue
from jostle.io.files.ledger import Ledger, check_regular


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
                raise Mismatch(f"is {self.fps[:40]!r}, no rate").under("fps") from None


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
        Mismatch: if it is not a valid event.
    """
    kind = plain.get("event") if isinstance(plain, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise Mismatch(f"is none of {', '.join(_KINDS)}").under("event")
    event: Event = parse(_KINDS[kind], plain)
    return event


def event_to_dict(event: Event) -> dict[str, Any]:
    """Convert an event to a JSON-serializable dictionary, its kind first."""
    fields = {"event": event.event} | asdict(event)
    return {key: value for key, value in fields.items() if value is not None}


def check_regular_file(path: Path) -> None:
    """Raise a DataError if a file of a run is not a regular file: reading a pipe might never end."""
    check_regular(path, "remove it, and the same `jostle run` resumes", "F110")


def journal_of(path: Path) -> Ledger[Event]:
    """Return the journal of a run folder, which one process owns; a damaged line is refused."""
    lists: set[str] = set()

    def parse(plain: Any) -> Event:
        event = parse_event(plain)
        if isinstance(event, VideoList):
            lists.add(event.key)
        elif isinstance(event, CellWritten) and event.list not in lists:
            raise Mismatch(f"is {event.list!r}, which no earlier line defines").under("list")
        return event

    remedy = "restore it, or remove it, and the work it records is done again"
    return Ledger(path, parse, shared=False, damaged="refuse", remedy=remedy, fault="F110", dump=event_to_dict)


def read_events(path: Path) -> list[Event]:
    """Read the events of a journal; an incomplete last line is ignored.

    Raises:
        DataError: if the file cannot be read, or a complete line is not an event.
    """
    return journal_of(path).read()
