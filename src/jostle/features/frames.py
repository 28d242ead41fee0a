"""Optical flow on its way to an extractor: of each pair of frames once, and of clean pairs only once for all states."""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from jostle.core.timing import spent_on
from jostle.core.types.clip import Frame, Frames
from jostle.corruptions.engine.stages import MADE, Source, stretches
from jostle.models.extractors.protocol import Features

Flow = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.int64]
Compute = Callable[[Frames, Frames], Flow]
Pair = tuple[int, int]


class KeptFlow:
    """Flow between untouched frames of a video, as much of it as fits into `budget` bytes.

    What does not fit is computed whenever it is wanted. The first that come stay: a pass goes from the beginning to
    the end, and one that pushed them out would find none of them again.

    Attributes:
        computed: of how many pairs flow was computed, here and along corrupted states of the video.
    """

    def __init__(self, compute: Compute, budget: int) -> None:
        self.computed = 0
        self._compute = compute
        self._budget = budget
        self._kept: dict[Pair, Flow] = {}
        self._used = 0

    def along(self, came_from: Indices) -> FlowBelt:
        """Flow between the frames of a state of the video, of which it is known what each was; see `origins`."""
        return FlowBelt(self, came_from)

    def of(self, pair: Pair) -> Flow | None:
        """Flow from one untouched frame to another, if it was kept."""
        return self._kept.get(pair)

    def compute(self, first: Frames, second: Frames) -> Flow:
        """Flow of pairs that are not known."""
        self.computed += len(first)
        return self._compute(first, second)

    def keep(self, pair: Pair, flow: Flow) -> None:
        """Remember flow between untouched frames, while there is room."""
        if self._used + flow.nbytes <= self._budget:
            self._kept[pair] = flow
            self._used += flow.nbytes


class FlowBelt:
    """Flow for windows of one state of a video that follow one another."""

    def __init__(self, known: KeptFlow, came_from: Indices) -> None:
        self._known, self._came_from = known, came_from
        self._held: dict[Pair, Flow] = {}

    def take(self, first: Indices, second: Indices, numbers: Indices, frames: Frames) -> Flow:
        """(*shape, H', W', 2): flow from the frames of these numbers to those.

        Args:
            first, second: numbers of frames, of any shape, none of them lower than the lowest of the last call.
            numbers: of all these frames, in order.
            frames: those frames.
        """
        pairs = list(zip(first.ravel().tolist(), second.ravel().tolist(), strict=True))
        lowest = min(pairs)[0]
        self._held = {pair: flow for pair, flow in self._held.items() if pair[0] >= lowest}
        missing = []
        for pair in dict.fromkeys(pairs):
            if pair not in self._held:
                kept = self._known.of(self._untouched(pair))
                if kept is None:
                    missing.append(pair)
                else:
                    self._held[pair] = kept
        if missing:
            before, after = (frames[np.searchsorted(numbers, side)] for side in zip(*missing, strict=True))
            for pair, flow in zip(missing, self._known.compute(before, after), strict=True):
                self._held[pair] = np.array(flow)  # a copy: a view would keep all of them alive
                if MADE not in self._untouched(pair):
                    self._known.keep(self._untouched(pair), self._held[pair])
        return np.stack([self._held[pair] for pair in pairs]).reshape(*first.shape, *self._held[pairs[0]].shape)

    def _untouched(self, pair: Pair) -> Pair:
        """The frames of the clean video that a pair is; `MADE` is no key, as nothing is kept under it."""
        return int(self._came_from[pair[0]]), int(self._came_from[pair[1]])


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
