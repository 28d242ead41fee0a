"""Reading of videos: any frame by number or time, with the same pixels in every order."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Clip, Frame, Frames, Times, check_rate
from jostle.errors import BadValue, MediaError, SourceChanged
from jostle.io.video.facts import VideoFacts
from jostle.io.video.source import identity_of, open_source
from jostle.io.video.timestamps import DecodeScan, Ticks, insert_lost, repair_timestamps, spans
from jostle.io.video.validation import Identity, Limits, PathLike, printable_name
from jostle.io.video.video_source import OnMissing, ReadOptions

_CACHE_BYTES = 32 * 2**20  # of stored pictures: some seconds of ordinary video; the decoder holds as much again
_MAX_CACHED_SCANS = 64
_REPORT_EVERY = 32
_MAX_CACHED_SCAN_FRAMES = 200_000

# A file is often opened again for the next corruption; a scan stays valid while the file is unchanged.
_scans: OrderedDict[tuple[str, Identity], DecodeScan] = OrderedDict()


class Reader:
    """Frames of one video: a file, a folder of images, an address, or what a plugin opens.

    Opening decodes a file once, without converting pixels, so that the number of frames, their times and
    any damage are known before the first frame is used. The decoded pictures of a short clip are cached, so
    that it is not decoded twice; a long file costs a second pass, unless it is read `once`, but never more memory than
    a fixed budget. Of images only the headers are read.

    Args:
        path: a video file, a folder of images whose names are numbered, an address such as `https://host/a.mp4`, or
            `shard.tar#a.mp4`, a file in a tar archive.
        fps: frame rate of images without `times.json`; 30 by default. Files have their own.
        limits: what the file may claim.
        threads: decoding threads; None uses one for each core. Pixels do not depend on it, except for a stream whose
            damage no decoder notices.
        strict: refuse a file with any damage.
        keep: smallest share of the promised frames that must decode.
        once: skip the first pass over a long file if its index is reliable. For callers that read from the first frame
            to the last and can start again: reading raises `IndexMismatch` if the index turns out to be wrong.
        picture_bytes: cache size for decoded pictures in bytes; callers that revisit frames need more.
        progress: called with (frames scanned, frames expected) during the first pass over a file.
        on_missing: handling of frames that do not decode: "drop" removes them from the index, "hold" repeats the last
            good frame, "error" refuses the file.

    Attributes:
        facts: what the file says about itself.
        fps: the nominal rate.
        pts: (T,) presentation times in seconds, strictly increasing from 0.
        ticks: (T,) the same times in units of `time_base`, exact.
        time_base: seconds in a tick.
        first_tick: the stored timestamp that became 0.
        stamps: the stored timestamp of each frame, None where the file has none.
        damage: half-open intervals in seconds whose frames are damaged, missing or repeated.
        concealed: (T,) whether a frame shows what the decoder concealed, or was predicted from it.
        undecodable: number of frames that the file promises and that do not decode.
        warnings: notes on how the file was read.
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
        rate = None if fps is None else check_rate(fps)
        options = ReadOptions(rate, limits or Limits(), threads, strict, keep, on_missing, once, picture_bytes)
        self._path, self._identity, self._source = open_source(path, options, progress)
        self._cache: OrderedDict[int, Any] = OrderedDict()
        self._cached_bytes, self._picture_bytes = 0, picture_bytes
        self._progress = progress
        self._stream: Iterator[tuple[int, Any]] | None = None
        self._next = 0
        try:
            scan = self._get_scan(once)
            self.facts: VideoFacts = self._source.facts
            self.time_base: Fraction = self.facts.time_base
            self._check_scan(scan, options)
            self._index(scan, on_missing, rate)
        except BaseException:
            self._source.close()
            raise

    def _get_scan(self, once: bool) -> DecodeScan:
        key = (self._source.scan_key, self._identity)
        scan = _scans.get(key)
        if scan is not None:
            _scans.move_to_end(key)
            self._source.use_scan(scan)
            return scan
        predicted = self._source.predict_scan(self._max_cache_bytes) if once else None
        if predicted is not None:
            return predicted
        scan = self._source.scan(self._cache_early)
        if len(scan.stamps) <= _MAX_CACHED_SCAN_FRAMES:
            _scans[key] = scan
            if len(_scans) > _MAX_CACHED_SCANS:
                _scans.popitem(last=False)
        return scan

    def _check_scan(self, scan: DecodeScan, options: ReadOptions) -> None:
        strict, keep, on_missing = options.strict, options.keep, options.on_missing
        name, decoded, expected = printable_name(self._path), len(scan.stamps), scan.expected
        if not decoded:
            raise MediaError(f"{name}: no frame decodes; download it again", fault="F4")
        if decoded < keep * expected:
            raise MediaError(
                f"{name}: only {decoded} of {expected} frames decode, less than {keep:.0%}; "
                "download it again, or read it with Reader(keep=...)",
                fault="F4",
            )
        missing = expected - decoded
        if self.coded_path is None and scan.lost and (on_missing == "error" or strict):
            raise MediaError(
                f"{name}: {len(scan.lost)} images are missing or cannot be decoded"
                f"{''.join(f'; {note}' for note in (*self.facts.warnings, *scan.notes))}; put them there, or pass "
                "--on-missing hold to repeat the last good one",
                fault="F5",
            )
        if missing > 0 and on_missing == "error":
            raise MediaError(
                f"{name}: {missing} of {expected} frames did not decode; "
                "pass --on-missing hold to repeat the last good frame",
                fault="F5",
            )
        if strict and (scan.damaged or missing > 0):
            raise MediaError(
                f"{name}: damaged: {missing} of {expected} frames did not decode, "
                f"{len(scan.flagged)} are marked as damaged; leave out --strict to use the rest",
                fault="F5",
            )

    def _index(self, scan: DecodeScan, on_missing: OnMissing, requested: Fraction | None) -> None:
        notes = [*self.facts.warnings, *scan.notes]
        if requested is not None and self.coded_path is not None and requested != self.facts.fps:
            notes.append(
                f"{float(requested):g} frames a second are for images; the file says {float(self.facts.fps):g}"
            )
        stamps = scan.stamps
        self.fps: Fraction = self.facts.fps
        known = [stamp for stamp in stamps if stamp is not None]
        if len(known) > 2 and known[-1] > known[0]:
            measured = Fraction(len(known) - 1) / ((known[-1] - known[0]) * self.time_base)
            if not measured / 2 < self.fps < measured * 2:
                notes.append(f"the file claims {float(self.fps):g} frames a second; {float(measured):g} are there")
                self.fps = measured.limit_denominator(1001)
        step = 1 / (self.fps * self.time_base)
        ticks, self.first_tick, repairs = repair_timestamps(stamps, step)
        lost = [tick - self.first_tick for tick in scan.lost]
        self._source_frames = np.arange(len(ticks))
        self.stamps: tuple[int | None, ...] = tuple(stamps)
        repeated: list[int] = []
        in_order = len(known) == len(stamps) and all(a < b for a, b in pairwise(known))
        if on_missing == "hold" and lost and in_order:
            every, self._source_frames = insert_lost(ticks, lost)
            repeated = np.flatnonzero(np.diff(self._source_frames, prepend=-1) == 0).tolist()
            ticks = every
            self.stamps = tuple(int(tick) + self.first_tick for tick in every)
        self.ticks: Ticks = ticks
        seconds = ticks * float(self.time_base.numerator) / float(self.time_base.denominator)
        self.pts: Times = np.asarray(seconds, np.float64)
        for array in (self.ticks, self.pts):
            array.flags.writeable = False
        self.damage: list[tuple[float, float]] = self._damage(scan, lost, repeated)
        concealed = np.zeros(len(stamps), np.bool_)
        concealed[scan.concealed] = True
        self.concealed: npt.NDArray[np.bool_] = concealed[self._source_frames]
        missing = scan.expected - len(stamps)
        self.undecodable: int = max(missing, 0)
        if self.coded_path is None and repeated:
            notes.append(f"{len(repeated)} are held: the image before is displayed in their place")
        elif self.coded_path is not None and missing > 0:
            fate = f"{len(repeated)} are held" if on_missing == "hold" else "they are left out"
            notes.append(f"{missing} of {scan.expected} frames did not decode; {fate}")
        if scan.flagged and self.coded_path is not None:
            notes.append(f"{len(scan.flagged)} frames are marked as damaged by the decoder")
        self.warnings: tuple[str, ...] = (*notes, *repairs)

    def _damage(self, scan: DecodeScan, lost: list[int], repeated: list[int]) -> list[tuple[float, float]]:
        last = self.pts[-1] + float(1 / self.fps)
        ends = np.append(self.pts[1:], last)
        # An interval of damage ends at the next displayed frame, and a lost frame lies inside one.
        hit = {int(np.searchsorted(self._source_frames, number)) for number in scan.flagged} | set(repeated)
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
        """(height, width) in pixels, as displayed."""
        return self.facts.height, self.facts.width

    @property
    def coded_path(self) -> Path | None:
        """File whose coded stream the frames come from; None where there is no such stream, as for images."""
        return self._source.coded_path

    @cached_property
    def names(self) -> tuple[str, ...] | None:
        """File name of each frame of an image folder; None for a video file."""
        own = getattr(self._source, "names", None)
        return None if own is None else tuple(own[number] for number in self._source_frames)

    def number_of(self, name: str) -> int:
        """Return the frame number of an image in a folder.

        Raises:
            MediaError: if it is not there.
        """
        try:
            return (self.names or ()).index(name)
        except ValueError:
            raise MediaError(f"{Path(self._path, name)}: no such image", fault="F4") from None

    @property
    def end_s(self) -> float:
        """Time at which the last frame ends, in seconds."""
        return float(self.pts[-1]) + float(1 / self.fps)

    def frame(self, number: int) -> Frame:
        """Return the (H, W, 3) RGB pixels of one frame."""
        if not 0 <= number < len(self):
            raise BadValue(f"{printable_name(self._path)}: no frame {number}; it has frames 0 to {len(self) - 1}")
        return self._source.rgb(self._picture(int(self._source_frames[number])))

    def block(self, lo: int, hi: int) -> Frames:
        """Return the (hi - lo, H, W, 3) RGB pixels of frames `lo` to `hi` (exclusive)."""
        if not 0 <= lo <= hi <= len(self):
            raise BadValue(f"{printable_name(self._path)}: no frames {lo} to {hi}; it has {len(self)} frames")
        frames = np.empty((hi - lo, *self.size, 3), np.uint8)
        for i in range(lo, hi):
            frames[i - lo] = self.frame(i)
        return frames

    def index_at(self, seconds: float) -> int:
        """Return the number of the frame at this time."""
        if not 0 <= seconds < self.end_s:
            raise BadValue(
                f"{printable_name(self._path)}: nothing is displayed at {seconds} s; it lasts {self.end_s:.3f} s"
            )
        return int(np.searchsorted(self.pts, seconds, side="right")) - 1

    def at(self, seconds: float) -> Frame:
        """Return the (H, W, 3) RGB pixels of the frame at this time."""
        return self.frame(self.index_at(seconds))

    def __iter__(self) -> Iterator[Frame]:
        for number in range(len(self)):
            yield self.frame(number)

    def _picture(self, number: int) -> Any:
        if number in self._cache:
            self._cache.move_to_end(number)
            return self._cache[number]
        # Continue from the current position unless a keyframe further on is nearer.
        if self._stream is None or not self._source.seek_point(number) <= self._next <= number:
            self._stream = self._source.pictures(number)
        for index, picture in self._stream:
            self._next = index + 1
            self._remember(index, picture)
            if index == number:
                return picture
        raise MediaError(f"{printable_name(self._path)}: frame {number} no longer decodes", fault="F19")

    def _remember(self, number: int, picture: Any) -> None:
        if number not in self._cache:
            self._cached_bytes += self._source.weight(picture)
        self._cache[number] = picture
        self._cache.move_to_end(number)
        max_bytes = self._source.cache_bytes or self._max_cache_bytes
        while self._cached_bytes > max_bytes and len(self._cache) > 1:
            _, old = self._cache.popitem(last=False)
            self._cached_bytes -= self._source.weight(old)

    @property
    def _max_cache_bytes(self) -> int:
        return _CACHE_BYTES if self._picture_bytes is None else self._picture_bytes

    def _cache_early(self, number: int, picture: Any) -> None:
        if self._progress and number % _REPORT_EVERY == 0:
            facts = self._source.facts
            expected = facts.declared_frames or int((facts.duration_s or 0) * facts.fps)
            self._progress(number, max(expected, number + 1))
        # During the scan the beginning is cached, because it will be read first; later frames do not evict it.
        if number == 0:
            self._cache.clear()
            self._cached_bytes = 0
        if self._cached_bytes + self._source.weight(picture) <= self._max_cache_bytes:
            self._remember(number, picture)

    def check_unchanged(self) -> None:
        """Raise SourceChanged if the file or an image changed since it was opened."""
        try:
            _, now = identity_of(self._path)
        except MediaError:
            raise SourceChanged(f"{printable_name(self._path)}: gone while it was being read", fault="F19") from None
        if now != self._identity:
            raise SourceChanged(
                f"{printable_name(self._path)}: changed while it was being read; run again when nothing writes to it",
                fault="F19",
            )

    def close(self) -> None:
        """Close the file and drop cached pictures."""
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
        return f"Reader({printable_name(self._path)!r}: {len(self)} frames of {width}x{height}, {self.end_s:.3f} s)"


def read(
    path: PathLike, start: float | None = None, stop: float | None = None, *, fps: Fraction | float | None = None
) -> Clip:
    """Read part of a video into memory.

    Args:
        path: a local video file, or a folder of images.
        start: first frame: its number if an int, its earliest time in seconds if a float.
        stop: end, exclusive, in the same two ways.
        fps: frame rate of images without `times.json`.
    """
    with Reader(path, fps=fps) as reader:
        lo = 0 if start is None else _frame_number(reader, start, "start")
        hi = len(reader) if stop is None else _frame_number(reader, stop, "stop")
        return Clip(reader.block(lo, max(lo, hi)), reader.pts[lo : max(lo, hi)], reader.fps)


def _frame_number(reader: Reader, position: float, name: str) -> int:
    if isinstance(position, bool) or not isinstance(position, int | float | np.integer | np.floating):
        raise BadValue(f"{name} must be a frame number (int) or a time in seconds (float), got {position!r}")
    if not position >= 0:
        raise BadValue(f"{name} must not be negative, got {position!r}; frames and seconds count from 0")
    if isinstance(position, int | np.integer):
        return min(int(position), len(reader))
    return int(np.searchsorted(reader.pts, float(position), side="left"))
