"""Writing to a pipe whose reader may be slow or gone, by a thread, so that a signal never waits for it."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Iterable

Part = bytes | memoryview
POLL_S = 0.1  # between two looks at whether the reader is gone


class PipeWriter:
    """Thread that writes blocks of bytes, each of them whole or not at all unless the writer is left behind.

    A write in the main thread would be cut short by a signal, and the rest of the block be lost.

    Args:
        handle: file descriptor; a duplicate is written to, so that the caller may close it at any time.
        waiting: blocks that may wait for a slow reader.
    """

    def __init__(self, handle: int, waiting: int) -> None:
        self._queue: queue.Queue[list[Part] | None] = queue.Queue(waiting)
        self._handle = os.dup(handle)
        self._error: OSError | None = None
        self._deadline: float | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def limit(self, seconds: float) -> None:
        """Wait for the reader no longer than this, counted from the first call; what it does not take is left out."""
        if self._deadline is None:
            self._deadline = time.monotonic() + seconds

    def write(self, parts: Iterable[Part]) -> None:
        """Write a block once there is room for it.

        Raises:
            BrokenPipeError: if the reader is gone.
        """
        self._put(list(parts))

    def offer(self, parts: Iterable[Part]) -> bool:
        """Write a block if there is room for it now; return whether there was.

        Raises:
            BrokenPipeError: if the reader is gone.
        """
        self._check()
        try:
            self._queue.put_nowait(list(parts))
        except queue.Full:
            return False
        return True

    def close(self) -> None:
        """Wait until everything is written.

        Raises:
            BrokenPipeError: if the reader is gone.
        """
        self._closed = not self._put(None)  # then blocks are left, and the thread ends at the next one
        self._thread.join(self._left())
        self._check()

    def _put(self, parts: list[Part] | None) -> bool:
        """Add a block, and return whether there was room for it in time."""
        self._check()
        while self._thread.is_alive():
            left = self._left()
            with contextlib.suppress(queue.Full):
                self._queue.put(parts, timeout=POLL_S if left is None else min(left, POLL_S))
                return True
            if left == 0:
                return False
        self._check()
        return True

    def _left(self) -> float | None:
        return None if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            while not self._closed and (parts := self._queue.get()) is not None:
                for part in parts:
                    view = memoryview(part)
                    while view:  # a pipe takes as much as it has room for
                        view = view[os.write(self._handle, view) :]
        except OSError as error:
            self._error = error
        finally:
            os.close(self._handle)
