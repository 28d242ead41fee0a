"""Optical flow on its way to an extractor: of each pair of frames once, and of clean pairs only once for all states."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from jostle.corrupting.stages import MADE
from jostle.types.clip import Frames

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
