"""The features of one video, clean and under any number of corruptions, computed where something changed.

A corruption strikes some frames and leaves the others as they were, byte for byte. So the features of windows without
a struck frame are those of the clean video, and where a network sees each frame by itself, so is what it saw of the
frames that were not struck. The result is the same, to the bit, as if everything were computed again.

Where struck frames are mended, what they touch is not computed at all: what lies around it stands in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from jostle.core.timing import spent_on
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.context import Mask
from jostle.corruptions.engine.placement import Placement, Timeline
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import MADE, Source, chain, origins, stretches
from jostle.errors import BadValue
from jostle.features.deferred_corruption import UNTOUCHED, Strike, Striking
from jostle.features.frames import KEEP_BYTES, Belt, KeptFlow, KeptFrames, Recall
from jostle.features.interpolation import Finder, Finding, Mended, bridged
from jostle.features.result import Cost, Extraction
from jostle.features.windows import ReleasedFault, Rule, WindowGrid, mean_rate, retimed
from jostle.models.extractors.protocol import FeatureExtractor, Features, FlowExtractor

# Work given to a network at once. Networks of jostle divide it further as they like; bits do not depend on it.
BATCH_BYTES, BATCH_FRAMES, BATCH_WINDOWS = 16 * 2**20, 64, 256

Progress = Callable[[int, int], None]
Indices = npt.NDArray[np.int64]


class VideoFeatures:
    """One video before one extractor.

    Args:
        source: the frames, such as a `Reader` or a `ClipSource`.
        rule: how windows are counted.
        released_faults: faults of the THUMOS14-C extractors to repeat, see `WindowGrid`.
        seed: of random draws, which are keyed by `video_id` as well.
        segments: the actions, for placements that need them.
        path: the file the frames come from, where they are exactly what it holds.
        bit_rate: of that file.
        clean: features of the clean video from an earlier run, with which nothing clean is computed again.
        keep_bytes: decoded frames are kept up to this many bytes; a larger video is decoded in passes. As much again
            is kept of optical flow, where an extractor sees it.
        finder: says which frames were struck. What these touch is then replaced by what lies around it: rows of
            windows, or where a network sees each frame by itself, what was seen.

    Attributes:
        grid: its windows.
        fps: frames a second on the axis of the windows.
        cost: what was computed so far.
    """

    def __init__(
        self,
        source: Source,
        extractor: FeatureExtractor,
        *,
        rule: Rule = "all",
        released_faults: Sequence[ReleasedFault] = (),
        seed: int = 0,
        video_id: str = "",
        segments: Segments | None = None,
        path: Path | None = None,
        bit_rate: int | None = None,
        clean: Extraction | None = None,
        keep_bytes: int = KEEP_BYTES,
        finder: Finder | None = None,
        progress: Progress | None = None,
    ) -> None:
        if not len(source):
            raise BadValue("a video without frames has no features")
        if finder is not None and released_faults:
            raise BadValue("released faults are about rows that mending replaces; leave one of the two out")
        wanted = extractor.spec
        self.grid = WindowGrid(wanted.frames, wanted.stride, rule, tuple(released_faults))
        self.fps = wanted.fps or mean_rate(source.pts, source.fps)
        self._source = source if isinstance(source, KeptFrames) else KeptFrames(source, keep_bytes)
        self._extractor = extractor
        self._seed, self._video_id, self._path, self._bit_rate = seed, video_id, path, bit_rate
        self._timeline = Timeline.of(source.pts, source.fps, segments, seed=seed, video_id=video_id)
        self._shown = retimed(source.pts, source.fps, wanted.fps)
        self._count = self.grid.count(len(self._shown))
        every = np.arange(self._count + 1, dtype=np.int64)  # with one beyond the last, which a fault looks at
        self._rows = self._shown[self.grid.frames_of(every, len(self._shown))]  # (T + 1, window) frames of the source
        self._flow: KeptFlow | None = None
        if getattr(extractor, "sees_flow", False):
            self._flow = KeptFlow(cast(FlowExtractor, extractor).flow, keep_bytes)
            # The frames that flow leads from and to; the last frame leads nowhere, and has that of the one before.
            ticks = self.grid.frames_of(every, len(self._shown))
            self._from = np.minimum(ticks, max(len(self._shown) - 2, 0))
            self._to = np.minimum(self._from + 1, len(self._shown) - 1)
        self._recall = Recall()
        self._seen = self._joined = 0
        self._progress = progress
        self._keep_bytes = keep_bytes
        self._clean = None if clean is None else self._checked(clean)
        self._finding = None if finder is None else finder.of(self._source)
        self._mended_clean: Extraction | None = None

    def __len__(self) -> int:
        return self._count

    @property
    def cost(self) -> Cost:
        flows = 0 if self._flow is None else self._flow.computed
        return Cost(self._source.decoded, self._seen, self._joined, flows)

    def clean(self) -> Extraction:
        """The features of the video as it is, or mended; computed once."""
        if self._finding is None:
            return self.plain()
        if self._mended_clean is None:
            self._mended_clean = self._mended(self._source, self._finding, self.cost)
        return self._mended_clean

    def whole(self, specs: Sequence[Spec], placement: str | Placement | None = None) -> Extraction:
        """The features of the corrupted video, every one computed from its frames."""
        top = self._corrupted(specs, placement)
        if self._finding is not None:
            return self._mended_whole(top, self._finding)
        if not self.grid.released_faults:
            return self._whole(top)
        clean, before = self.clean(), self.cost  # which shows through where the released program forgets to look
        windows, rows = self.grid.patched(self._changed(origins(top) != np.arange(len(top))))
        done = self._whole(top, len(self) + 1)
        features = np.array(clean.features)
        features[rows] = done.features[windows]
        return Extraction(features, done.seen, self._since(before))

    def under(self, specs: Sequence[Spec], placement: str | Placement | None = None) -> Extraction:
        """The same features, bit for bit, computed where they can differ from those of the clean video."""
        clean = self.plain()
        before = self.cost
        top = self._corrupted(specs, placement)
        if self._finding is not None:
            return self._mended(top, self._finding, before)
        came_from = origins(top)
        struck = came_from != np.arange(len(came_from))
        features, seen = np.array(clean.features), None
        if clean.seen is None:
            windows, rows = self.grid.patched(self._changed(struck))
            features[rows] = self._windows(top, windows)
        else:
            seen = clean.seen[came_from]  # rows of made frames hold anything until they are filled in
            made = np.flatnonzero(came_from == MADE)
            striking = self._striking(specs, placement)
            seen[made] = self._recalled(top, made) if striking is None else self._struck_there(made, striking)
            if not self.grid.released_faults:  # those go by what was struck, seen or not
                struck = (seen.view(np.uint32) != clean.seen.view(np.uint32)).any(1)
            windows, rows = self.grid.patched(self._changed(struck))
            features[rows] = self._join(seen, windows)
        return Extraction(features, seen, self._since(before))

    def sweep(
        self, cells: Mapping[str, Sequence[Spec]], placement: str | Placement | None = None
    ) -> dict[str, Extraction]:
        """The features under each of many corruptions, one decoding of the video for all of them."""
        return {name: self.under(specs, placement) for name, specs in cells.items()}

    def plain(self) -> Extraction:
        """The features of the video as it is, nothing mended; computed once."""
        if self._clean is None:
            self._clean = self._whole(self._source)
        return self._clean

    def _mended(self, top: Source, finding: Finding, before: Cost) -> Extraction:
        """The features of a state with what struck frames touch replaced, which is not computed."""
        clean, came_from = self.plain(), origins(top)
        known = clean
        if top is not self._source:
            top = KeptFrames(top, self._keep_bytes)  # the inspector and the extractor look at the same frames
            known = self.clean()
        struck = finding.struck(top, came_from)
        if clean.seen is None:
            lost = self._touched(struck)
            left = bool(lost.all())
            lost &= not left
            again = np.flatnonzero(self._touched(came_from != np.arange(len(came_from))) & ~lost)
            features = np.array(clean.features)
            features[again] = self._windows(top, again, came_from)
            return Extraction(bridged(features, lost), None, self._since(before), Mended(struck, left))
        left = bool(struck.all())
        lost = struck & (not left)
        seen = clean.seen[came_from]  # rows of made frames hold anything until they are filled in
        made = np.flatnonzero((came_from == MADE) & ~lost)
        seen[made] = self._recalled(top, made)
        seen = bridged(seen, lost)
        assert known.seen is not None
        again = np.flatnonzero(self._touched((seen.view(np.uint32) != known.seen.view(np.uint32)).any(1)))
        features = np.array(known.features)
        features[again] = self._join(seen, again)
        return Extraction(features, seen, self._since(before), Mended(struck, left))

    def _mended_whole(self, top: Source, finding: Finding) -> Extraction:
        """The same, everything computed first."""
        before = self.cost
        done, struck = self._whole(top), finding.struck(top, origins(top))
        lost = struck if done.seen is not None else self._touched(struck)
        mended = Mended(struck, bool(lost.all()))
        if mended.left:
            return replace(done, cost=self._since(before), mended=mended)
        if done.seen is None:
            return Extraction(bridged(done.features, lost), None, self._since(before), mended)
        seen = bridged(done.seen, lost)
        features = self._join(seen, np.arange(len(self), dtype=np.int64))
        return Extraction(features, seen, self._since(before), mended)

    def _touched(self, frames: Mask) -> Mask:
        """(T,) the windows that see one of these frames of the source, or a way from or to one."""
        windows = np.zeros(len(self), np.bool_)
        windows[self.grid.touched(self._changed(frames))] = True
        return windows

    def _corrupted(self, specs: Sequence[Spec], placement: str | Placement | None) -> Source:
        masks = masks_for(specs, placement, self._timeline)
        seed, video_id, bit_rate, path = self._seed, self._video_id, self._bit_rate, self._path
        return chain(self._source, specs, masks, seed=seed, video_id=video_id, bit_rate=bit_rate, path=path)

    def _whole(self, top: Source, windows: int | None = None) -> Extraction:
        before = self.cost
        every = np.arange(len(self) if windows is None else windows, dtype=np.int64)
        if self._extractor.frame_dim is None:
            return Extraction(self._windows(top, every), None, self._since(before))
        seen = np.empty((len(top), self._extractor.frame_dim), np.float32)
        step, looking = self._frames_at_once(), []
        for lo in range(0, len(top), step):
            hi = min(lo + step, len(top))
            looking.append((lo, hi, self._see(top.block(lo, hi))))
            self._tell(hi, len(top))
        for lo, hi, answer in looking:
            seen[lo:hi] = answer()
        return Extraction(self._join(seen, every), seen, self._since(before))

    def _recalled(self, top: Source, made: Indices) -> Features:
        """What is seen of the frames of these numbers, of which only those with new pixels are looked at."""
        assert self._extractor.frame_dim is not None
        out = np.empty((len(made), self._extractor.frame_dim), np.float32)
        rows_of: dict[bytes, list[int]] = {}  # that are looked at now
        keys: list[bytes] = []
        pictures: list[npt.NDArray[np.uint8]] = []
        looking: list[tuple[list[bytes], Callable[[], Features]]] = []
        step, row = self._frames_at_once(), 0

        def look() -> None:
            looking.append((keys.copy(), self._see(np.stack(pictures))))
            keys.clear()
            pictures.clear()

        for a, b in stretches(made):
            for lo in range(a, b, step):
                for frame in top.block(lo, min(lo + step, b)):
                    key = self._recall.key(frame)
                    known = self._recall.get(key)
                    if known is not None:
                        out[row] = known
                    elif key in rows_of:
                        rows_of[key].append(row)
                    else:
                        rows_of[key] = [row]
                        keys.append(key)
                        pictures.append(np.array(frame))
                    row += 1
                    if len(pictures) == step:
                        look()
                self._tell(row, len(made))
        if pictures:
            look()
        for some, answer in looking:
            for key, seen in zip(some, answer(), strict=True):
                out[rows_of[key]] = seen
                self._recall.put(key, seen)
        return out

    def _striking(self, specs: Sequence[Spec], placement: str | Placement | None) -> Striking | None:
        """What is done to frames where the extractor is; None where they are struck here."""
        there = getattr(self._extractor, "strikes", None)
        if there is None or len(specs) != 1 or not specs[0].severity or not there(str(specs[0])):
            return None
        (mask,) = masks_for(specs, placement, self._timeline)
        return partial(Strike.on, str(specs[0]), self._source, mask, self._seed, self._video_id)

    def _struck_there(self, made: Indices, striking: Striking) -> Features:
        """What is seen of frames that go to the extractor untouched, and are struck there."""
        assert self._extractor.frame_dim is not None
        out = np.empty((len(made), self._extractor.frame_dim), np.float32)
        step, looking = self._frames_at_once(), []
        for lo in range(0, len(made), step):
            some = made[lo : lo + step]
            clean = np.concatenate([self._source.block(a, b) for a, b in stretches(some)])
            looking.append((lo, self._see(clean, striking(some))))
            self._tell(lo + len(some), len(made))
        for lo, answer in looking:
            out[lo : lo + step] = answer()
        return out

    def _windows(self, top: Source, which: Indices, came_from: Indices | None = None) -> Features:
        """Features of these windows, of a network that sees them whole."""
        made = np.empty((len(which), self._extractor.dim), np.float32)
        height, width = top.size
        step = max(BATCH_BYTES // (self.grid.window * height * width * 3), 1)
        look, looking = self._looking(top, origins(top) if came_from is None else came_from), []
        for lo in range(0, len(which), step):
            part = which[lo : lo + step]
            looking.append((lo, look(part)))
            self._joined += len(part)
            self._tell(lo + len(part), len(which))
        for lo, answer in looking:
            made[lo : lo + step] = answer()
        return made

    def _looking(self, top: Source, came_from: Indices) -> Callable[[Indices], Callable[[], Features]]:
        """What has features made of windows of a state of the video that come in order."""
        belt = Belt(top)
        if self._flow is None:
            return lambda windows: self._later("", belt.take(self._rows[windows]))
        flows = self._flow.along(came_from)

        def look(windows: Indices) -> Callable[[], Features]:
            rows, first, second = self._rows[windows], self._shown[self._from[windows]], self._shown[self._to[windows]]
            numbers = np.unique(np.stack([rows, first, second]))
            frames = belt.take(numbers)
            flow = flows.take(first, second, numbers, frames)
            return self._later("", frames[np.searchsorted(numbers, rows)], flow)

        return look

    def _see(self, frames: npt.NDArray[np.uint8], strike: Strike = UNTOUCHED) -> Callable[[], Features]:
        self._seen += len(frames)
        return self._later("see", frames, strike=strike)

    def _later(self, what: str, *shown: npt.NDArray[np.uint8], strike: Strike = UNTOUCHED) -> Callable[[], Features]:
        """What an extractor makes of frames, and of their flow, to be waited for where it is elsewhere and says so."""
        with spent_on("model"):
            if hasattr(self._extractor, "later"):
                return partial(_waited_for, self._extractor.later(what, *shown, strike=strike))
            given = self._extractor.see(*shown) if what == "see" else self._extractor(*shown)
        return lambda: given

    def _join(self, seen: Features, which: Indices) -> Features:
        made = np.empty((len(which), self._extractor.dim), np.float32)
        for lo in range(0, len(which), BATCH_WINDOWS):
            part = which[lo : lo + BATCH_WINDOWS]
            with spent_on("model"):
                made[lo : lo + len(part)] = self._extractor.join(seen[self._rows[part]])
            self._joined += len(part)
        return made

    def _changed(self, struck: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """At which ticks something else is seen than in the clean video: a struck frame, or a way from or to one."""
        shown = struck[self._shown]
        if self._flow is None:
            return shown
        changed = shown.copy()
        changed[:-1] |= shown[1:]
        changed[-1:] |= shown[-2:-1]  # the last frame has the flow of the one before
        return changed

    def _frames_at_once(self) -> int:
        height, width = self._source.size
        return min(max(BATCH_BYTES // (height * width * 3), 1), BATCH_FRAMES)

    def _since(self, before: Cost) -> Cost:
        return self.cost - before

    def _tell(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(done, total)

    def _checked(self, clean: Extraction) -> Extraction:
        """Clean features from elsewhere, if they can be those of this video."""
        wide = self._extractor.frame_dim
        if wide is not None and clean.seen is None:
            raise BadValue("clean features help only with what was seen of each frame: extract them with keep_frames")
        for what, found, shape in (
            ("clean features", clean.features, (len(self), self._extractor.dim)),
            ("what was seen of the clean frames", clean.seen, (len(self._source), wide)),
        ):
            if found is not None and (found.shape != shape or found.dtype != np.float32):
                raise BadValue(f"{what} must be {shape} float32 for this video, not {found.shape} {found.dtype}")
        return clean


def _waited_for(answer: Callable[[], Features]) -> Features:
    with spent_on("model"):
        return answer()
