"""Reading of videos: any frame by number or time, with the same pixels in every order."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from jostle.core.types.clip import Clip, Frame, Frames, check_rate
from jostle.errors import BadValue, MediaError, SourceChanged
from jostle.io.video.facts import VideoFacts
from jostle.io.video.frame_index import check_scan, index_frames
from jostle.io.video.picture_cache import PictureCache
from jostle.io.video.source import identity_of, open_source
from jostle.io.video.timestamps import DecodeScan
from jostle.io.video.validation import Identity, Limits, PathLike, printable_name
from jostle.io.video.video_source import OnMissing, ReadOptions

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
        self._pictures, self._progress = PictureCache(self._source, picture_bytes), progress
        coded = self._source.coded_path is not None
        try:
            scan = self._get_scan(once)
            self.facts: VideoFacts = self._source.facts
            check_scan(scan, self.facts, options, coded=coded)
            index = index_frames(scan, self.facts, options, coded=coded)
        except BaseException:
            self._source.close()
            raise
        self.time_base: Fraction = self.facts.time_base
        self.fps, self.pts, self.ticks = index.fps, index.pts, index.ticks
        self.first_tick, self.stamps = index.first_tick, index.stamps
        self.damage, self.concealed, self.undecodable = index.damage, index.concealed, index.undecodable
        self.warnings, self._source_frames = index.warnings, index.pictures

    def _get_scan(self, once: bool) -> DecodeScan:
        key = (self._source.scan_key, self._identity)
        scan = _scans.get(key)
        if scan is not None:
            _scans.move_to_end(key)
            self._source.use_scan(scan)
            return scan
        predicted = self._source.predict_scan(self._pictures.max_bytes) if once else None
        if predicted is not None:
            return predicted
        scan = self._source.scan(self._keep_early)
        if len(scan.stamps) <= _MAX_CACHED_SCAN_FRAMES:
            _scans[key] = scan
            if len(_scans) > _MAX_CACHED_SCANS:
                _scans.popitem(last=False)
        return scan

    def _keep_early(self, number: int, picture: Any) -> None:
        if self._progress and number % _REPORT_EVERY == 0:
            facts = self._source.facts
            expected = facts.declared_frames or int((facts.duration_s or 0) * facts.fps)
            self._progress(number, max(expected, number + 1))
        self._pictures.keep_early(number, picture)

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
        return self._source.rgb(self._pictures.picture(int(self._source_frames[number])))

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
        self._pictures.clear()
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
