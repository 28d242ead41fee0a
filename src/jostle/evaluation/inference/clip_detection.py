"""Clip-by-clip detection with frame detectors, recomputed only where a corruption changed a frame.

A clip without corrupted frames reuses the clean detections. In other clips, per-frame layers process only the corrupted
frames, and temporal layers only their neighbourhood. The result is bit-identical to processing every clip of every cell
from its pixels, which each run checks on one cell, and no more than the frames of one clip are held in memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from jostle.core.finite import naming
from jostle.core.timing import measure_stage
from jostle.core.types.segments import Segments
from jostle.core.types.video import VideoSource
from jostle.corruptions.engine.context import Mask
from jostle.corruptions.engine.stages import origins, stretches
from jostle.features.caches import FrameFeatureCache
from jostle.features.extraction import Cost
from jostle.features.interpolation import RowInterpolation
from jostle.features.windows import mean_rate

AT_ONCE = 64  # frames fetched together
CACHED = 64  # encodings of corrupted frames kept for reuse: a black frame, for example, repeats

Indices = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]


class ClipDetector(Protocol):
    """Protocol of detectors that find segments in clips of frames; jostle's frame detectors implement it."""

    config: Any

    def sample_indices(self, count: int, fps: float) -> tuple[Indices, float]: ...
    def clips(self, count: int) -> list[int]: ...
    def encode_frames(self, frames: npt.ArrayLike) -> Any: ...
    def encode_clip(self, encodings: Sequence[Any], beside: Any = None) -> Any: ...
    def detect_clip(self, deep: Any) -> Any: ...
    def merge_clips(self, parts: Sequence[tuple[int, Any]], count: int) -> Any: ...
    def to_seconds(
        self, candidates: Any, rate: float, duration: float, video_scores: npt.ArrayLike | None = None
    ) -> Segments: ...


@dataclass(frozen=True)
class ClipDetections:
    """Detections of one video in several states."""

    segments: dict[str, Segments]  # by state
    # `clean` and `others`: cost of the clean clips and of the corrupted ones.
    clean: Cost
    others: Cost
    candidates: dict[str, Any]  # by state, those of each clip with its first frame
    left: frozenset[str] = frozenset()  # states with a clip that was not mended because all its frames are corrupted


class _State:
    """A video in one state, with the frame encodings of the current clip."""

    def __init__(self, source: VideoSource, corrupted: Mask | None = None) -> None:
        self.source = source
        self.came_from = origins(source)
        self.corrupted = np.zeros(len(source), np.bool_) if corrupted is None else corrupted
        self.encodings: dict[int, Any] = {}
        self.encoded = self.clips = 0

    def forget(self, before: int) -> None:
        """Drop the encodings of frames that no later clip contains."""
        self.encodings = {number: row for number, row in self.encodings.items() if number >= before}


