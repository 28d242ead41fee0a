"""Frames of one video, clean or in any cell of a benchmark; decoded once where they fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from jostle.core.environment import cache_folder, codec_quota
from jostle.core.timing import measure_stage
from jostle.core.types.video import VideoSource
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.placement import Timeline
from jostle.corruptions.engine.stages import chain
from jostle.errors import MediaError
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.recipes.recipe import Cell
from jostle.features.caches import KEEP_BYTES, CachedFrames
from jostle.features.deferred_corruption import DeferredCorruption, DeferredCorruptionFactory
from jostle.io.video.decode import Reader
from jostle.io.video.packet_store import PacketStore, StreamCache
from jostle.io.video.source import fingerprint_of
from jostle.metrics.frame_sets import frame_number

# Every cell comes back to the video, and some to other frames than those before: ten seconds of 340 x 256, as in
# Kinetics, are then decoded once.
PICTURE_BYTES = 64 * 2**20


class Footage:
    """The frames of a video in every cell.

    Attributes:
        clean: the uncorrupted frames.
        end_s: end of the last frame, in seconds.
    """

    def __init__(self, reader: Reader, job: VideoJob, keep_bytes: int = KEEP_BYTES) -> None:
        self._reader, self._job = reader, job
        self.clean, self.end_s = CachedFrames(reader, keep_bytes), reader.end_s
        self._timeline = Timeline.of(reader.pts, reader.fps, job.segments, seed=job.seed, video_id=job.name)
        # A coded stream can only be corrupted instead of the decoded frames if every frame was readable.
        self._path: Path | None = None if reader.damage else reader.coded_path
        self._bit_rate = reader.facts.bit_rate
        self._streams: StreamCache | None = None
        if not reader.damage and (quota := codec_quota()):
            store = PacketStore(cache_folder() / "coded", quota)
            self._streams = StreamCache(store, partial(fingerprint_of, job.path))

    @property
    def decoded(self) -> int:
        """Number of frames decoded so far."""
        return self.clean.decoded

    def under(self, cell: Cell) -> VideoSource:
        """Return the frames as a cell corrupts them, computed on demand."""
        specs = cell.parsed
        return chain(
            self.clean,
            specs,
            masks_for(specs, cell.placement, self._timeline),
            seed=self._job.seed,
            video_id=self._job.name,
            bit_rate=self._bit_rate,
            path=self._path,
            streams=self._streams,
        )

    def deferred(self, cell: Cell) -> DeferredCorruptionFactory:
        """Describe what a cell of one corruption does to clips, for corruption on the model's device."""
        (mask,) = masks_for(cell.parsed, cell.placement, self._timeline)
        return partial(DeferredCorruption.on, cell.specs[0], self.clean, mask, self._job.seed, self._job.name)

    def number_of(self, frame: str) -> int:
        """Return the index of a frame `<video>/<name>`: by file name in a folder of images, else by number."""
        if self._reader.names is not None:
            return self._reader.number_of(frame.rpartition("/")[2])
        number = frame_number(frame)[1]
        if number >= len(self.clean):
            raise MediaError(f"{self._job.path}: there is no frame {number}, the last is {len(self.clean) - 1}")
        return number


@contextmanager
def open_footage(job: VideoJob) -> Iterator[Footage]:
    """Open the footage of a job; a file that changes meanwhile raises an error at the end."""
    with open_video(job) as reader:
        yield Footage(reader, job)


@contextmanager
def open_video(job: VideoJob) -> Iterator[Reader]:
    """Open the video of a job for decoding; opening includes the first pass over the file."""
    with measure_stage("decoding"):
        reader = Reader(job.path, threads=1, fps=job.fps, picture_bytes=PICTURE_BYTES)
    with reader:
        yield reader
