"""Output of a stream of pictures to a pipe or a file, as y4m or as raw frames, for the next program."""

from __future__ import annotations

import os
import queue
import threading
from dataclasses import replace

from jostle.errors import MediaError
from jostle.io.video.raw_picture import LivePicture, PictureLayout, Samples, StreamFacts
from jostle.io.video.y4m import frame_header, y4m_header, y4m_tag

QUEUE = 2  # pictures that wait for a slow reader before others are dropped
DRAIN_S = 5.0  # for the last pictures, if their reader is slow
FALLBACK = "yuv444p"  # of pixels that y4m has no name for


class PictureOutput:
    """Writes pictures one after another.

    Args:
        handle: file descriptor; it is not closed.
        facts: of the stream.
        raw: write bare pictures, without headers, as they came.
        drop: leave pictures out when the reader is too slow, where otherwise writing waits for it.

    Attributes:
        layout: of what is written.
        dropped: pictures that were left out.
    """

    def __init__(self, handle: int, facts: StreamFacts, *, raw: bool, drop: bool) -> None:
        self._handle, self._facts, self._raw = handle, facts, raw
        self._begun = False
        self.layout = facts.layout
        if not raw and y4m_tag(facts.layout.pixel_format) is None:
            self.layout = PictureLayout(facts.layout.width, facts.layout.height, FALLBACK)
            self._facts = replace(facts, layout=self.layout)
        self.dropped = 0
        self._sender = _Sender(handle) if drop else None

    def prepare(self, picture: LivePicture) -> LivePicture:
        """Return a picture in the layout of the output.

        Raises:
            MediaError: F132 if the size or format changed, which neither y4m nor raw video can say.
        """
        if picture.layout == self.layout:
            return picture
        if (picture.layout.width, picture.layout.height) != (self.layout.width, self.layout.height):
            raise MediaError(
                f"the size of the stream changed from {self.layout.width}x{self.layout.height} to "
                f"{picture.layout.width}x{picture.layout.height}, which the output cannot say; start again, or watch "
                "without -o",
                fault="F132",
            )
        return LivePicture(picture.frame.reformat(format=self.layout.pixel_format), self.layout, picture.time)

    def write(self, picture: LivePicture, samples: Samples, kind: str | None) -> None:
        """Write samples in the place of a picture.

        Args:
            kind: what is wrong with them, for the header of the frame.

        Raises:
            BrokenPipeError: if the reader is gone.
        """
        parts: list[bytes | memoryview] = [] if self._raw else [frame_header(picture, kind)]
        if not self._begun and not self._raw:
            parts.insert(0, y4m_header(self._facts))
        parts.append(samples.data.cast("B"))
        if self._sender is None:
            write_all(self._handle, parts)
        elif not self._sender.offer(parts):
            self.dropped += 1
            return
        self._begun = True

    def close(self) -> None:
        """Wait for what a slow reader has not taken yet, but not for long."""
        if self._sender is not None:
            self._sender.close()


class _Sender:
    """Thread that writes, so that reading goes on while the reader of the output does not take any more."""

    def __init__(self, handle: int) -> None:
        self._queue: queue.Queue[list[bytes | memoryview] | None] = queue.Queue(QUEUE)
        self._handle = handle
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (parts := self._queue.get()) is not None:
            try:
                write_all(self._handle, parts)
            except OSError as error:
                self._error = error
                return

    def offer(self, parts: list[bytes | memoryview]) -> bool:
        if self._error is not None:
            raise self._error
        try:
            self._queue.put_nowait(parts)
        except queue.Full:
            return False
        return True

    def close(self) -> None:
        try:
            self._queue.put(None, timeout=DRAIN_S)
        except queue.Full:
            return
        self._thread.join(DRAIN_S)


def write_all(handle: int, parts: list[bytes | memoryview]) -> None:
    """Write every byte, however few a pipe takes at once."""
    for part in parts:
        view = memoryview(part)
        while view:
            view = view[os.write(handle, view) :]
