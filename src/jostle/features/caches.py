"""Caches of frames, optical flow and frame features on their way to an extractor."""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from numba import uint64

from jostle.core.kernels import kernel
from jostle.core.timing import measure_stage
from jostle.core.types.clip import Frame, Frames
from jostle.core.types.video import VideoSource
from jostle.corruptions.engine.stages import MADE, stretches
from jostle.models.extractors.protocol import Features

Flow = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.int64]
Compute = Callable[[Frames, Frames], Flow]
Pair = tuple[int, int]
BLOCK = 32  # bytes that are hashed in one step


class FlowCache:
    """Cache of the flow between clean frames of a video, up to `budget` bytes.

    What does not fit is computed on every use. The first entries stay: a pass goes from the beginning to the end of the
    video, and evicting them would leave nothing to hit in the next pass.

    Attributes:
        computed: number of pairs whose flow was computed, in the clean video and in corrupted states.
    """

    def __init__(self, compute: Compute, budget: int) -> None:
        self.computed = 0
        self._compute = compute
        self._budget = budget
        self._cached: dict[Pair, Flow] = {}
        self._used = 0

    def for_state(self, came_from: Indices) -> SlidingFlow:
        """Return the flow of a state of the video, whose frames have these origins; see `origins`."""
        return SlidingFlow(self, came_from)

    def get(self, pair: Pair) -> Flow | None:
        """Return the flow from one clean frame to another, or None."""
        return self._cached.get(pair)

    def compute(self, first: Frames, second: Frames) -> Flow:
        """Compute and count the flow of uncached pairs."""
        self.computed += len(first)
        return self._compute(first, second)

    def put(self, pair: Pair, flow: Flow) -> None:
        """Cache the flow between clean frames, if it fits."""
        if self._used + flow.nbytes <= self._budget:
            self._cached[pair] = flow
            self._used += flow.nbytes


class SlidingFlow:
    """Flow for successive windows of one state of a video."""

    def __init__(self, cache: FlowCache, came_from: Indices) -> None:
        self._cache, self._came_from = cache, came_from
        self._held: dict[Pair, Flow] = {}

    def take(self, first: Indices, second: Indices, numbers: Indices, frames: Frames) -> Flow:
        """Return the (*shape, H', W', 2) flow between frames of these indices.

        Args:
            first, second: frame indices of any shape, none lower than the lowest of the last call.
            numbers: indices of all these frames, in order.
            frames: those frames.
        """
        pairs = list(zip(first.ravel().tolist(), second.ravel().tolist(), strict=True))
        lowest = min(pairs)[0]
        self._held = {pair: flow for pair, flow in self._held.items() if pair[0] >= lowest}
        missing = []
        for pair in dict.fromkeys(pairs):
            if pair not in self._held:
                cached = self._cache.get(self._clean_pair(pair))
                if cached is None:
                    missing.append(pair)
                else:
                    self._held[pair] = cached
        if missing:
            before, after = (frames[np.searchsorted(numbers, side)] for side in zip(*missing, strict=True))
            for pair, flow in zip(missing, self._cache.compute(before, after), strict=True):
                self._held[pair] = np.array(flow)  # a copy: a view would keep all of them alive
                if MADE not in self._clean_pair(pair):
                    self._cache.put(self._clean_pair(pair), self._held[pair])
        return np.stack([self._held[pair] for pair in pairs]).reshape(*first.shape, *self._held[pairs[0]].shape)

    def _clean_pair(self, pair: Pair) -> Pair:
        """Return the clean frames that a pair equals; nothing is cached for `MADE`."""
        return int(self._came_from[pair[0]]), int(self._came_from[pair[1]])


KEEP_BYTES = 256 * 2**20  # decoded frames of one video, while several corruptions of it are processed
RECALL_BYTES = 64 * 2**20  # features of frames, by their pixels


class CachedFrames:
    """A source that decodes no frame of another twice, if all of them fit into `budget` bytes.

    Attributes:
        decoded: number of frames read from the source.
        concealed: (T,) frames that show what a decoder concealed, where the source knows.
    """

    def __init__(self, source: VideoSource, budget: int = KEEP_BYTES) -> None:
        self.size, self.pts, self.fps = source.size, source.pts, source.fps
        self.concealed: npt.NDArray[np.bool_] | None = getattr(source, "concealed", None)
        self.decoded = 0
        self._source = source
        shape = (len(source), *source.size, 3)
        fits = int(np.prod(shape, dtype=np.int64)) <= budget
        self._cached: Frames | None = np.empty(shape, np.uint8) if fits else None
        self._loaded = np.zeros(len(source), np.bool_)

    def __len__(self) -> int:
        return len(self._loaded)

    def block(self, lo: int, hi: int) -> Frames:
        if self._cached is None:
            self.decoded += hi - lo
            with measure_stage("decoding"):
                return self._source.block(lo, hi)
        for a, b in stretches(np.flatnonzero(~self._loaded[lo:hi]) + lo):
            with measure_stage("decoding"):
                self._cached[a:b] = self._source.block(a, b)
            self._loaded[a:b] = True
            self.decoded += b - a
        frames = self._cached[lo:hi]
        frames.flags.writeable = False
        return frames


