"""Events of a journal, one dataclass per kind, with its name in the field `event`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import check_rate
from jostle.errors import BadValue
from jostle.io.files.records import Count, ValidationError, parse_record


@dataclass(frozen=True)
class StruckFrames:
    """Corrupted frames that an inspector found in a video in a cell, and that were mended.

    Attributes:
        found: half-open ranges of frames.
        left: whether something was not mended, as no intact frame was left.
    """

    found: tuple[tuple[Count, Count], ...] = ()
    left: bool = False

    @classmethod
    def of(cls, mask: npt.NDArray[np.bool_], *, left: bool) -> StruckFrames:
        """Convert one boolean per frame to ranges.

        >>> StruckFrames.of(np.array([False, True, True, False, True]), left=False).found
        ((1, 3), (4, 5))
        """
        edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]]))).tolist()
        return cls(tuple(zip(edges[::2], edges[1::2], strict=True)), left)


@dataclass(frozen=True)
class VideoKept:
    """Results of a video were stored in a file.

    Attributes:
        video: its name.
        path: its path.
        sha256: checksum of the results file.
        kept: size and modification time of that file.
        cells: cells with results, as ranges in the benchmark's list.
        size, changed_ns, source: identity of the video file.
        fps: frame rate of a folder of images that does not record one.
        portion: number of the portion, where results are stored by portions.
        shown: indices of the frames that the model processed, if not all, separated by blanks to keep journals short.
        cost: cost as plain numbers.
        mended: corrupted frames found, by cell; None without mending.
    """

    video: str
    path: str
    sha256: str
    kept: tuple[Count, int]
    cells: tuple[tuple[Count, Count], ...]
    size: Count | None = None
    changed_ns: int | None = None
    source: str | None = None
    fps: str | None = None
    portion: Count | None = None
    shown: str | None = None
    cost: dict[str, Any] | None = None
    mended: dict[str, StruckFrames] | None = None
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
    """Videos were processed: wall-clock time, and time of all workers by kind of work.

    Attributes:
        videos: number of videos, or portions of them.
        workers: number of workers.
        seconds: wall-clock time from the first video to the last.
        decoding, corrupting, model: seconds of the workers; `model` is waiting where the model has its own process.
        disk: seconds of the main process for writing.
        limit: bottleneck.
        apart: whether the model runs in a process of its own.
    """

    videos: Count
    workers: Count
    seconds: float
    decoding: float
    corrupting: float
    model: float
    disk: float
    limit: Literal["decoding", "corrupting", "model", "disk"]
    apart: bool = False
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
