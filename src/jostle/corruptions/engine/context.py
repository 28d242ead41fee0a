"""What a corruption may know besides the pixels: the clip's facts, its chance, and the moment it strikes."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from jostle.core.random import Part, hashed, key_after, rng_from
from jostle.core.types.clip import Frame, Times

if TYPE_CHECKING:
    from jostle.io.video.codec import Streams

Mask = npt.NDArray[np.bool_]  # (T,)


@dataclass(eq=False, slots=True)  # not frozen, as one is made for every call, and that takes a third of the time
class Scene:
    """The clip under corruption, as far as a corruption may look at it.

    Randomness is keyed by (seed, video id, corruption) and by whatever the corruption adds, so it depends neither on
    chunking nor on order. Severity is not part of the key: a harder knock then falls in the same place as a softer
    one, and two severities can be compared frame by frame.

    Attributes:
        name: the corruption's name; in a chain that uses one twice, the second carries its ordinal.
        size: (height, width).
        pts: when each frame is shown, in seconds.
        mask: which frames are struck.
        bit_rate: of the file the frames came from, in bits per second, when there is one.
        path: that file; only set while its frames are still exactly what the file holds.
        streams: keeps what encoders make of those frames; only set as long.
    """

    name: str
    size: tuple[int, int]
    pts: Times
    fps: Fraction
    mask: Mask
    seed: int = 0
    video_id: str = ""
    bit_rate: int | None = None
    path: Path | None = field(default=None)
    streams: Streams | None = field(default=None)
    _begun: blake2b | None = field(default=None, init=False)

    def __len__(self) -> int:
        return len(self.pts)

    def key(self, *parts: Part) -> int:
        """A 64-bit key for this clip and these parts."""
        if self._begun is None:  # what all keys of the clip have in common is hashed once
            self._begun = hashed(self.seed, self.video_id, self.name)
        return key_after(self._begun, *parts)

    def rng(self, *parts: Part) -> np.random.Generator:
        """A generator for this clip and these parts: without parts, one draw for the whole clip."""
        return rng_from(self.key(*parts))

    def at(self, index: int, place: Frame | None = None) -> Moment:
        """The moment at which frame `index` is struck; `place` is where the struck frame will stand."""
        return Moment(self, index, place)

    def runs(self) -> list[tuple[int, int]]:
        """Half-open stretches of consecutive struck frames."""
        if np.count_nonzero(self.mask) == len(self):
            return [(0, len(self))] if len(self) else []
        edges = np.flatnonzero(np.diff(np.concatenate(([False], self.mask, [False]))))
        return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


@dataclass(eq=False, slots=True)
class Moment:
    """One struck frame of a scene.

    Attributes:
        place: where the struck frame will stand, if that is known; `canvas` gives it.
    """

    scene: Scene
    index: int
    place: Frame | None = None

    def canvas(self, frame: Frame) -> Frame:
        """An array like `frame`, contiguous and of any content, to write the result into and to return.

        Nothing else should be written there, nor twice: it may be the very place of the result, which saves a copy.
        """
        return np.empty(frame.shape, np.uint8) if self.place is None else self.place

    @property
    def time_s(self) -> float:
        """When the frame is shown, counted from the first frame of the clip."""
        return float(self.scene.pts[self.index] - self.scene.pts[0])

    def key(self, *parts: Part) -> int:
        """A 64-bit key for this frame and these parts."""
        return self.scene.key("frame", self.index, *parts)

    def rng(self, *parts: Part) -> np.random.Generator:
        """A generator for this frame and these parts."""
        return self.scene.rng("frame", self.index, *parts)
