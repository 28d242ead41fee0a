"""Reading frames: any frame of a video by number or by time, the same pixels in whatever order."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np

from jostle.core.types.clip import Clip, Frame, Frames, Times, checked_rate
from jostle.errors import BadValue, MediaError, SourceChanged
from jostle.io.video.probe import VideoFacts
from jostle.io.video.source import identity_of, open_source
from jostle.io.video.timestamps import Survey, Ticks, repaired, spans, with_lost
from jostle.io.video.validation import Identity, Limits, PathLike, shown_name

OnMissing = Literal["error", "drop", "hold"]

_CACHE_BYTES = 32 * 2**20  # of pictures as stored: some seconds of ordinary video; the decoder holds as much again
_IMAGE_CACHE_BYTES = 4 * 2**20  # of images, any of which is decoded by itself
_SURVEYS_KEPT = 64
_REPORT_EVERY = 32
_SURVEY_FRAMES_KEPT = 200_000

# A file is often opened again for the next corruption; what a pass over it found still holds while it is
# unchanged.
_surveys: OrderedDict[tuple[str, Identity], Survey] = OrderedDict()


class Reader:
    """Frames of one video: a file, or a folder of images.

    Opening decodes a file once, without converting pixels, so that the number of frames, their times and
    any damage are known before the first frame is used. The decoded pictures of a short clip are kept, so
    that it is not decoded twice; a long file costs a second pass, unless it is read `once`, but never more memory than
    a fixed budget.
    Of images the headers are read.

    Args:
        path: a local video file, or a folder of images whose names are numbered.
        fps: the rate of images that have no `times.json`; 30 if nothing says it. A file knows its own.
        limits: what the file may claim.
        threads: decoding threads; None takes one for each core. Pixels do not depend on it, but for a stream whose
            damage no decoder notices.
        strict: refuse a file with any damage.
        keep: smallest share of the promised frames that must decode.
        once: do without the first pass over a long file if its index can be relied upon. For those who read from the
            first frame to the last and can start again: reading raises `Misled` where the index turns out wrong.
        picture_bytes: of decoded pictures that are kept, if not as usual. Those who come back to frames want more.
        progress: called with (frames looked at, frames expected) during the first pass over a file.
        on_missing: what becomes of frames that do not decode: "drop" leaves them out of the index, "hold"
            shows the last good frame in their place, "error" refuses the file.

    Attributes:
        facts: what the file says about itself.
        fps: the nominal rate.
        pts: (T,) seconds at which frames are shown, strictly increasing from 0.
        ticks: (T,) the same times in units of `time_base`, exact.
        time_base: seconds in a tick.
        first_tick: the stored timestamp that became 0.
        stamps: the stored timestamp of each frame, None where the file has none.
        damage: half-open stretches, in seconds, whose frames are damaged, missing or held.
        warnings: everything a user should know about how the file was read.
    """

    def __init__(
        self,
        path: PathLike,
        *,
        limits: Limits | None = None,
        threads: int | None = None,
        strict: bool = False,
        keep: float = 0.95,
        on_missing: OnMissing = "drop",
        fps: Fraction | float | None = None,
        once: bool = False,
        picture_bytes: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        if on_missing not in ("error", "drop", "hold"):
            raise BadValue(f"on_missing must be error, drop or hold, got {on_missing!r}")
        rate = None if fps is None else checked_rate(fps)
        self._path, self._identity, self._source = open_source(
            path, limits=limits or Limits(), threads=threads, fps=rate, progress=progress
        )
        self._cache: OrderedDict[int, Any] = OrderedDict()
        self._cached_bytes, self._picture_bytes = 0, picture_bytes
        self._progress = progress
        self._stream: Iterator[tuple[int, Any]] | None = None
        self._next = 0
        try:
            survey = self._surveyed(once)
            self.facts: VideoFacts = self._source.facts
            self.time_base: Fraction = self.facts.time_base
            self._check_survey(survey, strict=strict, keep=keep, on_missing=on_missing)
            self._index(survey, on_missing, rate)
        except BaseException:
            self._source.close()
            raise

    def _surveyed(self, once: bool) -> Survey:
        key = (self._source.facts.decoder, self._identity)
        survey = _surveys.get(key)
        if survey is not None:
            _surveys.move_to_end(key)
            self._source.adopt(survey)
            return survey
        foretold = self._source.foretold(self._most_bytes) if once else None
        if foretold is not None:
            return foretold
        survey = self._source.survey(self._keep_early)
        if len(survey.stamps) <= _SURVEY_FRAMES_KEPT:
            _surveys[key] = survey
            if len(_surveys) > _SURVEYS_KEPT:
                _surveys.popitem(last=False)
        return survey

    def _check_survey(self, survey: Survey, *, strict: bool, keep: float, on_missing: OnMissing) -> None:
        shown, found, expected = shown_name(self._path), len(survey.stamps), survey.expected
        if not found:
            raise MediaError(f"{shown}: no frame decodes; download it again", fault="F4")
        if found < keep * expected:
            raise MediaError(
                f"{shown}: only {found} of {expected} frames decode, less than {keep:.0%}; "
                "download it again, or read it with Reader(keep=...)",
                fault="F4",
            )
        missing = expected - found
        if self.coded_path is None and survey.lost and (on_missing == "error" or strict):
            raise MediaError(
                f"{shown}: {len(survey.lost)} images are missing or cannot be decoded"
                f"{''.join(f'; {note}' for note in (*self.facts.warnings, *survey.notes))}; put them there, or pass "
                "--on-missing hold to repeat the last good one",
                fault="F5",
            )
        if missing > 0 and on_missing == "error":
            raise MediaError(
                f"{shown}: {missing} of {expected} frames did not decode; "
                "pass --on-missing hold to repeat the last good frame",
                fault="F5",
            )
        if strict and (survey.damaged or missing > 0):
            raise MediaError(
                f"{shown}: damaged: {missing} of {expected} frames did not decode, "
                f"{len(survey.flagged)} are marked as damaged; leave out --strict to use the rest",
                fault="F5",
            )

    def _index(self, survey: Survey, on_missing: OnMissing, asked: Fraction | None) -> None:
        notes = [*self.facts.warnings, *survey.notes]
        if asked is not None and self.coded_path is not None and asked != self.facts.fps:
            notes.append(f"{float(asked):g} frames a second are for images; the file says {float(self.facts.fps):g}")
        stamps = survey.stamps
        self.fps: Fraction = self.facts.fps
        known = [stamp for stamp in stamps if stamp is not None]
        if len(known) > 2 and known[-1] > known[0]:
            measured = Fraction(len(known) - 1) / ((known[-1] - known[0]) * self.time_base)
            if not measured / 2 < self.fps < measured * 2:
                notes.append(f"the file claims {float(self.fps):g} frames a second; {float(measured):g} are there")
                self.fps = measured.limit_denominator(1001)
        step = 1 / (self.fps * self.time_base)
        ticks, self.first_tick, repairs = repaired(stamps, step)
        lost = [tick - self.first_tick for tick in survey.lost]
        self._shown = np.arange(len(ticks))
        self.stamps: tuple[int | None, ...] = tuple(stamps)
        held: list[int] = []
        in_order = len(known) == len(stamps) and all(a < b for a, b in pairwise(known))
        if on_missing == "hold" and lost and in_order:
            every, self._shown = with_lost(ticks, lost)
            held = np.flatnonzero(np.diff(self._shown, prepend=-1) == 0).tolist()
            ticks = every
            self.stamps = tuple(int(tick) + self.first_tick for tick in every)
        self.ticks: Ticks = ticks
        seconds = ticks * float(self.time_base.numerator) / float(self.time_base.denominator)
        self.pts: Times = np.asarray(seconds, np.float64)
        for array in (self.ticks, self.pts):
            array.flags.writeable = False
        self.damage: list[tuple[float, float]] = self._damage(survey, lost, held)
        missing = survey.expected - len(stamps)
        if self.coded_path is None and held:
            notes.append(f"{len(held)} are held: the image before is shown in their place")
        elif self.coded_path is not None and missing > 0:
            fate = f"{len(held)} are held" if on_missing == "hold" else "they are left out"
            notes.append(f"{missing} of {survey.expected} frames did not decode; {fate}")
        if survey.flagged and self.coded_path is not None:
            notes.append(f"{len(survey.flagged)} frames are marked as damaged by the decoder")
        self.warnings: tuple[str, ...] = (*notes, *repairs)

    def _damage(self, survey: Survey, lost: list[int], held: list[int]) -> list[tuple[float, float]]:
        last = self.pts[-1] + float(1 / self.fps)
        ends = np.append(self.pts[1:], last)
        # A stretch of damage runs to the next frame that is shown, and a lost frame lies inside one.
        hit = {int(np.searchsorted(self._shown, number)) for number in survey.flagged} | set(held)
        starts = [float(self.pts[i]) for i in sorted(hit)]
        stops = [float(ends[i]) for i in sorted(hit)]
        for tick in lost:
            start = float(tick * self.time_base)
            after = int(np.searchsorted(self.ticks, tick, side="right"))
            starts.append(start)
            stops.append(float(self.pts[after]) if after < len(self.pts) else max(last, start + float(1 / self.fps)))
        return spans(starts, stops)

    def __len__(self) -> int:
        return len(self.ticks)

    @property
    def size(self) -> tuple[int, int]:
        """(height, width) in pixels, as shown."""
        return self.facts.height, self.facts.width

    @property
    def coded_path(self) -> Path | None:
        """The file whose coded stream the frames come from; None for images, which have none."""
        return None if self.facts.decoder == "images" else Path(self._path)

    @cached_property
    def names(self) -> tuple[str, ...] | None:
        """The file of each frame of a folder of images; None for a video file."""
        own = getattr(self._source, "names", None)
        return None if own is None else tuple(own[number] for number in self._shown)

    def number_of(self, name: str) -> int:
        """The number of the frame that an image of a folder is.

        Raises:
            MediaError: if it is not there.
        """
        try:
            return (self.names or ()).index(name)
        except ValueError:
            raise MediaError(f"{Path(self._path, name)}: no such image", fault="F4") from None

    @property
    def end_s(self) -> float:
        """When the last frame stops being shown."""
        return float(self.pts[-1]) + float(1 / self.fps)

    def frame(self, number: int) -> Frame:
        """(H, W, 3) RGB of one frame."""
        if not 0 <= number < len(self):
            raise BadValue(f"{shown_name(self._path)}: no frame {number}; it has frames 0 to {len(self) - 1}")
        return self._source.rgb(self._picture(int(self._shown[number])))

    def block(self, lo: int, hi: int) -> Frames:
        """(hi - lo, H, W, 3) RGB of frames `lo` up to, not including, `hi`."""
        if not 0 <= lo <= hi <= len(self):
            raise BadValue(f"{shown_name(self._path)}: no frames {lo} to {hi}; it has {len(self)} frames")
        frames = np.empty((hi - lo, *self.size, 3), np.uint8)
        for i in range(lo, hi):
            frames[i - lo] = self.frame(i)
        return frames

    def index_at(self, seconds: float) -> int:
        """The number of the frame that is shown at this time."""
        if not 0 <= seconds < self.end_s:
            raise BadValue(f"{shown_name(self._path)}: nothing is shown at {seconds} s; it lasts {self.end_s:.3f} s")
        return int(np.searchsorted(self.pts, seconds, side="right")) - 1

    def at(self, seconds: float) -> Frame:
        """(H, W, 3) RGB of the frame that is shown at this time."""
        return self.frame(self.index_at(seconds))

    def __iter__(self) -> Iterator[Frame]:
        for number in range(len(self)):
            yield self.frame(number)

    def _picture(self, number: int) -> Any:
        if number in self._cache:
            self._cache.move_to_end(number)
            return self._cache[number]
        # Going on from where decoding stands is right unless a keyframe further on is nearer.
        if self._stream is None or not self._source.entry_before(number) <= self._next <= number:
            self._stream = self._source.pictures(number)
        for found, picture in self._stream:
            self._next = found + 1
            self._remember(found, picture)
            if found == number:
                return picture
        raise MediaError(f"{shown_name(self._path)}: frame {number} no longer decodes", fault="F19")

    def _remember(self, number: int, picture: Any) -> None:
        if number not in self._cache:
            self._cached_bytes += self._source.weight(picture)
        self._cache[number] = picture
        self._cache.move_to_end(number)
        most = self._most_bytes if self._source.facts.decoder != "images" else _IMAGE_CACHE_BYTES
        while self._cached_bytes > most and len(self._cache) > 1:
            _, old = self._cache.popitem(last=False)
            self._cached_bytes -= self._source.weight(old)

    @property
    def _most_bytes(self) -> int:
        return _CACHE_BYTES if self._picture_bytes is None else self._picture_bytes

    def _keep_early(self, number: int, picture: Any) -> None:
        if self._progress and number % _REPORT_EVERY == 0:
            facts = self._source.facts
            expected = facts.declared_frames or int((facts.duration_s or 0) * facts.fps)
            self._progress(number, max(expected, number + 1))
        # While surveying, the beginning is what will be asked for first, so nothing is pushed out for later
        # frames.
        if number == 0:
            self._cache.clear()
            self._cached_bytes = 0
        if self._cached_bytes + self._source.weight(picture) <= self._most_bytes:
            self._remember(number, picture)

    def check_unchanged(self) -> None:
        """Refuse to go on if the file, or one of the images, is no longer the one that was opened."""
        try:
            _, now = identity_of(self._path)
        except MediaError:
            raise SourceChanged(f"{shown_name(self._path)}: gone while it was being read", fault="F19") from None
        if now != self._identity:
            raise SourceChanged(
                f"{shown_name(self._path)}: changed while it was being read; run again when nothing writes to it",
                fault="F19",
            )

    def close(self) -> None:
        """Let go of the file and of the kept pictures."""
        self._stream = None
        self._cache.clear()
        self._cached_bytes = 0
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if kind is None:
            self.check_unchanged()

    def __repr__(self) -> str:
        height, width = self.size
        return f"Reader({shown_name(self._path)!r}: {len(self)} frames of {width}x{height}, {self.end_s:.3f} s)"


def read(
    path: PathLike, start: float | None = None, stop: float | None = None, *, fps: Fraction | float | None = None
) -> Clip:
    """A stretch of a video in memory.

    Args:
        path: a local video file, or a folder of images.
        start: first frame: its number if an int, the time at or after which it is shown if a float.
        stop: end of the stretch, not included, in the same two ways.
        fps: the rate of images, where nothing else says it.
    """
    with Reader(path, fps=fps) as reader:
        lo = 0 if start is None else _frame_number(reader, start, "start")
        hi = len(reader) if stop is None else _frame_number(reader, stop, "stop")
        return Clip(reader.block(lo, max(lo, hi)), reader.pts[lo : max(lo, hi)], reader.fps)


def _frame_number(reader: Reader, place: float, name: str) -> int:
    if isinstance(place, bool) or not isinstance(place, int | float | np.integer | np.floating):
        raise BadValue(f"{name} must be a frame number (int) or a time in seconds (float), got {place!r}")
    if not place >= 0:
        raise BadValue(f"{name} must not be negative, got {place!r}; frames and seconds count from 0")
    if isinstance(place, int | np.integer):
        return min(int(place), len(reader))
    return int(np.searchsorted(reader.pts, float(place), side="left"))
