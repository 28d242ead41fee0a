"""Images as frames: sizes from their headers, and decoding with several threads."""

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
from jostle.io.video.facts import VideoFacts
from jostle.io.video.frame_folder import FrameFolder
from jostle.io.video.rgb_pictures import RgbPictures
from jostle.io.video.timestamps import DecodeScan
from jostle.io.video.validation import Limits, printable_name

# Start of a frame in JPEG, of any coding; 0xC4, 0xC8 and 0xCC among them are tables.
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_PIECES = 1 << 20
_JPEG_BARE = frozenset((0x01, *range(0xD0, 0xD9)))  # markers that no length follows
_TIFF_WIDTHS, _TIFF_HEIGHTS = (256, 322), (257, 323)  # of the image, and of its tiles


def claimed_size(data: bytes) -> tuple[int, int] | None:
    """Return the (height, width) that an image claims; None if the bytes are not a supported image.

    All chunks of a PNG image must be present.

    >>> claimed_size(b"BM" + bytes(12) + bytes((40, 0, 0, 0, 8, 0, 0, 0, 6, 0, 0, 0)))
    (6, 8)
    """
    if data.startswith(_PNG) and not _png_is_whole(data):
        return None
    return header_size(data)


def header_size(data: bytes) -> tuple[int, int] | None:
    """Return the claimed size from the beginning of an image alone."""
    for magic, size in _KINDS:
        if data.startswith(magic):
            try:
                height, width = size(data)
            except IndexError:
                return None
            return (height, width) if height > 0 and width > 0 else None
    return None


def _number(data: bytes, offset: int, count: int, big: bool = False) -> int:
    if offset < 0 or offset + count > len(data):
        raise IndexError
    return int.from_bytes(data[offset : offset + count], "big" if big else "little")


def _png_is_whole(data: bytes) -> bool:
    # Decoders allocate memory for a chunk before they read it, so all chunks are checked first.
    offset = 8
    for _ in range(_PNG_PIECES):
        if data[offset + 4 : offset + 8] == b"IEND":
            return True
        if offset + 4 > len(data):
            return False
        offset += 12 + _number(data, offset, 4, big=True)
    return False


def _png(data: bytes) -> tuple[int, int]:
    return _number(data, 20, 4, big=True), _number(data, 16, 4, big=True)


def _bmp(data: bytes) -> tuple[int, int]:
    if _number(data, 14, 4) == 12:  # OS/2 header
        return _number(data, 20, 2), _number(data, 18, 2)
    height = _number(data, 22, 4)
    return min(height, 2**32 - height), _number(data, 18, 4)  # the height is negative where the top row comes first


def _jpeg(data: bytes) -> tuple[int, int]:
    offset = 2
    while True:
        if _number(data, offset, 1) != 0xFF:
            raise IndexError
        marker = _number(data, offset + 1, 1)
        if marker in _JPEG_FRAMES:
            return _number(data, offset + 5, 2, big=True), _number(data, offset + 7, 2, big=True)
        if marker == 0xFF:  # padding
            offset += 1
        elif marker in _JPEG_BARE:
            offset += 2
        else:
            offset += 2 + max(_number(data, offset + 2, 2, big=True), 2)


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
    values: dict[int, int] = {}
    for entry in range(_number(data, start, 2, big)):
        offset = start + 2 + 12 * entry
        wide = _number(data, offset + 2, 2, big) == 4  # a long; otherwise a short
        values[_number(data, offset, 2, big)] = _number(data, offset + 8, 4 if wide else 2, big)
    height, width = (max(values.get(tag, 0) for tag in tags) for tags in (_TIFF_HEIGHTS, _TIFF_WIDTHS))
    return height, width


_KINDS: tuple[tuple[bytes, Callable[[bytes], tuple[int, int]]], ...] = (
    (b"\xff\xd8\xff", _jpeg),
    (_PNG, _png),
    (b"BM", _bmp),
    (b"RIFF", _webp),
    (b"II*\0", _tiff),
    (b"MM\0*", _tiff),
)


_HEAD, _TAIL = 1 << 13, 1 << 10  # bytes that are read for the size, and for the end marker
_JPEG, _JPEG_END = b"\xff\xd8\xff", b"\xff\xd9"
_PNG_START, _PNG_END = b"\x89PNG", b"IEND"
_MAX_EXAMPLES = 3
_REPORT_EVERY = 256

CACHE_BYTES = 4 * 2**20  # images are decoded independently


