"""Corruption by pulling: each stage gives frames by index and asks the stage below for what it needs.

Because a stage is asked for a block and never told one, chunk size, order and worker count cannot reach the pixels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Clip, Frame, Frames, Times
from jostle.corruptions.engine.context import Mask, Scene
from jostle.corruptions.engine.corruption import Corruption
from jostle.corruptions.engine.spec import Spec
from jostle.errors import BadValue

if TYPE_CHECKING:
    from jostle.io.video.codec import Streams

Indices = npt.NDArray[np.int64]

MADE = -1  # in place of a frame's number: its pixels were made by a corruption
GATHER_GAP = 8  # frames it costs less to fetch along than to go without
CODEC_BLOCK = 16  # frames drawn at once from below by a codec stage; only speed depends on it


class Source(Protocol):
    """Frames that can be asked for by index."""

    @property
    def size(self) -> tuple[int, int]: ...
    @property
    def pts(self) -> Times: ...
    @property
    def fps(self) -> Fraction: ...
    def __len__(self) -> int: ...
    def block(self, lo: int, hi: int) -> Frames:
        """Frames lo..hi-1; the caller does not write into them."""
        ...


class ClipSource:
    """A clip in memory."""

    def __init__(self, clip: Clip) -> None:
        self._clip = clip
        self.size, self.pts, self.fps = clip.size, clip.pts, clip.fps

    def __len__(self) -> int:
        return len(self._clip)

    def block(self, lo: int, hi: int) -> Frames:
        return self._clip.frames[lo:hi]

    def take(self, indices: Indices) -> Frames:
        """Frames in any order."""
        return self._clip.frames.take(indices, axis=0, mode="clip")


@dataclass(frozen=True)
class Span:
    """Which frames a clip-level corruption is asked for, and where the frames it was handed begin.

    Attributes:
        first: index in the clip of the first frame handed over.
        lo, hi: the wanted frames, half-open, as indices in the clip.
    """

    scene: Scene
    first: int
    lo: int
    hi: int


class Stage(ABC):
    """One corruption over the frames of a source; itself a source."""

    def __init__(
        self, below: Source, corruption: Corruption, spec: Spec, scene: Scene, pool: Executor | None = None
    ) -> None:
        self.size, self.pts, self.fps = scene.size, scene.pts, scene.fps
        self._below, self._scene, self._pool = below, scene, pool
        self._corruption, self._value, self._options = corruption, spec.value, spec.entry.options
        self.mask: Mask = scene.mask  # which frames this stage strikes

    def __len__(self) -> int:
        return len(self.pts)

    def origins(self) -> Indices:
        """For each frame the number of the untouched frame that it is, or `MADE`."""
        return np.where(self.mask, MADE, origins(self._below))

    @abstractmethod
    def block(self, lo: int, hi: int) -> Frames:
        """Frames lo..hi-1, struck where the mask says so."""

    def _call(self, frames: Any, where: Any) -> Any:
        return self._corruption.function(frames, self._value, where, **self._options)


class LocalStage(Stage):
    """A stage that can strike any block by itself, and passes on those in which it strikes nothing."""

    def block(self, lo: int, hi: int) -> Frames:
        return self._struck_block(lo, hi) if np.count_nonzero(self.mask[lo:hi]) else self._below.block(lo, hi)

    @abstractmethod
    def _struck_block(self, lo: int, hi: int) -> Frames:
        """The block, of which at least one frame is struck."""


class FrameStage(LocalStage):
    """Each struck frame by itself."""

    def _struck_block(self, lo: int, hi: int) -> Frames:
        clean = self._below.block(lo, hi).view()
        clean.setflags(write=False)  # a kernel would be compiled once more for frames that may be written to
        out = np.empty(clean.shape, np.uint8)
        mask, call, at = self.mask[lo:hi].tolist(), self._call, self._scene.at

        def strike(i: int) -> None:
            frame, place = clean[i], out[i]
            done = call(frame, at(lo + i, place)) if mask[i] else frame
            if done is not place:
                place[:] = done

        if self._pool is None:
            for i in range(hi - lo):
                strike(i)
        else:
            list(self._pool.map(strike, range(hi - lo)))
        return out


class ClipStage(LocalStage):
    """Struck frames that need their neighbours."""

    def _struck_block(self, lo: int, hi: int) -> Frames:
        assert self._corruption.reach is not None
        struck = np.flatnonzero(self.mask[lo:hi]) + lo
        before, after = self._corruption.reach(self._value)
        first = max(min(lo, int(struck[0]) - before), 0)
        stop = min(max(hi, int(struck[-1]) + 1 + after), len(self))
        window = self._below.block(first, stop)
        whole = len(struck) == hi - lo
        out = np.empty((hi - lo, *window.shape[1:]), np.uint8) if whole else np.array(window[lo - first : hi - first])
        for a, b in stretches(struck):
            done = self._call(window, Span(self._scene, first, a, b))
            if whole and done.shape == out.shape and done.dtype == out.dtype:
                return done  # type: ignore[no-any-return]
            out[a - lo : b - lo] = done
        return out


class TimeStage(LocalStage):
    """Frames shown in another order: an index map over each stretch of struck frames."""

    def __init__(
        self, below: Source, corruption: Corruption, spec: Spec, scene: Scene, pool: Executor | None = None
    ) -> None:
        super().__init__(below, corruption, spec, scene, pool)
        runs = scene.runs()
        if runs == [(0, len(scene.pts))]:
            self.indices = self._map(0, len(scene.pts))
            return
        self.indices = np.arange(len(scene.pts), dtype=np.int64)
        for a, b in runs:
            self.indices[a:b] = a + self._map(a, b)

    def _map(self, a: int, b: int) -> Indices:
        """What is shown in a stretch, counted from its start."""
        rng = self._scene.rng(a) if self._corruption.draws else None
        return checked_order(self._call(self.pts[a:b], rng), self._corruption, b - a)

    def origins(self) -> Indices:
        return origins(self._below)[self.indices]

    def _struck_block(self, lo: int, hi: int) -> Frames:
        return gather(self._below, self.indices[lo:hi])


class CodecStage(Stage):
    """The whole clip through an encoder and a decoder; struck frames are taken from what comes back.

    A codec has memory, so frames come back in order only. Asking backwards starts it again, which costs time and
    changes nothing. Clean frames are kept while their coded selves are under way, so that nothing below is asked twice.
    """

    def __init__(
        self, below: Source, corruption: Corruption, spec: Spec, scene: Scene, pool: Executor | None = None
    ) -> None:
        super().__init__(below, corruption, spec, scene, pool)
        self._end = int(np.flatnonzero(scene.mask)[-1]) + 1 if scene.mask.any() else 0
        self._stream: Iterator[Frame] | None = None
        self._next = 0
        self._under_way: dict[int, Frame] = {}

    def block(self, lo: int, hi: int) -> Frames:
        if lo >= self._end:
            return self._below.block(lo, hi)
        if self._stream is None or self._next > lo:
            self._stream, self._next, self._under_way = iter(self._call(self._frames(), self._scene)), 0, {}
        out = np.empty((hi - lo, *self.size, 3), np.uint8)
        while self._next < hi:
            t, coded = self._next, next(self._stream)
            clean = self._under_way.pop(t, None)
            if t >= lo:
                out[t - lo] = coded if self.mask[t] else self._clean(t, clean)
            self._next += 1
        return out

    def _clean(self, t: int, seen: Frame | None) -> Frame:
        # A corruption that decodes the file's own stream draws no frames from below.
        return self._below.block(t, t + 1)[0] if seen is None else seen

    def _frames(self) -> Iterator[Frame]:
        for lo in range(0, len(self), CODEC_BLOCK):
            for t, frame in enumerate(self._below.block(lo, min(lo + CODEC_BLOCK, len(self))), lo):
                if not self.mask[t]:
                    self._under_way[t] = frame
                yield frame


_STAGES: dict[str, type[Stage]] = {
    "frame": FrameStage,
    "clip": ClipStage,
    "time": TimeStage,
    "codec": CodecStage,
}


def chain(
    below: Source,
    specs: Sequence[Spec],
    masks: Sequence[Mask],
    *,
    seed: int,
    video_id: str,
    bit_rate: int | None = None,
    path: Path | None = None,
    streams: Streams | None = None,
    pool: Executor | None = None,
) -> Source:
    """The source that applies `specs` in order, each on the frames of its mask.

    Args:
        bit_rate: of the file the frames come from, if they come from one.
        path: that file, handed to the first corruption only: later ones see frames the file does not hold.
        streams: keeps what encoders make of that file's frames, handed to the first corruption only.
        pool: threads that share the frames of a block among them.
    """
    seen: dict[str, int] = {}
    for spec, mask in zip(specs, masks, strict=True):
        if spec.severity == 0:
            continue
        corruption = spec.corruption
        name = corruption.name
        ordinal = seen[name] = seen.get(name, 0) + 1
        scene = Scene(
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


def origins(source: Source) -> Indices:
    """For each frame of a chain the number of the untouched frame that it is, byte for byte, or `MADE`.

    This is known without a pixel: who has worked on the untouched frames already need only look at what was made.
    """
    return source.origins() if isinstance(source, Stage) else np.arange(len(source), dtype=np.int64)


def gather(source: Source, indices: Indices) -> Frames:
    """Frames of a source in any order, asked for in as few blocks as their order allows."""
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


def checked_order(indices: Any, corruption: Corruption, count: int) -> Indices:
    """What an index map gave for so many moments, if it is one index for each."""
    order = np.asarray(indices, np.int64)
    if order.shape != (count,):
        raise BadValue(
            f"corruption {corruption.name} gave {order.shape} indices for {count} moments; give one for each"
        )
    return order


def stretches(indices: Indices, gap: int = 1) -> list[tuple[int, int]]:
    """Sorted indices as half-open stretches, in which no step is larger than `gap`."""
    breaks = np.flatnonzero(np.diff(indices) > gap) + 1
    return [(int(part[0]), int(part[-1]) + 1) for part in np.split(indices, breaks) if len(part)]
