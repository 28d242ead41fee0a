"""Video for a browser, made from the recipe of a run: clean, under a cell, or a few seconds of any corruption."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from jostle.core.types.clip import Clip, Frames
from jostle.core.types.video import ClipSource, VideoSource
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.context import Mask
from jostle.corruptions.engine.placement import Timeline
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import chain
from jostle.errors import DataError, MediaError
from jostle.evaluation.inference.footage import Footage
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.tasks.actions import action_pairs
from jostle.io.video.decode import Reader
from jostle.io.video.encode import Writer, viewing_codec
from jostle.io.video.source import identity_of
from jostle.reporting.analysis.replay import corrupted_mask, order_for, spans_of

FORMAT = 2  # of what is rendered; a new one makes all of it again
BLOCK_BYTES, BLOCK_FRAMES = 16 * 2**20, 32
EXCERPT_S, EXCERPT_BYTES = 4.0, 256 * 2**20  # of a video in the gallery: so long, and never more pixels than that
LOOKING = 0.3  # what part of the work the first look at a file is
KEY_S = 1.0  # the most between key frames: a player that jumps decodes from the last one, twice over for two players
EVEN = 0.25  # of a frame: how far times may lie from an even rate that a player still hits every frame

Progress = Callable[[float], None]


class Cancelled(Exception):
    """The viewer is closing, or nobody waits any more."""


@dataclass(frozen=True)
class RenderedVideo:
    """Facts a player needs about a video."""

    frames: int  # how many there are
    rate: tuple[int, int]  # frames a second, as numerator and denominator
    times: tuple[float, ...] | None  # presentation times in seconds; None if they are evenly spaced
    end_s: float  # end of the last frame
    size: tuple[int, int]  # width and height as they are stored in the file: even, so that every browser plays it
    struck: tuple[tuple[float, float], ...] | None  # corrupted stretches in seconds, half-open; None for all of it
    names: tuple[str, ...] | None  # of the frames, where they are images of a folder
    original: bool  # whether browsers play the file of the data set as it is


@dataclass(frozen=True)
class Showing:
    """A video of a run in a cell."""

    record: RunRecord
    video: str
    cell: str
    path: Path  # of the source

    @property
    def key(self) -> str:
        """A name for the result: another source, seed, recipe or annotation gives another."""
        about = self.record.about
        done = [asdict(step) for one in about.content.cells if one.cell == self.cell for step in one.done]
        return _key(self.path, "cell", self.video, about.seed, about.truth, done, self._places())

    def _places(self) -> list[list[float]] | None:
        """Return the actions that a cell may corrupt."""
        return action_pairs(self.record.task.truth.spans, [self.video]).get(self.video)

    def render(self, out: Path, progress: Progress, check: Callable[[], None]) -> RenderedVideo:
        """Write the video, unless browsers play the source as it is.

        Raises:
            JostleError: if it cannot be made.
            Cancelled: by `check`, between two blocks.
        """
        order = order_for(self.record, self.video, self.cell)
        with _opened(self.path, order.fps, progress, check) as opened:
            footage = Footage(opened, order, keep_bytes=0)
            clean = self.cell == CLEAN
            source: VideoSource = footage.clean if clean else footage.under(order.cells[0])
            mask = (
                np.zeros(len(source), np.bool_)
                if clean
                else corrupted_mask(self.record, self.video, self.cell, opened.pts, opened.fps)
            )
            film = _film(source, mask, opened.end_s)
            film = replace(film, names=opened.names)
            if clean and _plays(opened):
                return replace(film, original=True)
            _write(source, out, film, progress, check, ([int(tick) for tick in opened.ticks], opened.time_base))
            return film


@dataclass(frozen=True)
class Excerpt:
    """A few seconds from the middle of a video under any corruption."""

    video: str
    spec: Spec | None  # None for the clean excerpt
    seed: int
    path: Path
    fps: Fraction | None = None

    @property
    def key(self) -> str:
        """A name for the result."""
        spec = self.spec
        done = None if spec is None else [str(spec), spec.entry.corruption, repr(spec.value), spec.placement]
        return _key(self.path, "excerpt", self.video, self.seed, done, str(self.fps))

    def render(self, out: Path, progress: Progress, check: Callable[[], None]) -> RenderedVideo:
        """Write the excerpt; raises as `Showing.render` does."""
        with _opened(self.path, self.fps, progress, check) as opened:
            clip = _middle(opened)
        source: VideoSource = ClipSource(clip)
        mask = np.zeros(len(clip), np.bool_)
        if self.spec is not None:
            timeline = Timeline.of(clip.pts, clip.fps, None, seed=self.seed, video_id=self.video)
            masks = masks_for([self.spec], None, timeline)
            source = chain(source, [self.spec], masks, seed=self.seed, video_id=self.video)
            mask = masks[0]
        film = _film(source, mask, float(clip.pts[-1]) + float(1 / clip.fps))
        _write(source, out, film, progress, check, None)
        return film


@dataclass(frozen=True)
class DamagedExcerpt:
    """A few seconds of a video around a run of frames, which a corruption damages."""

    video: str
    spec: Spec | None  # None for the clean excerpt
    first: int
    frames: int
    seed: int
    path: Path
    fps: Fraction | None = None

    @property
    def key(self) -> str:
        """A name for the result."""
        spec = self.spec
        done = None if spec is None else [str(spec), spec.entry.corruption, repr(spec.value)]
        return _key(self.path, "damaged", self.video, self.seed, done, self.first, self.frames, str(self.fps))

    def render(self, out: Path, progress: Progress, check: Callable[[], None]) -> RenderedVideo:
        """Write the excerpt; raises as `Showing.render` does."""
        with _opened(self.path, self.fps, progress, check) as opened:
            first, stop = min(self.first, len(opened) - 1), min(self.first + self.frames, len(opened))
            source: VideoSource = opened
            if self.spec is not None:  # in the whole video, whose frame numbers decide what is drawn
                timeline = Timeline.of(opened.pts, opened.fps, None, seed=self.seed, video_id=self.video)
                masks = masks_for([self.spec], f"frames:{first}-{stop}", timeline)
                source = chain(opened, [self.spec], masks, seed=self.seed, video_id=self.video)
            height, width = opened.size
            most = max(min(round(EXCERPT_S * float(opened.fps)), EXCERPT_BYTES // (height * width * 3)), stop - first)
            lo = max(min((first + stop - most) // 2, len(opened) - most), 0)
            hi = min(lo + most, len(opened))
            clip, rate = Clip.at_rate(source.block(lo, hi), opened.fps), opened.fps
        numbers = np.arange(lo, hi)
        mask = (numbers >= first) & (numbers < stop) if self.spec is not None else np.zeros(hi - lo, np.bool_)
        film = _film(ClipSource(clip), mask, float(clip.pts[-1]) + float(1 / rate))
        _write(ClipSource(clip), out, film, progress, check, None)
        return film


def _key(path: Path, *parts: Any) -> str:
    """A hash of what decides the pixels, and of the state of the source; raises DataError if the source is gone."""
    try:
        _, state = identity_of(path)
    except MediaError as error:
        raise DataError(
            f"{path}: the video is no longer there ({error}); bring it back, and load the page again"
        ) from None
    identity = [FORMAT, str(path), state.size, state.mtime_ns, *parts]
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]


@contextmanager
def _opened(path: Path, fps: Fraction | None, progress: Progress, check: Callable[[], None]) -> Iterator[Reader]:
    def report_progress(done: int, of: int) -> None:
        check()
        progress(LOOKING * min(done / max(of, 1), 1.0))

    with Reader(path, threads=1, fps=fps, progress=report_progress) as reader:
        yield reader


def _film(source: VideoSource, mask: Mask, end_s: float) -> RenderedVideo:
    height, width = source.size
    pts, fps = source.pts, source.fps
    even = float(np.abs(pts - np.arange(len(pts)) / float(fps)).max()) < EVEN / float(fps)
    return RenderedVideo(
        frames=len(source),
        rate=(fps.numerator, fps.denominator),
        times=None if even else tuple(pts.tolist()),
        end_s=end_s,
        size=(width + width % 2, height + height % 2),
        struck=None if bool(mask.all()) else tuple(spans_of(mask, pts, fps)),
        names=None,
        original=False,
    )


def _plays(reader: Reader) -> bool:
    """Whether every browser plays the file as it is, at the timestamps that jostle reads."""
    facts = reader.facts
    return (
        facts.codec == "h264"
        and facts.pixel_format == "yuv420p"
        and "mp4" in facts.container.split(",")
        and facts.rotation == 0
        and facts.sample_aspect == 1
        and reader.first_tick == 0
        and not reader.damage
    )


def _write(
    source: VideoSource,
    out: Path,
    film: RenderedVideo,
    progress: Progress,
    check: Callable[[], None],
    clock: tuple[list[int], Fraction] | None,
) -> None:
    ticks, base = clock or (list(range(len(source))), 1 / source.fps)
    width, height = film.size
    step = min(max(BLOCK_BYTES // (height * width * 3), 1), BLOCK_FRAMES)
    gop = max(round(KEY_S * source.fps), 1)
    ways: dict[str, Any] = {"codec": viewing_codec(), "gop": gop, "faststart": True}
    with Writer(out, size=(height, width), fps=source.fps, time_base=base, **ways) as writer:
        for lo in range(0, len(source), step):
            check()
            for number, frame in enumerate(_even(source.block(lo, min(lo + step, len(source))), width, height), lo):
                writer.write(frame, ticks[number])
            progress(LOOKING + (1 - LOOKING) * min((lo + step) / len(source), 1.0))


def _even(frames: Frames, width: int, height: int) -> Frames:
    """Pad frames to even sides by repeating the last row and column, as common H.264 requires."""
    down, across = height - frames.shape[1], width - frames.shape[2]
    return np.pad(frames, ((0, 0), (0, down), (0, across), (0, 0)), "edge") if down or across else frames


def _middle(opened: Reader) -> Clip:
    height, width = opened.size
    most = max(min(round(EXCERPT_S * float(opened.fps)), EXCERPT_BYTES // (height * width * 3)), 1)
    lo = max((len(opened) - most) // 2, 0)
    frames = opened.block(lo, min(lo + most, len(opened)))
    if not len(frames):
        raise MediaError("the video has no frames")
    return Clip.at_rate(frames, opened.fps)


QUALITY = 90


def still(path: Path, number: int) -> bytes:
    """A frame of a video; a number beyond the last gives the last. Raises MediaError if it cannot be read."""
    with Reader(path, threads=1) as reader:
        frame = reader.frame(min(number, len(reader) - 1))
    done, data = cv2.imencode(".jpg", np.ascontiguousarray(frame[..., ::-1]), [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    if not done:
        raise MediaError(f"{path.name}: frame {number} cannot be written as JPEG")
    return data.tobytes()
