"""Cache of decoded pictures, and the position up to which a video is decoded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from jostle.errors import MediaError
from jostle.io.video.source import FrameSource
from jostle.io.video.validation import printable_name

_CACHE_BYTES = 32 * 2**20  # of stored pictures: some seconds of ordinary video; the decoder holds as much again


class PictureCache:
    """Decoded pictures of a source by number, the last ones used kept.

    Args:
        source: decoder, which stays open.
        max_bytes: size of the cache; by default some seconds of ordinary video.

    Attributes:
        max_bytes: the same.
    """

    def __init__(self, source: FrameSource, max_bytes: int | None) -> None:
        self._source = source
        self.max_bytes = _CACHE_BYTES if max_bytes is None else max_bytes
        self._pictures: OrderedDict[int, Any] = OrderedDict()
        self._bytes = 0
        self._stream: Iterator[tuple[int, Any]] | None = None
        self._next = 0

    def picture(self, number: int) -> Any:
        """Return a picture, decoded if it is not at hand."""
        if number in self._pictures:
            self._pictures.move_to_end(number)
            return self._pictures[number]
        # Continue from the current position unless a keyframe further on is nearer.
        if self._stream is None or not self._source.seek_point(number) <= self._next <= number:
            self._stream = self._source.pictures(number)
        for index, picture in self._stream:
            self._next = index + 1
            self._remember(index, picture)
            if index == number:
                return picture
        raise MediaError(f"{printable_name(self._source.facts.path)}: frame {number} no longer decodes", fault="F19")

    def keep_early(self, number: int, picture: Any) -> None:
        """Keep a picture of a scan: the beginning, because it is read first; later pictures do not evict it."""
        if number == 0:
            self._pictures.clear()
            self._bytes = 0
        if self._bytes + self._source.weight(picture) <= self.max_bytes:
            self._remember(number, picture)

    def _remember(self, number: int, picture: Any) -> None:
        if number not in self._pictures:
            self._bytes += self._source.weight(picture)
        self._pictures[number] = picture
        self._pictures.move_to_end(number)
        max_bytes = self._source.cache_bytes or self.max_bytes
        while self._bytes > max_bytes and len(self._pictures) > 1:
            _, old = self._pictures.popitem(last=False)
            self._bytes -= self._source.weight(old)

    def clear(self) -> None:
        """Drop all pictures, and the position."""
        self._stream = None
        self._pictures.clear()
        self._bytes = 0
