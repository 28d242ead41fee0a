"""How large an image says it is, read from its first bytes: no decoder has to make room for it to be known."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import cv2
import numpy as np

from jostle.core.types.clip import Frame
from jostle.errors import MediaError
from jostle.io.video.frame_folder import FrameFolder
from jostle.io.video.probe import VideoFacts
from jostle.io.video.timestamps import Survey
from jostle.io.video.validation import Limits, shown_name

# Start of a frame in JPEG, of any coding; 0xC4, 0xC8 and 0xCC among them are tables.
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_PIECES = 1 << 20
_JPEG_BARE = frozenset((0x01, *range(0xD0, 0xD9)))  # markers that no length follows
_TIFF_WIDTHS, _TIFF_HEIGHTS = (256, 322), (257, 323)  # of the image, and of its tiles


def claimed_size(data: bytes) -> tuple[int, int] | None:
    """(height, width) that a JPEG, PNG, BMP, WebP or TIFF image claims; None if the bytes are no such image.

    A PNG image is followed to its end, so all of it has to be there.

    >>> claimed_size(b"BM" + bytes(12) + bytes((40, 0, 0, 0, 8, 0, 0, 0, 6, 0, 0, 0)))
    (6, 8)
    """
    if data.startswith(_PNG) and not _png_is_whole(data):
        return None
    return header_size(data)


def header_size(data: bytes) -> tuple[int, int] | None:
    """The same from the beginning of an image alone: what is behind is not looked at."""
    for magic, size in _KINDS:
        if data.startswith(magic):
            try:
                height, width = size(data)
            except IndexError:
                return None
            return (height, width) if height > 0 and width > 0 else None
    return None


def _number(data: bytes, at: int, count: int, big: bool = False) -> int:
    if at < 0 or at + count > len(data):
        raise IndexError
    return int.from_bytes(data[at : at + count], "big" if big else "little")


def _png_is_whole(data: bytes) -> bool:
    # Decoders make room for a piece before they look whether it is there, so each is followed to the next.
    at = 8
    for _ in range(_PNG_PIECES):
        if data[at + 4 : at + 8] == b"IEND":
            return True
        if at + 4 > len(data):
            return False
        at += 12 + _number(data, at, 4, big=True)
    return False


def _png(data: bytes) -> tuple[int, int]:
    return _number(data, 20, 4, big=True), _number(data, 16, 4, big=True)


def _bmp(data: bytes) -> tuple[int, int]:
    if _number(data, 14, 4) == 12:  # as OS/2 wrote them
        return _number(data, 20, 2), _number(data, 18, 2)
    height = _number(data, 22, 4)
    return min(height, 2**32 - height), _number(data, 18, 4)  # the height is negative where the top row comes first


def _jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while True:
        if _number(data, at, 1) != 0xFF:
            raise IndexError
        marker = _number(data, at + 1, 1)
        if marker in _JPEG_FRAMES:
            return _number(data, at + 5, 2, big=True), _number(data, at + 7, 2, big=True)
        if marker == 0xFF:  # a byte that fills
            at += 1
        elif marker in _JPEG_BARE:
            at += 2
        else:
            at += 2 + max(_number(data, at + 2, 2, big=True), 2)


def _webp(data: bytes) -> tuple[int, int]:
    if data[8:12] != b"WEBP":
        raise IndexError
    kind = data[12:16]
    if kind == b"VP8 ":
        return _number(data, 28, 2) & 0x3FFF, _number(data, 26, 2) & 0x3FFF
    if kind == b"VP8L":
        bits = _number(data, 21, 4)
        return (bits >> 14 & 0x3FFF) + 1, (bits & 0x3FFF) + 1
    if kind == b"VP8X":
        return _number(data, 27, 3) + 1, _number(data, 24, 3) + 1
    raise IndexError


def _tiff(data: bytes) -> tuple[int, int]:
    big = data.startswith(b"MM")
    start = _number(data, 4, 4, big)
    found: dict[int, int] = {}
    for entry in range(_number(data, start, 2, big)):
        at = start + 2 + 12 * entry
        wide = _number(data, at + 2, 2, big) == 4  # a long; otherwise a short
        found[_number(data, at, 2, big)] = _number(data, at + 8, 4 if wide else 2, big)
    height, width = (max(found.get(tag, 0) for tag in tags) for tags in (_TIFF_HEIGHTS, _TIFF_WIDTHS))
    return height, width


_KINDS: tuple[tuple[bytes, Callable[[bytes], tuple[int, int]]], ...] = (
    (b"\xff\xd8\xff", _jpeg),
    (_PNG, _png),
    (b"BM", _bmp),
    (b"RIFF", _webp),
    (b"II*\0", _tiff),
    (b"MM\0*", _tiff),
)


_HEAD, _TAIL = 1 << 13, 1 << 10  # bytes of an image in which its size stands, and in which it ends
_JPEG, _JPEG_END = b"\xff\xd8\xff", b"\xff\xd9"
_PNG_START, _PNG_END = b"\x89PNG", b"IEND"
_LISTED = 3
_REPORT_EVERY = 256


class ImagePictures:
    """The pictures of a series of images.

    All headers are read once, so that images of another size, or none at all, are known before the first is used.

    Args:
        fps: the rate, where nothing else says it.
        threads: images decoded at once, while they are asked for in order.
        progress: called with (headers read, headers in all).
    """

    def __init__(
        self,
        folder: FrameFolder,
        *,
        limits: Limits,
        fps: Fraction | None = None,
        threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._folder, self._limits, self._progress = folder, limits, progress
        self._threads = max(threads or min(os.cpu_count() or 1, 8), 1)
        self._pool: ThreadPoolExecutor | None = None
        self._clock = folder.clock(fps)
        self._good: Sequence[int] = range(len(folder))
        self.facts: VideoFacts = self._facts()

    def _facts(self) -> VideoFacts:
        first, picture = next(self._readable(), (None, None))
        if first is None or picture is None:
            raise MediaError(
                f"{self._folder.where(0)}: is not an image that can be decoded, and so are all others; get them again",
                fault="F4",
            )
        clock, count = self._clock, len(self._folder)
        height, width = picture.shape[:2]
        return VideoFacts(
            path=self._folder.path,
            container="images",
            codec=os.path.splitext(self._folder.series.names[first])[1][1:].lower(),
            width=width,
            height=height,
            rotation=0,
            fps=clock.fps,
            time_base=clock.time_base,
            declared_frames=count,
            duration_s=float(count / clock.fps),
            pixel_format="",
            bit_depth=8,
            sample_aspect=Fraction(1),
            interlaced=None,
            colour_range="full",
            bit_rate=None,
            audio_codec=None,
            video_streams=1,
            decoder="images",
            warnings=(*clock.notes, *self._folder.series.notes),
        )

    def _readable(self) -> Iterator[tuple[int, Frame]]:
        """The first image that can be decoded, and its place."""
        for place in range(len(self._folder)):
            picture = self._decoded(self._folder.content(place), place)
            if picture is not None:
                yield place, picture
                return

    @property
    def names(self) -> tuple[str, ...]:
        """File names of the frames."""
        return tuple(self._folder.series.names[place] for place in self._good)

    def foretold(self, least_bytes: int) -> None:
        """A survey reads headers only."""

    def survey(self, keep: Any) -> Survey:
        """Read the header of every image; nothing is decoded, so `keep` is offered nothing."""
        folder, series = self._folder, self._folder.series
        sizes: dict[tuple[int, int], list[int]] = {}
        bad, cut = [], []
        for place in range(len(folder)):
            size, whole = self._look(place)
            if size is None:
                bad.append(place)
                continue
            sizes.setdefault(size, []).append(place)
            if not whole:
                cut.append(place)
            if self._progress and place % _REPORT_EVERY == 0:
                self._progress(place, len(folder))
        self._check_sizes(sizes)
        broken = set(bad)
        good = [place for place in range(len(folder)) if place not in broken]
        stamps = self._clock.ticks or series.places
        lost = [stamps[place] for place in bad]
        if self._clock.ticks is None:
            lost += series.missing
        self._good = good
        notes = []
        for what, places in (("no images and left out", bad), ("cut off at the end and used as far as they go", cut)):
            if places:
                notes.append(f"{len(places)} are {what}: {self._listed(places)}")
        frame_of = {place: frame for frame, place in enumerate(good)}
        return Survey(
            stamps=[stamps[place] for place in good],
            entries=list(enumerate(good)),
            lost=sorted(lost),
            flagged=[frame_of[place] for place in cut],
            errors=len(bad),
            expected=len(folder),
            notes=notes,
        )

    def _look(self, place: int) -> tuple[tuple[int, int] | None, bool]:
        """(height, width) that an image claims, None if it is none, and whether its end is there."""
        head = self._folder.content(place, _HEAD)
        size = header_size(head)
        if size is None and len(head) == _HEAD:
            head = self._folder.content(place)  # a large thumbnail or colour profile comes first
            size = header_size(head)
        if size is not None:
            self._check_pixels(place, size)
        end = next((end for magic, end in ((_JPEG, _JPEG_END), (_PNG_START, _PNG_END)) if head.startswith(magic)), b"")
        tail = head[-_TAIL:] if len(head) < _HEAD else self._folder.tail(place, _TAIL)
        return size, end in tail

    def _check_pixels(self, place: int, size: tuple[int, int]) -> None:
        limit = self._limits.max_pixels
        if size[0] * size[1] > limit:
            raise MediaError(
                f"{self._folder.where(place)}: claims {size[1]}x{size[0]}, more than {limit} pixels; raise "
                "JOSTLE_MAX_PIXELS if that is meant",
                fault="F99",
            )

    def _check_sizes(self, sizes: dict[tuple[int, int], list[int]]) -> None:
        if len(sizes) > 1:
            usual, *others = sorted(sizes, key=lambda size: -len(sizes[size]))
            odd = sorted(place for size in others for place in sizes[size])
            raise MediaError(
                f"{shown_name(self._folder.path)}: the images of a video are of one size, and {len(odd)} are not "
                f"{usual[1]}x{usual[0]}: {self._listed(odd)}; make them one size, or take them out",
                fault="F119",
            )

    def _listed(self, places: list[int]) -> str:
        names = ", ".join(shown_name(self._folder.series.names[place]) for place in places[:_LISTED])
        return names + (f" and {len(places) - _LISTED} more" if len(places) > _LISTED else "")

    def adopt(self, survey: Survey) -> None:
        """Take over what an earlier look at the same images found."""
        self._good = [place for _, place in survey.entries]

    def pictures(self, start: int) -> Iterator[tuple[int, Frame]]:
        """(frame number, RGB) from a frame on; the more are taken, the more are decoded ahead."""
        if self._threads == 1:
            for number in range(start, len(self._good)):
                yield number, self._picture(self._good[number])
            return
        pool = self._pool = self._pool or ThreadPoolExecutor(self._threads)
        ahead: deque[tuple[int, Future[Frame]]] = deque()
        number, depth = start, 1
        try:
            while True:
                while len(ahead) < depth and number < len(self._good):
                    ahead.append((number, pool.submit(self._picture, self._good[number])))
                    number += 1
                if not ahead:
                    return
                frame, made = ahead.popleft()
                yield frame, made.result()
                depth = min(2 * depth, 2 * self._threads)
        finally:
            for _, made in ahead:
                made.cancel()

    def _picture(self, place: int) -> Frame:
        picture = self._decoded(self._folder.content(place), place)
        where = self._folder.where(place)
        if picture is None:
            raise MediaError(f"{where}: is not an image that can be decoded; get it again", fault="F4")
        size = (self.facts.height, self.facts.width)
        if picture.shape[:2] != size:
            raise MediaError(
                f"{where}: {picture.shape[1]}x{picture.shape[0]}, and the first image is {size[1]}x{size[0]}; the "
                "images of a video are of one size",
                fault="F119",
            )
        return picture

    def _decoded(self, data: bytes, place: int) -> Frame | None:
        size = claimed_size(data)
        if size is None:
            return None
        self._check_pixels(place, size)
        try:
            picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)
        except cv2.error:
            return None
        if picture is None:
            return None
        picture.flags.writeable = False
        return np.asarray(picture, np.uint8)

    def entry_before(self, number: int) -> int:
        """Every image stands by itself."""
        return number

    @staticmethod
    def rgb(picture: Frame) -> Frame:
        """(H, W, 3) RGB as shown; not to be written into, as it is kept."""
        return picture

    @staticmethod
    def weight(picture: Frame) -> int:
        """Bytes that keeping this picture costs."""
        return int(picture.nbytes)

    def close(self) -> None:
        """Let go of the threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
