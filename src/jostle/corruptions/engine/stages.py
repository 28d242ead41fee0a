"""Pull pipeline of corruptions: each stage serves frames by index and reads what it needs from the one below.

Because stages are pulled and never pushed, chunk size, order and worker count cannot affect the pixels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Frame, Frames
from jostle.core.types.video import ClipSource, VideoSource
from jostle.corruptions.engine.context import ClipContext, Mask
from jostle.corruptions.engine.corruption import Corruption
from jostle.corruptions.engine.spec import Spec
from jostle.errors import BadValue

if TYPE_CHECKING:
    from jostle.io.video.packet_store import StreamCache

Indices = npt.NDArray[np.int64]

MADE = -1  # origin of a frame whose pixels a corruption made
GATHER_GAP = 8  # largest gap of unneeded frames to read along
CODEC_BLOCK = 16  # frames that a codec stage reads at once; affects speed only


@dataclass(frozen=True)
class Span:
    """Frames that a clip-level corruption must return, and the offset of the frames it receives."""

    scene: ClipContext
    first: int  # index in the clip of the first frame it receives
    # The frames to return, half-open, as indices in the clip
    lo: int
    hi: int


class CorruptionStage(ABC):
    """One corruption over the frames of a source; itself a source."""

    def __init__(
        self,
        below: VideoSource,
        corruption: Corruption,
        spec: Spec,
        scene: ClipContext,
        pool: Executor | None = None,
    ) -> None:
        self.size, self.pts, self.fps = scene.size, scene.pts, scene.fps
        self._below, self._scene, self._pool = below, scene, pool
        self._corruption, self._value, self._options = corruption, spec.value, spec.entry.options
        self.mask: Mask = scene.mask  # frames that this stage corrupts
        self._prepare()

    def _prepare(self) -> None:  # noqa: B027
        """Compute what the stage needs besides; most need nothing."""

    def __len__(self) -> int:
        return len(self.pts)

    def origins(self) -> Indices:
        """Return for each frame the index of the clean frame that it equals, or `MADE`."""
        return np.where(self.mask, MADE, origins(self._below))

    @abstractmethod
    def block(self, lo: int, hi: int) -> Frames:
        """Return frames lo to hi - 1, corrupted where the mask says so."""

    def _call(self, frames: Any, where: Any) -> Any:
        return self._corruption.function(frames, self._value, where, **self._options)


class LocalStage(CorruptionStage):
    """A stage that corrupts blocks independently, and passes on those without a masked frame."""

    def block(self, lo: int, hi: int) -> Frames:
        return self._corrupt_block(lo, hi) if np.count_nonzero(self.mask[lo:hi]) else self._below.block(lo, hi)

    @abstractmethod
    def _corrupt_block(self, lo: int, hi: int) -> Frames:
        """Return a block with at least one corrupted frame."""


class FrameStage(LocalStage):
    """Stage of corruptions that process frames independently."""

    def _corrupt_block(self, lo: int, hi: int) -> Frames:
        clean = self._below.block(lo, hi).view()
        clean.setflags(write=False)  # a kernel would be compiled once more for frames that may be written to
        out = np.empty(clean.shape, np.uint8)
        mask, call, at = self.mask[lo:hi].tolist(), self._call, self._scene.at

        def corrupt(i: int) -> None:
            frame, place = clean[i], out[i]
            done = call(frame, at(lo + i, place)) if mask[i] else frame
            if done is not place:
                place[:] = done

        if self._pool is None:
            for i in range(hi - lo):
                corrupt(i)
        else:
            list(self._pool.map(corrupt, range(hi - lo)))
        return out


class ClipStage(LocalStage):
    """Stage of corruptions that read neighbouring frames."""

    def _corrupt_block(self, lo: int, hi: int) -> Frames:
        assert self._corruption.reach is not None
        affected = np.flatnonzero(self.mask[lo:hi]) + lo
        before, after = self._corruption.reach(self._value)
        first = max(min(lo, int(affected[0]) - before), 0)
        stop = min(max(hi, int(affected[-1]) + 1 + after), len(self))
        window = self._below.block(first, stop)
        whole = len(affected) == hi - lo
        out = np.empty((hi - lo, *window.shape[1:]), np.uint8) if whole else np.array(window[lo - first : hi - first])
        for a, b in stretches(affected):
            done = self._call(window, Span(self._scene, first, a, b))
            if whole and done.shape == out.shape and done.dtype == out.dtype:
                return done  # type: ignore[no-any-return]
            out[a - lo : b - lo] = done
        return out


class TimeStage(LocalStage):
    """Stage of corruptions that reorder frames: an index map over each run of masked frames."""

    def _prepare(self) -> None:
        scene = self._scene
        runs = scene.runs()
        if runs == [(0, len(scene.pts))]:
            self.indices = self._map(0, len(scene.pts))
            return
        self.indices = np.arange(len(scene.pts), dtype=np.int64)
        for a, b in runs:
            self.indices[a:b] = a + self._map(a, b)

    def _map(self, a: int, b: int) -> Indices:
        """Return the index map of a run, relative to its start."""
        rng = self._scene.rng(a) if self._corruption.draws else None
        return check_indices(self._call(self.pts[a:b], rng), self._corruption, b - a)

    def origins(self) -> Indices:
        return origins(self._below)[self.indices]

    def _corrupt_block(self, lo: int, hi: int) -> Frames:
        return gather(self._below, self.indices[lo:hi])


class CodecStage(CorruptionStage):
    """Stage of corruptions that encode and decode the whole clip; masked frames are taken from the result.

    A codec is stateful, so frames come back in order only. Seeking backwards restarts it, which costs time and changes
    nothing. Clean frames are kept until their decoded versions arrive, so that nothing below is read twice.
    """

    def _prepare(self) -> None:
        scene = self._scene
        self._end = int(np.flatnonzero(scene.mask)[-1]) + 1 if scene.mask.any() else 0
        self._stream: Iterator[Frame] | None = None
        self._next = 0
        self._pending: dict[int, Frame] = {}

    def block(self, lo: int, hi: int) -> Frames:
        if lo >= self._end:
            return self._below.block(lo, hi)
        if self._stream is None or self._next > lo:
            self._stream, self._next, self._pending = iter(self._call(self._frames(), self._scene)), 0, {}
        out = np.empty((hi - lo, *self.size, 3), np.uint8)
        while self._next < hi:
            t, coded = self._next, next(self._stream)
            clean = self._pending.pop(t, None)
            if t >= lo:
                out[t - lo] = coded if self.mask[t] else self._clean(t, clean)
            self._next += 1
        return out

    def _clean(self, t: int, frame: Frame | None) -> Frame:
        # A corruption that decodes the file's own stream reads no frames from below.
        return self._below.block(t, t + 1)[0] if frame is None else frame

    def _frames(self) -> Iterator[Frame]:
        for lo in range(0, len(self), CODEC_BLOCK):
            for t, frame in enumerate(self._below.block(lo, min(lo + CODEC_BLOCK, len(self))), lo):
                if not self.mask[t]:
                    self._pending[t] = frame
                yield frame


_STAGES: dict[str, type[CorruptionStage]] = {
    "frame": FrameStage,
    "clip": ClipStage,
    "time": TimeStage,
    "codec": CodecStage,
}


def chain(
    below: VideoSource,
    specs: Sequence[Spec],
    masks: Sequence[Mask],
    *,
    seed: int,
    video_id: str,
    bit_rate: int | None = None,
    path: Path | None = None,
    streams: StreamCache | None = None,
    pool: Executor | None = None,
) -> VideoSource:
    """Build the source that applies `specs` in order, each on the frames of its mask.

    Args:
        bit_rate: of the file the frames come from, if they come from one.
        path: that file, passed to the first corruption only: later ones process frames that it does not hold.
        streams: cache of encoded streams of that file, passed to the first corruption only.
        pool: threads that process the frames of a block.
    """
    uses: dict[str, int] = {}
    for spec, mask in zip(specs, masks, strict=True):
        if spec.severity == 0:
            continue
        corruption = spec.corruption
        name = corruption.name
        ordinal = uses[name] = uses.get(name, 0) + 1
        scene = ClipContext(
            name if ordinal == 1 else f"{name}#{ordinal}",
            below.size,
            below.pts,
            below.fps,
            mask,
            seed=seed,
            video_id=video_id,
            bit_rate=bit_rate,
            path=path,
            streams=streams,
        )
        below, path, streams = _STAGES[corruption.level](below, corruption, spec, scene, pool), None, None
    return below


def origins(source: VideoSource) -> Indices:
    """Return for each frame of a chain the index of the clean frame that it equals, byte for byte, or `MADE`.

    No pixels are needed for this, so that results for clean frames can be reused.
    """
    return source.origins() if isinstance(source, CorruptionStage) else np.arange(len(source), dtype=np.int64)


def gather(source: VideoSource, indices: Indices) -> Frames:
    """Return frames of a source in any order, read in as few blocks as their order allows."""
    if isinstance(source, ClipSource):
        return source.take(indices)
    out = np.empty((len(indices), *source.size, 3), np.uint8)
    for a, b in stretches(np.unique(indices), gap=GATHER_GAP):
        rows = (indices >= a) & (indices < b)
        block = source.block(a, b)
        if rows.all():
            np.take(block, indices - a, axis=0, out=out, mode="clip")
        else:
            out[rows] = block[indices[rows] - a]
    return out


def check_indices(indices: Any, corruption: Corruption, count: int) -> Indices:
    """Return the indices of an index map, after checking that there is one for each frame."""
    order = np.asarray(indices, np.int64)
    if order.shape != (count,):
        raise BadValue(
            f"corruption {corruption.name} returned {order.shape} indices for {count} frames; return one for each"
        )
    return order


def stretches(indices: Indices, gap: int = 1) -> list[tuple[int, int]]:
    """Group sorted indices into half-open runs, in which no step is larger than `gap`."""
    breaks = np.flatnonzero(np.diff(indices) > gap) + 1
    return [(int(part[0]), int(part[-1]) + 1) for part in np.split(indices, breaks) if len(part)]