class SlidingFrames:
    """Frames of a source for successive windows: frames that overlap are read once, and in order.

    A codec cannot seek backwards without starting again, so no frame of the previous window is read again.

    Args:
        windows: all windows that may be read, if known: frames that only one of them has are not held.
    """

    def __init__(self, source: VideoSource, windows: npt.NDArray[np.int64] | None = None) -> None:
        self.size = source.size
        self._source = source
        self._held: dict[int, Frame] = {}
        self._uses: Counter[int] | None = None
        if windows is not None:
            self._uses = Counter(t for window in windows for t in np.unique(window).tolist())

    def take(self, indices: npt.NDArray[np.int64], into: Frames | None = None) -> Frames:
        """Return the frames at indices of any shape, none lower than the lowest of the last call.

        Args:
            into: array that the frames are written to, if given: of the shape of `indices`, then (H, W, 3).
        """
        needed = np.unique(indices)
        self._held = {t: frame for t, frame in self._held.items() if t >= needed[0]}
        frame_shape = (*self._source.size, 3)
        target = np.empty((*indices.shape, *frame_shape), np.uint8) if into is None else into
        out = target.reshape(-1, *frame_shape)
        rows: dict[int, list[int]] = {}
        for row, t in enumerate(indices.ravel().tolist()):
            rows.setdefault(t, []).append(row)
        for t in rows.keys() & self._held.keys():
            out[rows[t]] = self._held[t]
        for a, b in stretches(np.array([t for t in needed.tolist() if t not in self._held], np.int64)):
            for t, frame in enumerate(self._source.block(a, b), a):
                for row in rows[t]:
                    out[row] = frame
                if self._uses is None or self._uses[t] > 1:
                    # A copy: a view would keep the whole block alive for as long as one of its frames is held.
                    self._held[t] = np.array(frame)
        return target


class FrameFeatureCache:
    """LRU cache of frame features, by pixels: a black frame is processed once, however often it occurs."""

    def __init__(self, budget: int = RECALL_BYTES) -> None:
        self._budget = budget
        self._features: OrderedDict[bytes, Features] = OrderedDict()

    @staticmethod
    def key(frame: Frame) -> bytes:
        """Return a hash of the pixels and of the shape."""
        pixels = np.ascontiguousarray(frame).reshape(-1)
        if pixels.ctypes.data % 8:
            pixels = pixels.copy()  # the kernel reads whole words
        whole = len(pixels) // BLOCK * BLOCK
        digest = hashlib.blake2b(repr(frame.shape).encode(), digest_size=16)
        digest.update(_hash_words(pixels[:whole].view(np.uint64)).data)
        digest.update(pixels[whole:].data)
        return digest.digest()

    def get(self, key: bytes) -> Features | None:
        """Return the features of the frame with this key, or None."""
        features = self._features.get(key)
        if features is not None:
            self._features.move_to_end(key)
        return features

    def put(self, key: bytes, features: Features) -> None:
        """Cache features; the least recently used are evicted beyond the budget."""
        self._features[key] = np.array(features)
        while len(self._features) * features.nbytes > self._budget and len(self._features) > 1:
            self._features.popitem(last=False)


@kernel
def _hash_words(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return four hashes, each of every fourth word; several times as fast as a cryptographic hash of all of them."""
    # A word is added to what the words before it gave; rotated and multiplied, it reaches all bits in a few steps. Two
    # pictures that differ in one word have different hashes.
    before, after, left, right = uint64(0xC2B2AE3D27D4EB4F), uint64(0x9E3779B185EBCA87), uint64(31), uint64(33)
    a = b = c = d = uint64(0)
    for i in range(0, len(words), 4):
        a += words[i] * before
        b += words[i + 1] * before
        c += words[i + 2] * before
        d += words[i + 3] * before
        a = ((a << left) | (a >> right)) * after
        b = ((b << left) | (b >> right)) * after
        c = ((c << left) | (c >> right)) * after
        d = ((d << left) | (d >> right)) * after
    hashes = np.empty(4, np.uint64)
    hashes[0], hashes[1], hashes[2], hashes[3] = a, b, c, d
    return hashes
