"""Context of a corruption besides the pixels: properties of the clip, random keys and the current frame."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from jostle.core.random import Part, finish_key, rng_from, start_key
from jostle.core.types.clip import Frame, Times

if TYPE_CHECKING:
    from jostle.io.video.packet_store import StreamCache

Mask = npt.NDArray[np.bool_]  # (T,)


@dataclass(eq=False, slots=True)  # not frozen: creation is on the hot path and three times as fast
class ClipContext:
    """Properties of the clip that a corruption may use.

    Randomness is keyed by (seed, video id, corruption) and by whatever the corruption adds, so it depends neither on
    chunking nor on order. Severity is not part of the key: a higher severity then affects the same frames and pixels,
    and severities can be compared frame by frame.
    """

    name: str  # the corruption's name; in a chain that uses one twice, the second carries its ordinal
    size: tuple[int, int]  # (height, width)
    pts: Times  # timestamps in seconds
    fps: Fraction
    mask: Mask  # which frames are corrupted
    seed: int = 0
    video_id: str = ""
    bit_rate: int | None = None  # of the source file in bits per second, if there is one
    # That file; only set while its frames are still exactly what the file holds
    path: Path | None = field(default=None)
    streams: StreamCache | None = field(default=None)  # cache of encoded streams of those frames; only set as long
    _key_prefix: blake2b | None = field(default=None, init=False)

    def __len__(self) -> int:
        return len(self.pts)

    def key(self, *parts: Part) -> int:
        """Return a 64-bit key for this clip and these parts."""
        if self._key_prefix is None:  # the common prefix of all keys of the clip is hashed once
            self._key_prefix = start_key(self.seed, self.video_id, self.name)
        return finish_key(self._key_prefix, *parts)

    def rng(self, *parts: Part) -> np.random.Generator:
        """Return a generator for this clip and these parts; without parts, one for the whole clip."""
        return rng_from(self.key(*parts))

    def at(self, index: int, place: Frame | None = None) -> FrameContext:
        """Return the context of frame `index`; `place` is the output array of the corrupted frame."""
        return FrameContext(self, index, place)

    def runs(self) -> list[tuple[int, int]]:
        """Return half-open spans of consecutive corrupted frames."""
        if np.count_nonzero(self.mask) == len(self):
            return [(0, len(self))] if len(self) else []
        edges = np.flatnonzero(np.diff(np.concatenate(([False], self.mask, [False]))))
        return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


@dataclass(eq=False, slots=True)
class FrameContext:
    """Context of one corrupted frame."""

    scene: ClipContext
    index: int
    place: Frame | None = None  # output array of the corrupted frame, if it is known; `canvas` returns it

    def canvas(self, frame: Frame) -> Frame:
        """Return a contiguous, uninitialised array like `frame` for the result.

        Write only the result into it, and only once: it may be the final output, which saves a copy.
        """
        return np.empty(frame.shape, np.uint8) if self.place is None else self.place

    @property
    def time_s(self) -> float:
        """Time of the frame in seconds from the first frame of the clip."""
        return float(self.scene.pts[self.index] - self.scene.pts[0])

    def key(self, *parts: Part) -> int:
        """Return a 64-bit key for this frame and these parts."""
        return self.scene.key("frame", self.index, *parts)

    def rng(self, *parts: Part) -> np.random.Generator:
        """Return a generator for this frame and these parts."""
        return self.scene.rng("frame", self.index, *parts)
