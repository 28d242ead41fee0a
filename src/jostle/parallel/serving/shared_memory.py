"""Memory that two processes share: it has no name, so it is gone with the last of them, however they end."""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
from collections.abc import Sequence

from jostle.errors import ResourceError

LEAST_BYTES = 2**20


class Segment:
    """A piece of memory that another process can be handed.

    Attributes:
        size: in bytes.
        handle: what the other process is to be sent.

    Raises:
        ResourceError: if there is none left; it is taken now, so that nobody dies of it later.
    """

    def __init__(self, size: int) -> None:
        self.size = _rounded(size)
        try:
            self.handle = _nameless()
            try:
                os.posix_fallocate(self.handle, 0, self.size)
                self._memory = mmap.mmap(self.handle, self.size)
            except BaseException:
                os.close(self.handle)
                raise
        except (OSError, MemoryError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise ResourceError(
                f"no shared memory left for {self.size / 2**20:.0f} MiB of frames ({why}); use fewer jobs", fault="F63"
            ) from None

    def filled(self, parts: Sequence[memoryview]) -> list[tuple[int, int]]:
        """Copy parts into it; where each lies and how long it is."""
        places, end = [], 0
        for part in parts:
            self._memory[end : end + part.nbytes] = part
            places.append((end, part.nbytes))
            end += _aligned(part.nbytes)
        return places

    def close(self) -> None:
        """Give this process's share of it back."""
        with contextlib.suppress(BufferError):
            self._memory.close()
        os.close(self.handle)


def room_for(parts: Sequence[memoryview]) -> int:
    """Bytes that parts take up in a segment."""
    return sum(_aligned(part.nbytes) for part in parts)


def _aligned(size: int) -> int:
    return -(-size // 64) * 64


def _rounded(size: int) -> int:
    """A little more, so that few sizes come up: clips of like videos then fit into what is there."""
    step = max(LEAST_BYTES, 1 << max(size.bit_length() - 3, 0))
    return -(-size // step) * step


def _nameless() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("jostle")
    with tempfile.TemporaryFile() as file:  # has no name from the beginning, or from a moment after
        return os.dup(file.fileno())
