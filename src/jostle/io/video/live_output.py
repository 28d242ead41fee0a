"""Output of a stream of pictures to a pipe or a file, as y4m or as raw frames, for the next program."""

from __future__ import annotations

from dataclasses import replace

from jostle.errors import MediaError
from jostle.io.files.pipe_writer import Part, PipeWriter
from jostle.io.video.raw_picture import LivePicture, PictureLayout, Samples, StreamFacts
from jostle.io.video.y4m import frame_header, y4m_header, y4m_tag

QUEUE = 2  # pictures that wait for a slow reader before others wait or are dropped
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
        self._facts, self._raw = facts, raw
        self._begun = False
        self.layout = facts.layout
        if not raw and y4m_tag(facts.layout.pixel_format) is None:
            self.layout = PictureLayout(facts.layout.width, facts.layout.height, FALLBACK)
            self._facts = replace(facts, layout=self.layout)
        self.dropped = 0
        self._drop, self._writer = drop, PipeWriter(handle, QUEUE)

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
        parts: list[Part] = [] if self._raw else [frame_header(picture, kind)]
        if not self._begun and not self._raw:
            parts.insert(0, y4m_header(self._facts))
        parts.append(samples.data.cast("B"))
        if not self._drop:
            self._writer.write(parts)
        elif not self._writer.offer(parts):
            self.dropped += 1
            return
        self._begun = True

    def limit(self, seconds: float) -> None:
        """Wait for the reader no longer than this from now on."""
        self._writer.limit(seconds)

    def close(self) -> None:
        """Wait until the reader has taken everything; one that drops pictures does not wait for long.

        Raises:
            BrokenPipeError: if the reader is gone.
        """
        if self._drop:
            self._writer.limit(DRAIN_S)
        self._writer.close()
