"""Detections by a detector of frames: clip by clip as the video comes, anew only where a corruption struck.

What is found in a clip without a struck frame is what was found before. In a clip with some, only these are looked at
anew as far as the network sees frames one by one, and only what lies around them as far as it sees a frame and its
neighbours. The result is the same, to the bit, as if every clip of every cell were looked at from its pixels; and no
more than the frames of a clip are held, however long the video.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from jostle.core.timing import spent_on
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.context import Mask
from jostle.corruptions.engine.stages import Source, origins, stretches
from jostle.features.frames import Recall
from jostle.features.interpolation import Bridge
from jostle.features.result import Cost
from jostle.features.windows import mean_rate

AT_ONCE = 64  # frames that are fetched together
RECALLED = 64  # pictures that corruptions made and that are known when they come again, as a black frame does

Indices = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]


class ClipDetector(Protocol):
    """What finds segments in the frames of clips; every detector of jostle that looks at frames does."""

    config: Any

    def wanted(self, count: int, fps: float) -> tuple[Indices, float]: ...
    def clips(self, count: int) -> list[int]: ...
    def seen_of(self, frames: npt.ArrayLike) -> Any: ...
    def deepened(self, seen: Sequence[Any], beside: Any = None) -> Any: ...
    def found_in(self, deep: Any) -> Any: ...
    def gathered(self, parts: Sequence[tuple[int, Any]], count: int) -> Any: ...
    def seconds_of(
        self, found: Any, rate: float, duration: float, video_scores: npt.ArrayLike | None = None
    ) -> Segments: ...


@dataclass(frozen=True)
class Found:
    """What was found in a video.

    Attributes:
        segments: by state.
        clean, others: what was computed for clean clips and for struck ones.
        left: states with a clip that stayed as it was, as all its frames were struck.
    """

    segments: dict[str, Segments]
    clean: Cost
    others: Cost
    left: frozenset[str] = frozenset()


class _State:
    """The video in one state, and what was seen of the frames of the clip that is looked at."""

    def __init__(self, source: Source, struck: Mask | None = None) -> None:
        self.source = source
        self.came_from = origins(source)
        self.struck = np.zeros(len(source), np.bool_) if struck is None else struck
        self.seen: dict[int, Any] = {}
        self.looks = self.clips = 0

    def forget(self, before: int) -> None:
        """Drop what was seen of frames that no further clip has."""
        self.seen = {number: row for number, row in self.seen.items() if number >= before}


class VideoClips:
    """One video before one detector of frames.

    Args:
        clean: its frames as they are.
        duration: in seconds.
        video_scores: for class-agnostic detectors.
        progress: told of clips.
    """

    def __init__(
        self,
        clean: Source,
        detector: ClipDetector,
        *,
        duration: float,
        video_scores: npt.ArrayLike | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._clean, self._detector = _State(clean), detector
        self._duration, self._scores, self._progress = duration, video_scores, progress
        self._taken, self._rate = detector.wanted(len(clean), mean_rate(clean.pts, clean.fps))
        self._recalled: OrderedDict[bytes, Any] = OrderedDict()

    def found(self, states: Mapping[str, Source], struck: Mapping[str, Mask] | None = None) -> Found:
        """What is found in each state of the video.

        Args:
            struck: which frames of each were struck. They are not looked at: in their clips, what was seen of the sound
                ones around them stands in.
        """
        taken, length = self._taken, self._detector.config.max_length
        others = {name: _State(source, None if struck is None else struck[name]) for name, source in states.items()}
        left: set[str] = set()
        parts: dict[str, list[tuple[int, Any]]] = {name: [] for name in states}
        firsts = self._detector.clips(len(taken))
        for done, first in enumerate(firsts, 1):
            clip, clean, plain = taken[first : first + length], None, dict[bytes, Any]()
            if len(others) > 1:  # of a single state all is computed once, and there is nothing to save
                clean = self._deepened(self._clean, clip, self._clean.struck[clip], None)
            for name, state in others.items():
                lost = state.struck[clip]
                if lost.all():
                    left.add(name)
                    lost = ~lost
                if (state.came_from[clip][~lost] == clip[~lost]).all():
                    if lost.tobytes() not in plain:
                        plain[lost.tobytes()] = self._looked_at(self._clean, clip, lost, clean)
                    found = plain[lost.tobytes()]
                else:
                    found = self._looked_at(state, clip, lost, clean)
                parts[name].append((first, found))
            for state in (self._clean, *others.values()):
                state.forget(int(taken[firsts[done]]) if done < len(firsts) else len(taken))
            if self._progress is not None:
                self._progress(done, len(firsts))
        segments = {name: self._ended(found) for name, found in parts.items()}
        cost = Cost(0, sum(state.looks for state in others.values()), sum(state.clips for state in others.values()))
        return Found(segments, Cost(0, self._clean.looks, self._clean.clips), cost, frozenset(left))

    def _looked_at(self, state: _State, clip: Indices, lost: Mask, clean: Any) -> Any:
        """The candidates of a clip, beside what was made of the clean one, where there is that."""
        state.clips += 1
        same = state is self._clean and clean is not None and not lost.any()
        return self._detector.found_in(clean if same else self._deepened(state, clip, lost, clean))

    def _deepened(self, state: _State, clip: Indices, lost: Mask, clean: Any) -> Any:
        """What the layers make of a clip; of its frames those that are clean ones of the same clip were seen before."""
        sound = clip[~lost]
        inside, came_from = set(clip.tolist()), state.came_from[sound].tolist()
        known = [number for number in came_from if number in inside]
        self._see(self._clean, known)
        own = [number for number, origin in zip(sound.tolist(), came_from, strict=True) if origin not in inside]
        self._see(state, own)
        rows: list[Any] = [None] * len(clip)
        for place, number, origin in zip(np.flatnonzero(~lost).tolist(), sound.tolist(), came_from, strict=True):
            rows[place] = self._clean.seen[origin] if origin in inside else state.seen[number]
        bridge = Bridge.over(lost)
        for place, a, b, share in zip(bridge.lost, bridge.before, bridge.after, bridge.share.tolist(), strict=True):
            rows[place] = rows[a] + (rows[b] - rows[a]) * share
        return self._detector.deepened(rows, clean)

    def _see(self, state: _State, numbers: list[int]) -> None:
        """Look at the frames of these numbers that were not looked at yet."""
        missing = np.array(sorted(set(numbers) - state.seen.keys()), np.int64)
        for lo in range(0, len(missing), AT_ONCE):
            some = missing[lo : lo + AT_ONCE]
            with spent_on("corrupting"):
                frames = np.concatenate([state.source.block(a, b) for a, b in stretches(some)])
            state.seen.update(zip(some.tolist(), self._seen(state, frames), strict=True))

    def _seen(self, state: _State, frames: npt.NDArray[np.uint8]) -> list[Any]:
        if state is self._clean:
            state.looks += len(frames)
            return list(self._detector.seen_of(frames))
        keys = [Recall.key(frame) for frame in frames]
        new = {key: row for row, key in enumerate(keys) if key not in self._recalled}
        known = dict(self._recalled)
        if new:
            state.looks += len(new)
            known |= zip(new, self._detector.seen_of(frames[list(new.values())]), strict=True)
        for key in keys:
            self._recalled[key] = known[key]
            self._recalled.move_to_end(key)
        while len(self._recalled) > RECALLED:
            self._recalled.popitem(last=False)
        return [known[key] for key in keys]

    def _ended(self, parts: Sequence[tuple[int, Any]]) -> Segments:
        found = self._detector.gathered(parts, len(self._taken))
        return self._detector.seconds_of(found, self._rate, self._duration, self._scores)
