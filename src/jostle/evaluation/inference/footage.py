"""One video as a benchmark shows it: decoded once where it fits into memory, clean or as any cell has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from jostle.core.cache import cache_folder, codec_quota
from jostle.core.timing import spent_on
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.placement import Timeline
from jostle.corruptions.engine.stages import Source, chain
from jostle.errors import MediaError
from jostle.evaluation.inference.jobs import Order
from jostle.evaluation.recipes.recipe import Cell
from jostle.features.deferred_corruption import Strike, Striking
from jostle.features.frames import KEEP_BYTES, KeptFrames
from jostle.io.video.decode import Reader
from jostle.io.video.packet_store import KeptStreams, PacketStore
from jostle.io.video.source import fingerprint_of
from jostle.metrics.frame_sets import frame_number

# Every cell comes back to the video, and some to other frames than those before: ten seconds of 340 x 256, as in
# Kinetics, are then decoded once.
PICTURE_BYTES = 64 * 2**20


class Footage:
    """The frames of a video in every cell.

    Attributes:
        clean: its frames as they are.
        end_s: when the last one stops being shown.
    """

    def __init__(self, opened: Reader, order: Order, keep_bytes: int = KEEP_BYTES) -> None:
        self._opened, self._order = opened, order
        self.clean, self.end_s = KeptFrames(opened, keep_bytes), opened.end_s
        self._timeline = Timeline.of(opened.pts, opened.fps, order.segments, seed=order.seed, video_id=order.name)
        # A stream can only be damaged in place of its file if every frame of it was read.
        self._path: Path | None = None if opened.damage else opened.coded_path
        self._bit_rate = opened.facts.bit_rate
        self._streams: KeptStreams | None = None
        if not opened.damage and (quota := codec_quota()):
            store = PacketStore(cache_folder() / "coded", quota)
            self._streams = KeptStreams(store, partial(fingerprint_of, order.path))

    @property
    def decoded(self) -> int:
        """Frames taken from the file so far."""
        return self.clean.decoded

    def under(self, cell: Cell) -> Source:
        """The frames in a cell; only those that are asked for are made."""
        specs = cell.parsed
        return chain(
            self.clean,
            specs,
            masks_for(specs, cell.placement, self._timeline),
            seed=self._order.seed,
            video_id=self._order.name,
            bit_rate=self._bit_rate,
            path=self._path,
            streams=self._streams,
        )

    def striking(self, cell: Cell) -> Striking:
        """What a cell of one corruption does to clips of this video, for where it is done elsewhere."""
        (mask,) = masks_for(cell.parsed, cell.placement, self._timeline)
        return partial(Strike.on, cell.specs[0], self.clean, mask, self._order.seed, self._order.name)

    def number_of(self, frame: str) -> int:
        """The place of a frame `<video>/<name>`: in a folder of images by its file, in a video by its number."""
        if self._opened.names is not None:
            return self._opened.number_of(frame.rpartition("/")[2])
        number = frame_number(frame)[1]
        if number >= len(self.clean):
            raise MediaError(f"{self._order.path}: there is no frame {number}, the last is {len(self.clean) - 1}")
        return number


@contextmanager
def footage_of(order: Order) -> Iterator[Footage]:
    """The video of an order, open; a file that changes meanwhile is refused at the end."""
    with opened(order) as reader:
        yield Footage(reader, order)


@contextmanager
def opened(order: Order) -> Iterator[Reader]:
    """The video of an order as it is decoded; its first pass is in the opening."""
    with spent_on("decoding"):
        reader = Reader(order.path, threads=1, fps=order.fps, picture_bytes=PICTURE_BYTES)
    with reader:
        yield reader
