"""Frames and windows of a video as its extractor is asked for their features.

An extractor in another process computes while its caller goes on. So everything is submitted at once, and what is
returned is the function that waits for the features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from jostle.core.finite import check_finite, naming
from jostle.core.timing import measure_stage
from jostle.core.types.video import VideoSource
from jostle.corruptions.engine.stages import origins, stretches
from jostle.features.caches import CachedFrames, FlowCache, FrameFeatureCache, SlidingFrames
from jostle.features.deferred_corruption import DeferredCorruptionFactory, DeferredCorruptions
from jostle.features.windows import VideoWindows
from jostle.models.extractors.protocol import FeatureExtractor, Features, FlowExtractor

# Batch sizes. The networks of jostle may divide a batch further; the bits do not depend on it.
BATCH_BYTES, BATCH_FRAMES, BATCH_WINDOWS = 16 * 2**20, 64, 256

Progress = Callable[[int, int], None]
Indices = npt.NDArray[np.int64]


class FeatureRequests:
    """Requests of one video to its extractor; each distinct picture is sent once.

    Attributes:
        seen: number of frames whose features were requested.
        joined: number of windows whose features were requested.
    """

    def __init__(
        self,
        extractor: FeatureExtractor,
        source: CachedFrames,
        windows: VideoWindows,
        *,
        video_id: str,
        keep_bytes: int,
        progress: Progress | None,
    ) -> None:
        self._extractor, self._source, self._windows = extractor, source, windows
        self._video_id, self._progress = video_id, progress
        self._flow: FlowCache | None = None
        if getattr(extractor, "sees_flow", False):
            self._flow = FlowCache(cast(FlowExtractor, extractor).flow, keep_bytes)
        self._feature_cache = FrameFeatureCache()
        self._in_flight: dict[bytes, Callable[[], Features]] = {}  # by picture, those submitted and not cached yet
        self.seen = self.joined = 0

    @property
    def flows(self) -> int:
        """Number of frame pairs for which optical flow was computed."""
        return 0 if self._flow is None else self._flow.computed

    @property
    def frames_at_once(self) -> int:
        """Number of frames in a batch."""
        height, width = self._source.size
        return min(max(BATCH_BYTES // (height * width * 3), 1), BATCH_FRAMES)

    def embed_video(self, top: VideoSource) -> Features:
        """Return the features of every frame of a state of the video."""
        assert self._extractor.frame_dim is not None
        features = np.empty((len(top), self._extractor.frame_dim), np.float32)
        step, pending = self.frames_at_once, []
        for lo in range(0, len(top), step):
            hi = min(lo + step, len(top))
            pending.append((lo, hi, self._embed(top.block(lo, hi))))
            self._report_progress(hi, len(top))
        for lo, hi, answer in pending:
            features[lo:hi] = answer()
        return features

    def embed_pictures(self, top: VideoSource, numbers: Indices) -> Callable[[], Features]:
        """Submit these frames, each distinct picture once; the returned function waits for their features."""
        assert self._extractor.frame_dim is not None
        out = np.empty((len(numbers), self._extractor.frame_dim), np.float32)
        rows_of: dict[bytes, list[int]] = {}  # rows of `out` by picture
        awaited: dict[bytes, Callable[[], Features]] = {}  # pictures that an earlier cell submitted
        keys: list[bytes] = []
        pending: list[tuple[list[bytes], Callable[[], Features]]] = []
        step, row = self.frames_at_once, 0
        pictures = np.empty((min(step, len(numbers)), *top.size, 3), np.uint8)  # one for each of `keys`

        def submit() -> None:
            answer = cache(self._embed(pictures[: len(keys)]))
            pending.append((keys.copy(), answer))
            self._in_flight.update({key: partial(_row, answer, index) for index, key in enumerate(keys)})
            keys.clear()

        for a, b in stretches(numbers):
            for lo in range(a, b, step):
                for frame in top.block(lo, min(lo + step, b)):
                    key = self._feature_cache.key(frame)
                    known = self._feature_cache.get(key)
                    if known is not None:
                        out[row] = known
                    elif key in rows_of:
                        rows_of[key].append(row)
                    elif key in self._in_flight:
                        rows_of[key], awaited[key] = [row], self._in_flight[key]
                    else:
                        rows_of[key] = [row]
                        pictures[len(keys)] = frame
                        keys.append(key)
                    row += 1
                    if len(keys) == step:
                        submit()
                        pictures = np.empty_like(pictures)
                self._report_progress(row, len(numbers))
        if keys:
            submit()

        def finish() -> Features:
            for key, wait in awaited.items():
                out[rows_of[key]] = wait()
            for batch, answer in pending:
                for key, features in zip(batch, answer(), strict=True):
                    out[rows_of[key]] = features
                    self._feature_cache.put(key, features)
                    del self._in_flight[key]
            return out

        return finish

    def embed_deferred(
        self, numbers: Indices, factories: Sequence[DeferredCorruptionFactory]
    ) -> list[Callable[[], Features]]:
        """Submit frames of the source once, to be corrupted on the extractor's device in each of these ways.

        Returns:
            For each way the function that waits for its features.
        """
        step, pending = self.frames_at_once, []
        for lo in range(0, len(numbers), step):
            batch = numbers[lo : lo + step]
            blocks = [self._source.block(a, b) for a, b in stretches(batch)]
            clean = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
            corruptions = DeferredCorruptions(defer(batch) for defer in factories)
            pending.append((lo, len(batch), cache(self._submit("see", clean, corruptions=corruptions))))
            self._report_progress(lo + len(batch), len(numbers))

        def finish(copy: int) -> Features:
            assert self._extractor.frame_dim is not None
            out = np.empty((len(numbers), self._extractor.frame_dim), np.float32)
            for lo, count, answer in pending:
                out[lo : lo + count] = answer()[copy * count : (copy + 1) * count]
            self.seen += len(numbers)
            return self._finite(out)

        return [partial(finish, copy) for copy in range(len(factories))]

    def extract_windows(
        self, top: VideoSource, which: Indices, came_from: Indices | None = None
    ) -> Callable[[], Features]:
        """Submit these windows to a network that processes whole ones; the returned function waits for features."""
        features = np.empty((len(which), self._extractor.dim), np.float32)
        height, width = top.size
        step = max(BATCH_BYTES // (self._windows.grid.window * height * width * 3), 1)
        submit, pending = self._window_submitter(top, origins(top) if came_from is None else came_from), []
        for lo in range(0, len(which), step):
            part = which[lo : lo + step]
            pending.append((lo, submit(part)))
            self.joined += len(part)
            self._report_progress(lo + len(part), len(which))

        def finish() -> Features:
            for lo, answer in pending:
                features[lo : lo + step] = self._finite(answer())
            return features

        return finish

    def _window_submitter(self, top: VideoSource, came_from: Indices) -> Callable[[Indices], Callable[[], Features]]:
        """Return a function that submits successive windows of a state of the video to the extractor."""
        belt = SlidingFrames(top)
        if self._flow is None:
            return lambda windows: self._submit("", belt.take(self._windows.frames[windows]))
        flows = self._flow.for_state(came_from)

        def submit(windows: Indices) -> Callable[[], Features]:
            rows, (first, second) = self._windows.frames[windows], self._windows.flow_ends(windows)
            numbers = np.unique(np.stack([rows, first, second]))
            frames = belt.take(numbers)
            flow = flows.take(first, second, numbers, frames)
            return self._submit("", frames[np.searchsorted(numbers, rows)], flow)

        return submit

    def join(self, frame_features: Features, which: Indices) -> Callable[[], Features]:
        """Submit windows of frame features; the returned function waits for the features of the windows."""
        pending = []
        for lo in range(0, len(which), BATCH_WINDOWS):
            part = which[lo : lo + BATCH_WINDOWS]
            pending.append(self._submit("join", frame_features[self._windows.frames[part]]))
            self.joined += len(part)

        def finish() -> Features:
            parts = [np.empty((0, self._extractor.dim), np.float32), *(answer() for answer in pending)]
            return self._finite(np.concatenate(parts))

        return finish

    def _embed(self, frames: npt.NDArray[np.uint8]) -> Callable[[], Features]:
        self.seen += len(frames)
        answer = self._submit("see", frames)
        return lambda: self._finite(answer())

    def _submit(
        self,
        method: str,
        *inputs: npt.NDArray[Any],
        corruptions: DeferredCorruptions = DeferredCorruptions(),  # noqa: B008
    ) -> Callable[[], Features]:
        """Submit inputs to a method of the extractor; a remote one computes while the caller goes on."""
        with measure_stage("model"):
            if hasattr(self._extractor, "submit"):
                answer = self._extractor.submit(method, *map(_unlock, inputs), corruptions=corruptions)
                return partial(_wait_for, answer)
            features = getattr(self._extractor, method or "__call__")(*inputs)
        return lambda: features

    def _finite(self, features: Features) -> Features:
        """Return what the extractor computed, unless it holds NaN or infinities."""
        with naming(video=self._video_id):
            check_finite(np.asarray(features), "the extractor, features")
        return features

    def _report_progress(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(done, total)


def _row(answer: Callable[[], Features], index: int) -> Features:
    row: Features = answer()[index]
    return row


def _unlock(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a writable view where possible: a GPU copies from writable memory without a detour.

    Another process gets the values in memory of its own, so the array here needs no protection.
    """
    view = array.view()
    with suppress(ValueError):
        view.flags.writeable = True
    return view


def _wait_for(answer: Callable[[], Features]) -> Features:
    with measure_stage("model"):
        return answer()
