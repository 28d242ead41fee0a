"""Inspection of a collection of videos: how much of each is damaged, by which kinds, and where it is worst.

Results are added to a ledger as they come, so that a run that was stopped goes on where it was, and a collection
that has grown costs only what is new.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from jostle.core.finite import naming
from jostle.core.interruption import exits_as_errors
from jostle.core.schema import Count, Share, parse
from jostle.core.types.clip import Frame
from jostle.errors import DataError, JostleError, ResourceError
from jostle.io.files.ledger import Ledger
from jostle.io.video.source import kind_of, source_state
from jostle.mending.damage_events import DamageEvents
from jostle.mending.loading import stream_inspector
from jostle.mending.stream import VideoStream
from jostle.mending.stream_repair import JudgedPicture
from jostle.mending.verdicts import UNDECODABLE
from jostle.parallel.workers import map_unordered

WIDTH = 192  # of pictures
WORST = 3  # stretches of a video of which pictures are kept
QUALITY = 70  # of JPEG
_ANEW = "delete it to inspect everything again"


@dataclass(frozen=True)
class Stretch:
    """Damaged frames one after another.

    Attributes:
        stop: the first frame after it.
        pictures: as JPEG in base64: the last clean frame, the first and the last damaged one.
    """

    kind: str
    first: Count
    stop: Count
    start_s: float
    end_s: float
    confidence: Share
    pictures: tuple[str, ...] = ()


@dataclass(frozen=True)
class InspectedFile:
    """Result of one video of a collection.

    Attributes:
        video: path as it was found.
        state: size and modification time of the file, by which a change is noticed.
        error: why it could not be read, or an empty string.
        frames: judged, or `undecodable`.
        concealed: frames that show what the decoder concealed.
        cut_off: whether the file ends before its end.
        kinds: damaged frames of each kind, also those that are `undecodable`.
        events: runs of damaged frames.
        worst: the longest of them.
    """

    video: str
    state: tuple[int, int]
    error: str = ""
    frames: Count = 0
    seconds: float = 0.0
    concealed: Count = 0
    cut_off: bool = False
    damaged: Count = 0
    events: Count = 0
    kinds: dict[str, Count] | None = None
    worst: tuple[Stretch, ...] = ()

    @property
    def share(self) -> float:
        """Share of the frames that are damaged."""
        return self.damaged / self.frames if self.frames else 0.0

    @property
    def main_kind(self) -> str:
        """Kind of most damaged frames, or `clean`."""
        return max(self.kinds, key=lambda kind: (self.kinds or {})[kind]) if self.kinds else "clean"


@dataclass(frozen=True)
class _Settings:
    """First line of a journal: results of other settings are not mixed with these."""

    inspector: str  # its fingerprint
    lookahead: Count
    format: int = 2


def inspect_files(
    videos: list[Path],
    journal: Path,
    *,
    inspector: str | Path,
    lookahead: int,
    jobs: int,
    progress: Callable[[int, int], None] | None = None,
) -> list[InspectedFile]:
    """Inspect videos in parallel, and return their results in order; those in the journal are not repeated.

    Raises:
        DataError: if the journal is of other settings.
    """
    settings = _Settings(stream_inspector(inspector).fingerprint, lookahead)
    ledger = Ledger(journal, _parse_line, shared=False, damaged="redo", remedy=_ANEW)
    lines = ledger.read()
    _check_settings(journal, lines, settings)
    done = {line.video: line for line in lines if isinstance(line, InspectedFile)}
    left = [path for path in videos if str(path) not in done or done[str(path)].state != _state(path)]
    if progress is not None and len(left) < len(videos):
        progress(len(videos) - len(left), len(videos))
    start = partial(_start_worker, str(inspector), lookahead)
    with ledger, closing(map_unordered(start, left, jobs, lost=_lost)) as results:
        if not lines:
            ledger.add(settings)
        for count, (path, result) in enumerate(results, 1):
            done[str(path)] = result
            ledger.add(result)
            if progress is not None:
                progress(len(videos) - len(left) + count, len(videos))
    return [done[str(path)] for path in videos]


def _parse_line(plain: Any) -> _Settings | InspectedFile:
    is_file = isinstance(plain, dict) and "video" in plain
    return parse(InspectedFile, plain) if is_file else parse(_Settings, plain)


def _check_settings(journal: Path, lines: Sequence[_Settings | InspectedFile], settings: _Settings) -> None:
    """Raise a DataError if a journal that is not empty does not begin with these settings."""
    if not (lines and isinstance(lines[0], _Settings)):
        if journal.exists() and journal.stat().st_size:
            raise DataError(f"{journal}: its first line is damaged; {_ANEW}")
    elif lines[0] != settings:
        raise DataError(f"{journal}: holds results of another inspector or look-ahead; name another file, or {_ANEW}")


def _state(path: Path) -> tuple[int, int]:
    try:
        return source_state(path)
    except JostleError:
        return (0, 0)


def _lost(path: Path, error: ResourceError) -> InspectedFile:
    return InspectedFile(str(path), _state(path), str(error))


def _start_worker(inspector: str, lookahead: int) -> Callable[[Path], InspectedFile]:
    loaded = stream_inspector(inspector)

    def inspect(path: Path) -> InspectedFile:
        try:
            with exits_as_errors(), naming(video=path.name):
                return _inspect(path, VideoStream(lookahead=lookahead, inspector=loaded))
        except ResourceError:
            raise
        except JostleError as error:
            return InspectedFile(str(path), _state(path), str(error))

    return inspect


def _inspect(path: Path, stream: VideoStream) -> InspectedFile:
    state, tally = _state(path), _Tally()
    for frame, time, concealed in _frames(path, tally.report):
        tally.concealed += concealed
        for judged in stream.push(frame, time, _small(frame), concealed=concealed):
            tally.add(judged)
    for judged in stream.flush():
        tally.add(judged)
    tally.finish()
    if not tally.frames:
        return InspectedFile(str(path), state, "no frame could be decoded")
    return InspectedFile(
        str(path),
        state,
        frames=tally.frames + tally.kinds[UNDECODABLE],
        seconds=tally.time,
        concealed=tally.concealed,
        cut_off=tally.cut_off,
        damaged=sum(tally.kinds.values()),
        events=tally.events,
        kinds=dict(tally.kinds),
        worst=tuple(tally.worst),
    )


def _frames(path: Path, report: Callable[[str, dict[str, Any]], None]) -> Iterator[tuple[Frame, float | None, bool]]:
    """Yield frames, times, and whether the decoder concealed something in them, in one pass over a file.

    Args:
        report: called with what is lost, as of `DecodedFile`.
    """
    if not kind_of(path).is_coded:
        from jostle.io.video.decode import Reader

        with Reader(path) as reader:
            yield from zip(reader, reader.pts.tolist(), reader.concealed.tolist(), strict=True)
        return
    from jostle.io.video.live import DecodedFile
    from jostle.io.video.location import locate
    from jostle.io.video.raw_picture import RgbOfPictures

    to_rgb = RgbOfPictures()
    with closing(DecodedFile(locate(path), report)) as source:
        for picture in source:
            yield to_rgb(picture), picture.time, picture.concealed


class _Tally:
    """Counts of a video, and its worst stretches with pictures."""

    def __init__(self) -> None:
        self.frames, self.time, self.events, self.concealed = 0, 0.0, 0, 0
        self.cut_off = self._losing = False
        self.kinds: Counter[str] = Counter()
        self.worst: list[Stretch] = []
        self._events = DamageEvents()
        self._clean: Frame | None = None
        self._first: Frame | None = None
        self._last: Frame | None = None
        self._begin = 0.0

    def add(self, judged: JudgedPicture) -> None:
        verdict, picture = judged.verdict, judged.picture
        assert picture is not None
        self.frames, self.time = self.frames + 1, verdict.time
        for event in self._events.push(verdict):
            if event["event"] == "end":
                self._keep(event)
            else:
                self.events += 1
                self._begin, self._first = verdict.time, picture
        if verdict.damaged:
            self.kinds[verdict.kind] += 1
            self._last = picture
        else:
            self._clean = picture

    def report(self, what: str, facts: dict[str, Any]) -> None:
        """Take note of what the file lost."""
        if what == UNDECODABLE:
            self.kinds[UNDECODABLE] += facts["frames"]
            self.events += not self._losing
        self.cut_off = self.cut_off or what == "broken"
        self._losing = what == UNDECODABLE

    def finish(self) -> None:
        for event in self._events.flush():
            self._keep(event)

    def _keep(self, event: dict[str, Any]) -> None:
        shortest = min((one.stop - one.first for one in self.worst), default=0)
        if len(self.worst) == WORST and event["frames"] <= shortest:
            return
        pictures = [one for one in (self._clean, self._first, self._last) if one is not None]
        stretch = Stretch(
            event["kind"],
            event["first_frame"],
            event["frame"],
            self._begin,
            event["time"],
            event["confidence"],
            tuple(map(_jpeg, pictures)),
        )
        self.worst = sorted([*self.worst, stretch], key=lambda one: one.first - one.stop)[:WORST]


def _small(frame: Frame) -> Frame:
    height, width = frame.shape[:2]
    size = (min(width, WIDTH), max(height * min(width, WIDTH) // width, 1))
    return np.asarray(cv2.resize(frame, size, interpolation=cv2.INTER_AREA), np.uint8)


def _jpeg(frame: Frame) -> str:
    _, data = cv2.imencode(".jpg", cv2.cvtColor(frame, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    return base64.b64encode(data.tobytes()).decode("ascii")
