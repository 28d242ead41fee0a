"""Anonymous shared memory, which is freed with the last process that uses it."""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
from collections.abc import Sequence

from jostle.errors import ResourceError

MIN_BYTES = 2**20


class Segment:
    """A segment of shared memory.

    Attributes:
        size: in bytes.
        handle: file descriptor, to be sent to the other process.

    Raises:
        ResourceError: if no memory is left. It is allocated at once, so that a later write cannot kill the process.
    """

    def __init__(self, size: int) -> None:
        self.size = _round_up(size)
        try:
            self.handle = _create_anonymous_file()
            try:
                os.posix_fallocate(self.handle, 0, self.size)
                self._memory = mmap.mmap(self.handle, self.size)
            except BaseException:
                os.close(self.handle)
                raise
        except (OSError, MemoryError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ResourceError(
                f"no shared memory left for {self.size / 2**20:.0f} MiB of frames ({reason}); use fewer jobs",
                fault="F63",
            ) from None

    def write(self, parts: Sequence[memoryview]) -> list[tuple[int, int]]:
        """Copy buffers into the segment; return the offset and length of each."""
        spans, end = [], 0
        for part in parts:
            self._memory[end : end + part.nbytes] = part
            spans.append((end, part.nbytes))
            end += _align(part.nbytes)
        return spans

    def read(self, size: int) -> bytes:
        """Return the first bytes of the segment."""
        return self._memory[:size]

    def close(self) -> None:
        """Unmap the segment in this process."""
        with contextlib.suppress(BufferError):
            self._memory.close()
        os.close(self.handle)


def packed_size(parts: Sequence[memoryview]) -> int:
    """Return the number of bytes that buffers take up in a segment."""
    return sum(_align(part.nbytes) for part in parts)


def _align(size: int) -> int:
    return -(-size // 64) * 64


def _round_up(size: int) -> int:
    """Round a size up to one of few values, so that segments can be reused for similar clips."""
    step = max(MIN_BYTES, 1 << max(size.bit_length() - 3, 0))
    return -(-size // step) * step


def _create_anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("jostle")
    with tempfile.TemporaryFile() as file:  # unlinked at once
        return os.dup(file.fileno())