class ImageFrames(RgbPictures):
    """Frame source of a series of images.

    All headers are read first, so that invalid images and images of another size are found before decoding.

    Args:
        fps: frame rate without `times.json`.
        threads: images decoded concurrently during sequential access.
        progress: called with (headers read, total headers).
    """

    coded_path, scan_key, cache_bytes = None, "images", CACHE_BYTES

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
        """Yield the first image that can be decoded, with its index."""
        for index in range(len(self._folder)):
            picture = self._decode(self._folder.content(index), index)
            if picture is not None:
                yield index, picture
                return

    @property
    def names(self) -> tuple[str, ...]:
        """File names of the frames."""
        return tuple(self._folder.series.names[index] for index in self._good)

    def predict_scan(self, least_bytes: int) -> None:
        """Return None: a scan reads headers only, and is fast."""

    def scan(self, keep: Any) -> DecodeScan:
        """Read the header of every image; nothing is decoded, so `keep` is not called."""
        folder, series = self._folder, self._folder.series
        sizes: dict[tuple[int, int], list[int]] = {}
        bad, truncated = [], []
        for index in range(len(folder)):
            size, whole = self._read_size(index)
            if size is None:
                bad.append(index)
                continue
            sizes.setdefault(size, []).append(index)
            if not whole:
                truncated.append(index)
            if self._progress and index % _REPORT_EVERY == 0:
                self._progress(index, len(folder))
        self._check_sizes(sizes)
        broken = set(bad)
        good = [index for index in range(len(folder)) if index not in broken]
        stamps = self._clock.ticks or series.places
        lost = [stamps[index] for index in bad]
        if self._clock.ticks is None:
            lost += series.missing
        self._good = good
        notes = []
        for what, indices in (
            ("no images and left out", bad),
            ("cut off at the end and used as far as they go", truncated),
        ):
            if indices:
                notes.append(f"{len(indices)} are {what}: {self._list_examples(indices)}")
        frame_of = {index: frame for frame, index in enumerate(good)}
        return DecodeScan(
            stamps=[stamps[index] for index in good],
            entries=list(enumerate(good)),
            lost=sorted(lost),
            flagged=[frame_of[index] for index in truncated],
            errors=len(bad),
            expected=len(folder),
            notes=notes,
        )

    def _read_size(self, index: int) -> tuple[tuple[int, int] | None, bool]:
        """Return the (height, width) that an image claims, or None, and whether its end is present."""
        head = self._folder.content(index, _HEAD)
        size = header_size(head)
        if size is None and len(head) == _HEAD:
            head = self._folder.content(index)  # the size follows a large thumbnail or colour profile
            size = header_size(head)
        if size is not None:
            self._check_pixels(index, size)
        end = next((end for magic, end in ((_JPEG, _JPEG_END), (_PNG_START, _PNG_END)) if head.startswith(magic)), b"")
        tail = head[-_TAIL:] if len(head) < _HEAD else self._folder.tail(index, _TAIL)
        return size, end in tail

    def _check_pixels(self, index: int, size: tuple[int, int]) -> None:
        limit = self._limits.max_pixels
        if size[0] * size[1] > limit:
            raise MediaError(
                f"{self._folder.where(index)}: claims {size[1]}x{size[0]}, more than {limit} pixels; raise "
                "JOSTLE_MAX_PIXELS if that is intended",
                fault="F99",
            )

    def _check_sizes(self, sizes: dict[tuple[int, int], list[int]]) -> None:
        if len(sizes) > 1:
            common, *others = sorted(sizes, key=lambda size: -len(sizes[size]))
            odd = sorted(index for size in others for index in sizes[size])
            raise MediaError(
                f"{printable_name(self._folder.path)}: the images of a video are of one size, and {len(odd)} are not "
                f"{common[1]}x{common[0]}: {self._list_examples(odd)}; make them one size, or take them out",
                fault="F119",
            )

    def _list_examples(self, indices: list[int]) -> str:
        names = ", ".join(printable_name(self._folder.series.names[index]) for index in indices[:_MAX_EXAMPLES])
        return names + (f" and {len(indices) - _MAX_EXAMPLES} more" if len(indices) > _MAX_EXAMPLES else "")

    def use_scan(self, scan: DecodeScan) -> None:
        """Use the result of an earlier scan of the same images."""
        self._good = [index for _, index in scan.entries]

    def pictures(self, start: int) -> Iterator[tuple[int, Frame]]:
        """Yield (frame number, RGB) from a frame on; read-ahead grows with sequential use."""
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
                frame, future = ahead.popleft()
                yield frame, future.result()
                depth = min(2 * depth, 2 * self._threads)
        finally:
            for _, future in ahead:
                future.cancel()

    def _picture(self, index: int) -> Frame:
        picture = self._decode(self._folder.content(index), index)
        where = self._folder.where(index)
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

    def _decode(self, data: bytes, index: int) -> Frame | None:
        size = claimed_size(data)
        if size is None:
            return None
        self._check_pixels(index, size)
        try:
            picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)
        except cv2.error:
            return None
        if picture is None:
            return None
        picture.flags.writeable = False
        return np.asarray(picture, np.uint8)

    def close(self) -> None:
        """Stop the threads that decode ahead."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