class VideoClips:
    """One video, processed by one frame detector.

    Args:
        progress: called with the number of clips done and in all.
        reuse: whether what a state shares with the clean video is computed once; False to compute each state by itself.
    """

    def __init__(
        self,
        clean: VideoSource,
        detector: ClipDetector,
        *,
        duration: float,
        video_scores: npt.ArrayLike | None = None,
        progress: Progress | None = None,
        reuse: bool = True,
    ) -> None:
        self._clean, self._detector, self._reuse = _State(clean), detector, reuse
        self._duration, self._scores, self._progress = duration, video_scores, progress
        self._indices, self._rate = detector.sample_indices(len(clean), mean_rate(clean.pts, clean.fps))
        self._cache: OrderedDict[bytes, Any] = OrderedDict()

    def detect(self, states: Mapping[str, VideoSource], corrupted: Mapping[str, Mask] | None = None) -> ClipDetections:
        """Detect segments in each state of the video.

        Args:
            corrupted: mask of corrupted frames per state; their encodings are interpolated from intact frames.
        """
        indices, length = self._indices, self._detector.config.max_length
        others = {
            name: _State(source, None if corrupted is None else corrupted[name]) for name, source in states.items()
        }
        left: set[str] = set()
        parts: dict[str, list[tuple[int, Any]]] = {name: [] for name in states}
        firsts = self._detector.clips(len(indices))
        for done, first in enumerate(firsts, 1):
            clip, clean, plain = indices[first : first + length], None, dict[bytes, Any]()
            if len(others) > 1 and self._reuse:  # with a single state there is nothing to reuse
                clean = self._encode_clip(self._clean, clip, self._clean.corrupted[clip], None)
            for name, state in others.items():
                lost = state.corrupted[clip]
                if lost.all():
                    left.add(name)
                    lost = ~lost
                with naming(cell=name):
                    if self._reuse and (state.came_from[clip][~lost] == clip[~lost]).all():
                        if lost.tobytes() not in plain:
                            plain[lost.tobytes()] = self._detect_clip(self._clean, clip, lost, clean)
                        candidates = plain[lost.tobytes()]
                    else:
                        candidates = self._detect_clip(state, clip, lost, clean)
                parts[name].append((first, candidates))
            for state in (self._clean, *others.values()):
                state.forget(int(indices[firsts[done]]) if done < len(firsts) else len(indices))
            if self._progress is not None:
                self._progress(done, len(firsts))
        segments = {name: self._finish(clips) for name, clips in parts.items()}
        cost = Cost(0, sum(state.encoded for state in others.values()), sum(state.clips for state in others.values()))
        return ClipDetections(segments, Cost(0, self._clean.encoded, self._clean.clips), cost, parts, frozenset(left))

    def _detect_clip(self, state: _State, clip: Indices, lost: Mask, clean: Any) -> Any:
        """Return the candidates of a clip; `clean` is the encoding of the clean clip, if there is one."""
        state.clips += 1
        same = state is self._clean and clean is not None and not lost.any()
        return self._detector.detect_clip(clean if same else self._encode_clip(state, clip, lost, clean))

    def _encode_clip(self, state: _State, clip: Indices, lost: Mask, clean: Any) -> Any:
        """Encode a clip, reusing the encodings of clean frames of the same clip."""
        sound = clip[~lost]
        inside, came_from = set(clip.tolist()) if self._reuse else set[int](), state.came_from[sound].tolist()
        known = [number for number in came_from if number in inside]
        self._encode_missing(self._clean, known)
        own = [number for number, origin in zip(sound.tolist(), came_from, strict=True) if origin not in inside]
        self._encode_missing(state, own)
        rows: list[Any] = [None] * len(clip)
        for i, number, origin in zip(np.flatnonzero(~lost).tolist(), sound.tolist(), came_from, strict=True):
            rows[i] = self._clean.encodings[origin] if origin in inside else state.encodings[number]
        bridge = RowInterpolation.over(lost)
        for i, a, b, share in zip(bridge.lost, bridge.before, bridge.after, bridge.share.tolist(), strict=True):
            rows[i] = rows[a] + (rows[b] - rows[a]) * share
        return self._detector.encode_clip(rows, clean)

    def _encode_missing(self, state: _State, numbers: list[int]) -> None:
        """Encode those of the numbered frames that are not encoded yet."""
        missing = np.array(sorted(set(numbers) - state.encodings.keys()), np.int64)
        for lo in range(0, len(missing), AT_ONCE):
            some = missing[lo : lo + AT_ONCE]
            with measure_stage("corrupting"):
                frames = np.concatenate([state.source.block(a, b) for a, b in stretches(some)])
            state.encodings.update(zip(some.tolist(), self._encode(state, frames), strict=True))

    def _encode(self, state: _State, frames: npt.NDArray[np.uint8]) -> list[Any]:
        if state is self._clean or not self._reuse:
            state.encoded += len(frames)
            return list(self._detector.encode_frames(frames))
        keys = [FrameFeatureCache.key(frame) for frame in frames]
        new = {key: row for row, key in enumerate(keys) if key not in self._cache}
        known = dict(self._cache)
        if new:
            state.encoded += len(new)
            known |= zip(new, self._detector.encode_frames(frames[list(new.values())]), strict=True)
        for key in keys:
            self._cache[key] = known[key]
            self._cache.move_to_end(key)
        while len(self._cache) > CACHED:
            self._cache.popitem(last=False)
        return [known[key] for key in keys]

    def _finish(self, parts: Sequence[tuple[int, Any]]) -> Segments:
        candidates = self._detector.merge_clips(parts, len(self._indices))
        return self._detector.to_seconds(candidates, self._rate, self._duration, self._scores)
