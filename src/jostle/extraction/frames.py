"""Frames on their way to an extractor: decoded once where they fit, asked for in order, recognised when seen before."""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict

import numpy as np
import numpy.typing as npt

from jostle.corrupting.stages import Source, stretches
from jostle.extraction.extractor import Features
from jostle.stopwatch import spent_on
from jostle.types.clip import Frame, Frames

KEEP_BYTES = 256 * 2**20  # of decoded frames of one video, while several corruptions of it are looked at
RECALL_BYTES = 64 * 2**20  # of what was seen of frames, for when they come again


class KeptFrames:
    """A source that decodes no frame twice, if all of them fit into `budget` bytes; itself a source.

    Attributes:
        decoded: how many frames were asked of the source below.
    """

    def __init__(self, below: Source, budget: int = KEEP_BYTES) -> None:
        self.size, self.pts, self.fps = below.size, below.pts, below.fps
        self.decoded = 0
        self._below = below
        shape = (len(below), *below.size, 3)
        fits = int(np.prod(shape, dtype=np.int64)) <= budget
        self._kept: Frames | None = np.empty(shape, np.uint8) if fits else None
        self._have = np.zeros(len(below), np.bool_)

    def __len__(self) -> int:
        return len(self._have)

    def block(self, lo: int, hi: int) -> Frames:
        if self._kept is None:
            self.decoded += hi - lo
            with spent_on("decoding"):
                return self._below.block(lo, hi)
        for a, b in stretches(np.flatnonzero(~self._have[lo:hi]) + lo):
            with spent_on("decoding"):
                self._kept[a:b] = self._below.block(a, b)
            self._have[a:b] = True
            self.decoded += b - a
        given = self._kept[lo:hi]
        given.flags.writeable = False
        return given


class Belt:
    """Frames of a source for windows that follow one another: those that overlap are fetched once, and in order.

    A codec cannot go backwards without starting again, so nothing is asked for that was here a window ago.

    Args:
        windows: all that will be asked for, of which some may be left out: what no other has is not kept. None where
            that is not known.
    """

    def __init__(self, source: Source, windows: npt.NDArray[np.int64] | None = None) -> None:
        self._source = source
        self._held: dict[int, Frame] = {}
        self._uses: Counter[int] | None = None
        if windows is not None:
            self._uses = Counter(t for window in windows for t in np.unique(window).tolist())

    def take(self, indices: npt.NDArray[np.int64]) -> Frames:
        """Frames of any shape of indices, none of them lower than the lowest of the last call."""
        wanted = np.unique(indices)
        self._held = {t: frame for t, frame in self._held.items() if t >= wanted[0]}
        out = np.empty((indices.size, *self._source.size, 3), np.uint8)
        rows: dict[int, list[int]] = {}
        for row, t in enumerate(indices.ravel().tolist()):
            rows.setdefault(t, []).append(row)
        for t in rows.keys() & self._held.keys():
            out[rows[t]] = self._held[t]
        for a, b in stretches(np.array([t for t in wanted.tolist() if t not in self._held], np.int64)):
            for t, frame in enumerate(self._source.block(a, b), a):
                for row in rows[t]:
                    out[row] = frame
                if self._uses is None or self._uses[t] > 1:
                    # A copy: a view would keep the whole block alive for as long as one of its frames is held.
                    self._held[t] = np.array(frame)
        return out.reshape(*indices.shape, *out.shape[1:])


class Recall:
    """What was seen of frames, by their pixels: a black frame is looked at once, however often it comes."""

    def __init__(self, budget: int = RECALL_BYTES) -> None:
        self._budget = budget
        self._seen: OrderedDict[bytes, Features] = OrderedDict()

    @staticmethod
    def key(frame: Frame) -> bytes:
        """A hash of the pixels and of their arrangement."""
        digest = hashlib.blake2b(repr(frame.shape).encode(), digest_size=16)
        digest.update(np.ascontiguousarray(frame).data)
        return digest.digest()

    def get(self, key: bytes) -> Features | None:
        """What was seen of the frame with this key, unless it was forgotten since."""
        found = self._seen.get(key)
        if found is not None:
            self._seen.move_to_end(key)
        return found

    def put(self, key: bytes, seen: Features) -> None:
        """Remember what was seen; the longest unused is forgotten when there is no room."""
        self._seen[key] = np.array(seen)
        while len(self._seen) * seen.nbytes > self._budget and len(self._seen) > 1:
            self._seen.popitem(last=False)
