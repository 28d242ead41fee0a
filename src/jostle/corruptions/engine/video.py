"""Corruption of video files and image folders, a few frames in memory at a time."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from jostle.core.results import Result
from jostle.core.types.clip import Frames
from jostle.core.types.segments import Segments
from jostle.core.types.video import VideoSource
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.placement import Placement, Timeline
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import chain
from jostle.io.video.decode import Reader
from jostle.io.video.encode import Writer
from jostle.io.video.timestamps import IndexMismatch
from jostle.io.video.video_source import OnMissing

# Block size: small enough that a few blocks fit in memory and that interrupts are handled soon.
BLOCK_BYTES, BLOCK_FRAMES = 16 * 2**20, 32
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class CorruptedVideo(Result):
    """Result of corrupting one video."""

    json_keys = ("out", "frames", "damaged", "audio", "damage", "warnings")

    path: Path
    frames: int  # number of frames written
    damaged: int  # number of corrupted frames
    audio: bool  # whether the audio was copied
    damage: tuple[tuple[float, float], ...]  # spans of the input, in seconds, that were damaged already
    warnings: tuple[str, ...]  # warnings for the user

    @property
    def out(self) -> Path:
        """The file or folder that was written."""
        return self.path

    def written(self) -> tuple[Path, ...]:
        """Return the path that was written."""
        return (self.path,)

    def notes(self) -> tuple[str, ...]:
        """Return warnings, and how many frames were corrupted."""
        return (
            *self.warnings,
            f"{self.damaged} of {self.frames} frames corrupted{'' if self.audio else ', no sound'}",
        )


def corrupt_video(
    source: str | Path,
    specs: Sequence[Spec],
    out: str | Path,
    *,
    seed: int = 0,
    video_id: str = "",
    placement: str | Placement | None = None,
    segments: Segments | None = None,
    lossless: bool = False,
    jobs: int = 1,
    strict: bool = False,
    on_missing: OnMissing = "drop",
    fps: Fraction | None = None,
    progress: Progress | None = None,
) -> CorruptedVideo:
    """Write the corrupted video; the output appears when it is complete, or not at all.

    Progress is reported for the initial scan of a file, if it needs one, and for the frames that are written. Audio is
    copied unless a corruption changes the order or pace of time.

    Args:
        source: a video file, or a folder of images.
        fps: frame rate of images, if nothing else states it.
    """

    def attempt(*, once: bool) -> CorruptedVideo:
        opened = Reader(source, strict=strict, on_missing=on_missing, fps=fps, once=once, progress=progress)
        with opened as reader, ThreadPoolExecutor(max(jobs, 1)) as pool:
            timeline = Timeline.of(reader.pts, reader.fps, segments, seed=seed, video_id=video_id)
            masks = masks_for(specs, placement, timeline)
            # A stream can only be damaged in place of its file if every frame of it was read.
            coded = None if reader.damage else reader.coded_path
            corrupted = chain(
                reader,
                specs,
                masks,
                seed=seed,
                video_id=video_id,
                bit_rate=reader.facts.bit_rate,
                path=coded,
                pool=pool if jobs > 1 else None,
            )
            active = [(spec, mask) for spec, mask in zip(specs, masks, strict=True) if spec.severity]
            keeps_time = all(spec.corruption.level != "time" for spec, _ in active)
            writer = Writer(
                out,
                size=reader.size,
                fps=reader.fps,
                time_base=reader.time_base,
                codec="ffv1" if lossless and Path(out).suffix else None,
                names=output_image_names(reader, lossless),
                faststart=True,
                audio_from=reader.coded_path if keeps_time else None,
            )
            with writer:
                pump(corrupted, writer, [int(tick) for tick in reader.ticks], progress)
                reader.check_unchanged()
            damaged = int(np.logical_or.reduce([mask for _, mask in active]).sum()) if active else 0
            return CorruptedVideo(
                Path(out),
                len(reader),
                damaged,
                writer.has_sound,
                tuple(reader.damage),
                (*reader.warnings, *writer.warnings),
            )

    # Frames are read in order, so a long file need not be scanned first if its index is reliable. If the index proves
    # wrong on the way, nothing has been published yet, and everything is done again. Corruptions that reorder frames or
    # read the file themselves need the scan.
    if all(spec.corruption.level in ("frame", "clip") for spec in specs if spec.severity):
        with contextlib.suppress(IndexMismatch):
            return attempt(once=True)
    return attempt(once=False)


def output_image_names(reader: Reader, lossless: bool) -> list[str] | None:
    """Return the file names of output images: those of the input images, or None to number them."""
    names = reader.names
    if names is None or len(set(names)) < len(names):  # a repeated frame replaces a missing one
        return None
    jpeg_suffixes = () if lossless else (".jpg", ".jpeg")
    return [
        name if Path(name).suffix.lower() in jpeg_suffixes else str(Path(name).with_suffix(".png")) for name in names
    ]


def pump(source: VideoSource, writer: Writer, ticks: list[int], progress: Progress | None) -> None:
    """Produce frames on one thread while the encoder consumes them on another."""
    done = 0
    for block in _prefetch(_blocks(source)):
        for frame in block:
            writer.write(frame, ticks[done])
            done += 1
        if progress:
            progress(done, len(ticks))


def _blocks(source: VideoSource) -> Iterator[Frames]:
    height, width = source.size
    step = min(max(BLOCK_BYTES // (height * width * 3), 1), BLOCK_FRAMES)
    for lo in range(0, len(source), step):
        yield source.block(lo, min(lo + step, len(source)))


def _prefetch(blocks: Iterator[Frames]) -> Iterator[Frames]:
    """Yield the blocks, each produced while the one before is in use."""
    ready: queue.Queue[Any] = queue.Queue(maxsize=1)
    stop = threading.Event()

    def put(item: Any) -> bool:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def make() -> None:
        try:
            for block in blocks:
                if not put(block):
                    return
            put(None)
        except BaseException as error:
            put(error)

    worker = threading.Thread(target=make, daemon=True)
    worker.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
        worker.join()
