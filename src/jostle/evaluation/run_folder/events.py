"""What a journal tells: one kind of event a record, its name under `event`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import checked_rate
from jostle.errors import BadValue
from jostle.io.files.records import Count, Misfit, fitted


@dataclass(frozen=True)
class StruckFrames:
    """Frames of a video in a cell that were found to be struck, so that what they touch was replaced.

    Attributes:
        found: their stretches, each with its first frame and the one after its last.
        left: whether something stayed as it was, as nothing sound was left to lean on.
    """

    found: tuple[tuple[Count, Count], ...] = ()
    left: bool = False

    @classmethod
    def of(cls, struck: npt.NDArray[np.bool_], *, left: bool) -> StruckFrames:
        """Of one boolean a frame.

        >>> StruckFrames.of(np.array([False, True, True, False, True]), left=False).found
        ((1, 3), (4, 5))
        """
        edges = np.flatnonzero(np.diff(np.concatenate([[0], struck.astype(np.int8), [0]]))).tolist()
        return cls(tuple(zip(edges[::2], edges[1::2], strict=True)), left)


@dataclass(frozen=True)
class VideoKept:
    """What was found in a video lies in a file of its own.

    Attributes:
        video: its name.
        path: where it lay.
        sha256: of the file of results.
        kept: size and time of change of that file.
        cells: those that it has results of, as ranges in the benchmark's list.
        size, changed_ns, source: what the video itself is known by.
        fps: the rate that a folder of images was shown at, where something outside of it said so.
        portion: which portion of the video, where its results are kept by portions.
        shown: numbers of the frames that the model was shown, where not all were, blanks between: journals are long.
        cost: what it took, as plain numbers.
        mended: what became of struck frames, by cell; None where they were let be.
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
                checked_rate(self.fps)
            except BadValue:
                raise Misfit(f"is {self.fps[:40]!r}, no rate").under("fps") from None


@dataclass(frozen=True)
class VideoFailed:
    """A video could not be used, and why: the kind of error, its message, and its number among the faults."""

    video: str
    error: str
    message: str
    fault: str
    portion: Count | None = None
    event: Literal["failed"] = "failed"


@dataclass(frozen=True)
class VideoList:
    """A list of videos, which cells name by its key: most have the same."""

    key: str
    videos: tuple[str, ...]
    event: Literal["list"] = "list"


@dataclass(frozen=True)
class CellWritten:
    """The predictions of a cell were written: the file's checksum, and the key of the list of its videos."""

    cell: str
    sha256: str
    list: str
    event: Literal["cell"] = "cell"


@dataclass(frozen=True)
class WorkDone:
    """Videos were looked at, and what the time went to: that on the clock, and seconds of all workers together.

    Attributes:
        videos: or portions of them.
        workers: how many there were.
        seconds: on the clock, from the first video to the last.
        decoding, corrupting, model: of the workers; the last is waiting where the model is in a process of its own.
        disk: of the one process that writes.
        limit: what more of would make it faster.
        apart: whether the model is in a process of its own.
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


def event_of(plain: Any) -> Event:
    """The event that a line of a journal tells.

    Raises:
        Misfit: if it tells none.
    """
    kind = plain.get("event") if isinstance(plain, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise Misfit(f"is none of {', '.join(_KINDS)}").under("event")
    made: Event = fitted(_KINDS[kind], plain)
    return made


def plain_event(event: Event) -> dict[str, Any]:
    """Ready for JSON, its kind first."""
    told = {"event": event.event} | asdict(event)
    return {key: value for key, value in told.items() if value is not None}
