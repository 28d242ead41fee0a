"""Coded video as bytes, wherever it lies, and a part of a file as a file of its own."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from jostle.core.types.video_location import location_of
from jostle.io.video.validation import Identity


@dataclass(frozen=True)
class CodedFile:
    """One state of a coded video.

    Attributes:
        name: absolute path, or address.
        identity: of its state, known without its content.
        open: opens its bytes for reading, at the beginning.
        local: whether FFmpeg can open the name itself.
    """

    name: str
    identity: Identity
    open: Callable[[], BinaryIO]
    local: bool = False

    @property
    def path(self) -> Path:
        """The name as a path, which may be an address."""
        return location_of(self.name)


class FileSlice(io.RawIOBase):
    """Part of a file as a file of its own, with its own position.

    Args:
        handle: descriptor of the open file, which is closed with the part.
        start: first byte of the part.
        size: bytes of the part.
    """

    def __init__(self, handle: int, start: int, size: int) -> None:
        self._handle, self._start, self._size, self._position = handle, start, size, 0

    def copy(self) -> FileSlice:
        """Return the same part, at its beginning, of the file opened once more."""
        return FileSlice(os.dup(self._handle), self._start, self._size)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(origin + offset, 0)
        return self._position

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        wanted = memoryview(buffer)[: max(self._size - self._position, 0)]
        count = os.preadv(self._handle, [wanted], self._start + self._position) if len(wanted) else 0
        self._position += count
        return count

    def close(self) -> None:
        if not self.closed:
            os.close(self._handle)
        super().close()
