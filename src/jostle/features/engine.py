"""Incremental feature extraction: a video's clean features, and under corruptions only what changed.

A corruption changes some frames and leaves the others as they were, byte for byte. So the features of windows without
a changed frame are those of the clean video, and where a network processes single frames, so are the features of
unchanged frames. The result is the same, to the bit, as if everything were computed again.

Where damaged frames are mended, the features they touch are not computed but interpolated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from jostle.core.finite import check_finite, naming
from jostle.core.timing import measure_stage
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.context import Mask
from jostle.corruptions.engine.placement import Placement, Timeline
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import MADE, PipelineSource, chain, origins, stretches
from jostle.errors import BadValue
from jostle.features.caches import KEEP_BYTES, CachedFrames, FlowCache, FrameFeatureCache, SlidingFrames
from jostle.features.deferred_corruption import NO_CORRUPTION, DeferredCorruption, DeferredCorruptionFactory
from jostle.features.interpolation import DamageFinder, MendingResult, MendingStrategy, interpolate_rows
from jostle.features.windows import ReleasedBug, Rule, WindowGrid, mean_rate, resample_frames
from jostle.models.extractors.protocol import FeatureExtractor, Features, FlowExtractor


@dataclass(frozen=True)
class Cost:
    """Amount of computation of an extraction.

    >>> Cost(3, 2, 1) + Cost(1, 1, 1, flows=4)
    Cost(decoded=4, seen=3, joined=2, flows=4)
    """

    decoded: int = 0  # number of decoded frames
    seen: int = 0  # number of frames that the frame part of a network processed
    joined: int = 0  # number of windows for which a feature was computed
    flows: int = 0  # number of frame pairs for which optical flow was computed

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: Cost) -> Cost:
        return Cost(*(mine - theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, eq=False)
class Extraction:
    """Features of one video in one state."""

    features: Features  # (T, C) float32, one row a window
    # (N, D) float32 features of single frames; None for a network that processes whole windows.
    seen: Features | None = None
    cost: Cost = field(default_factory=Cost)
    mended: MendingResult | None = None  # outcome of mending; None without mending


# Batch sizes. The networks of jostle may divide a batch further; the bits do not depend on it.
BATCH_BYTES, BATCH_FRAMES, BATCH_WINDOWS = 16 * 2**20, 64, 256

Progress = Callable[[int, int], None]
Indices = npt.NDArray[np.int64]


class VideoFeatures:
    """Features of one video by one extractor.

    Args:
        source: the frames, such as a `Reader` or a `ClipSource`.
        rule: how windows are counted.
        reproduce_bugs: faults of the THUMOS14-C extractors to repeat, see `WindowGrid`.
        seed: seed of the corruptions, keyed by `video_id` as well.
        segments: the actions, for placements that need them.
        path: the file of the frames, if they are exactly what it holds.
        bit_rate: of that file.
        clean: features of the clean video from an earlier run, which are reused.
        keep_bytes: size of the cache of decoded frames; a larger video is decoded in passes. The cache of optical flow,
            if the extractor uses it, has the same size.
        finder: finds damaged frames. What they touch is interpolated from what lies around it: rows of windows, or
            frame features where the network computes them.

    Attributes:
        grid: its windows.
        fps: frames a second on the axis of the windows.
        cost: amount of computation so far.
    """

    def __init__(
        self,
        source: PipelineSource,
        extractor: FeatureExtractor,
        *,
        rule: Rule = "all",
        reproduce_bugs: Sequence[ReleasedBug] = (),
        seed: int = 0,
        video_id: str = "",
        segments: Segments | None = None,
        path: Path | None = None,
        bit_rate: int | None = None,
        clean: Extraction | None = None,
        keep_bytes: int = KEEP_BYTES,
        finder: MendingStrategy | None = None,
        progress: Progress | None = None,
    ) -> None:
        if not len(source):
            raise BadValue("a video without frames has no features")
        if finder is not None and reproduce_bugs:
            raise BadValue("reproduced bugs are about rows that mending replaces; leave one of the two out")
        spec = extractor.spec
        self.grid = WindowGrid(spec.frames, spec.stride, rule, tuple(reproduce_bugs))
        self.fps = spec.fps or mean_rate(source.pts, source.fps)
        self._source = source if isinstance(source, CachedFrames) else CachedFrames(source, keep_bytes)
        self._extractor = extractor
        self._seed, self._video_id, self._path, self._bit_rate = seed, video_id, path, bit_rate
        self._timeline = Timeline.of(source.pts, source.fps, segments, seed=seed, video_id=video_id)
        self._ticks = resample_frames(source.pts, source.fps, spec.fps)
        self._count = self.grid.count(len(self._ticks))
        every = np.arange(self._count + 1, dtype=np.int64)  # with one beyond the last, for "early-row"
        self._rows = self._ticks[self.grid.frames_of(every, len(self._ticks))]  # (T + 1, window) frames of the source
        self._flow: FlowCache | None = None
        if getattr(extractor, "sees_flow", False):
            self._flow = FlowCache(cast(FlowExtractor, extractor).flow, keep_bytes)
            # The frames that flow leads from and to; the last frame repeats the flow of the one before.
            ticks = self.grid.frames_of(every, len(self._ticks))
            self._flow_from = np.minimum(ticks, max(len(self._ticks) - 2, 0))
            self._flow_to = np.minimum(self._flow_from + 1, len(self._ticks) - 1)
        self._feature_cache = FrameFeatureCache()
        self._seen_count = self._joined_count = 0
        self._progress = progress
        self._keep_bytes = keep_bytes
        self._clean = None if clean is None else self._check_clean(clean)
        self._damage_finder = None if finder is None else finder.finder_for(self._source)
        self._mended_clean: Extraction | None = None

    def __len__(self) -> int:
        return self._count

    @property
    def cost(self) -> Cost:
        flows = 0 if self._flow is None else self._flow.computed
        return Cost(self._source.decoded, self._seen_count, self._joined_count, flows)

    def clean(self) -> Extraction:
        """Return the features of the clean video, mended if requested; computed once."""
        if self._damage_finder is None:
            return self.plain()
        if self._mended_clean is None:
            self._mended_clean = self._extract_mended(self._source, self._damage_finder, self.cost)
        return self._mended_clean

    def whole(self, specs: Sequence[Spec], placement: str | Placement | None = None) -> Extraction:
        """Return the features of the corrupted video, all computed from its frames."""
        top = self._corrupted(specs, placement)
        if self._damage_finder is not None:
            return self._extract_mended_fully(top, self._damage_finder)
        if not self.grid.reproduce_bugs:
            return self._extract_fully(top)
        clean, before = self.clean(), self.cost  # rows that the released program fails to replace
        windows, rows = self.grid.patched(self._changed_ticks(origins(top) != np.arange(len(top))))
        done = self._extract_fully(top, len(self) + 1)
        features = np.array(clean.features)
        features[rows] = done.features[windows]
        return Extraction(features, done.seen, self._cost_since(before))

    def under(self, specs: Sequence[Spec], placement: str | Placement | None = None) -> Extraction:
        """Return the same features as `whole`, bit for bit, computed only where they can differ from the clean ones."""
        clean = self.plain()
        before = self.cost
        top = self._corrupted(specs, placement)
        if self._damage_finder is not None:
            return self._extract_mended(top, self._damage_finder, before)
        came_from = origins(top)
        changed = came_from != np.arange(len(came_from))
        features, frame_features = np.array(clean.features), None
        if clean.seen is None:
            windows, rows = self.grid.patched(self._changed_ticks(changed))
            features[rows] = self._extract_windows(top, windows)
        else:
            frame_features = clean.seen[came_from]  # rows of new frames are arbitrary until they are filled in
            created = np.flatnonzero(came_from == MADE)
            defer = self._deferred_corruption(specs, placement)
            frame_features[created] = (
                self._embed_made(top, created) if defer is None else self._embed_deferred(created, defer)
            )
            if not self.grid.reproduce_bugs:  # the bugs depend on which frames were corrupted, visibly or not
                changed = (frame_features.view(np.uint32) != clean.seen.view(np.uint32)).any(1)
            windows, rows = self.grid.patched(self._changed_ticks(changed))
            features[rows] = self._join(frame_features, windows)
        return Extraction(features, frame_features, self._cost_since(before))

    def sweep(
        self, cells: Mapping[str, Sequence[Spec]], placement: str | Placement | None = None
    ) -> dict[str, Extraction]:
        """Return the features under each of many corruptions, decoding the video once."""
        return {name: self.under(specs, placement) for name, specs in cells.items()}

    def plain(self) -> Extraction:
        """Return the features of the clean video without mending; computed once."""
        if self._clean is None:
            self._clean = self._extract_fully(self._source)
        return self._clean

    def _extract_mended(self, top: PipelineSource, finder: DamageFinder, before: Cost) -> Extraction:
        """Extract a state of the video, interpolating what damaged frames touch instead of computing it."""
        clean, came_from = self.plain(), origins(top)
        reference = clean
        if top is not self._source:
            top = CachedFrames(top, self._keep_bytes)  # the inspector and the extractor read the same frames
            reference = self.clean()
        damaged = finder.find_damaged(top, came_from)
        if clean.seen is None:
            lost = self._touched_windows(damaged)
            unmended = bool(lost.all())
            lost &= not unmended
            stale = np.flatnonzero(self._touched_windows(came_from != np.arange(len(came_from))) & ~lost)
            features = np.array(clean.features)
            features[stale] = self._extract_windows(top, stale, came_from)
            return Extraction(
                interpolate_rows(features, lost), None, self._cost_since(before), MendingResult(damaged, unmended)
            )
        unmended = bool(damaged.all())
        lost = damaged & (not unmended)
        frame_features = clean.seen[came_from]  # rows of new frames are arbitrary until they are filled in
        created = np.flatnonzero((came_from == MADE) & ~lost)
        frame_features[created] = self._embed_made(top, created)
        frame_features = interpolate_rows(frame_features, lost)
        assert reference.seen is not None
        stale = np.flatnonzero(
            self._touched_windows((frame_features.view(np.uint32) != reference.seen.view(np.uint32)).any(1))
        )
        features = np.array(reference.features)
        features[stale] = self._join(frame_features, stale)
        return Extraction(features, frame_features, self._cost_since(before), MendingResult(damaged, unmended))

    def _extract_mended_fully(self, top: PipelineSource, finder: DamageFinder) -> Extraction:
        """Extract a mended state without reusing clean features."""
        before = self.cost
        done, damaged = self._extract_fully(top), finder.find_damaged(top, origins(top))
        lost = damaged if done.seen is not None else self._touched_windows(damaged)
        mended = MendingResult(damaged, bool(lost.all()))
        if mended.left:
            return replace(done, cost=self._cost_since(before), mended=mended)
        if done.seen is None:
            return Extraction(interpolate_rows(done.features, lost), None, self._cost_since(before), mended)
        frame_features = interpolate_rows(done.seen, lost)
        features = self._join(frame_features, np.arange(len(self), dtype=np.int64))
        return Extraction(features, frame_features, self._cost_since(before), mended)

    def _touched_windows(self, frames: Mask) -> Mask:
        """Return the (T,) mask of windows that contain one of these source frames, or flow from or to one."""
        windows = np.zeros(len(self), np.bool_)
        windows[self.grid.touched(self._changed_ticks(frames))] = True
        return windows

    def _corrupted(self, specs: Sequence[Spec], placement: str | Placement | None) -> PipelineSource:
        masks = masks_for(specs, placement, self._timeline)
        seed, video_id, bit_rate, path = self._seed, self._video_id, self._bit_rate, self._path
        return chain(self._source, specs, masks, seed=seed, video_id=video_id, bit_rate=bit_rate, path=path)

    def _extract_fully(self, top: PipelineSource, windows: int | None = None) -> Extraction:
        before = self.cost
        every = np.arange(len(self) if windows is None else windows, dtype=np.int64)
        if self._extractor.frame_dim is None:
            return Extraction(self._extract_windows(top, every), None, self._cost_since(before))
        frame_features = np.empty((len(top), self._extractor.frame_dim), np.float32)
        step, pending = self._frames_at_once(), []
        for lo in range(0, len(top), step):
            hi = min(lo + step, len(top))
            pending.append((lo, hi, self._embed_frames(top.block(lo, hi))))
            self._report_progress(hi, len(top))
        for lo, hi, answer in pending:
            frame_features[lo:hi] = answer()
        return Extraction(self._join(frame_features, every), frame_features, self._cost_since(before))

    def _embed_made(self, top: PipelineSource, numbers: Indices) -> Features:
        """Return the features of these frames, processing each distinct picture once."""
        assert self._extractor.frame_dim is not None
        out = np.empty((len(numbers), self._extractor.frame_dim), np.float32)
        rows_of: dict[bytes, list[int]] = {}  # rows of `out` by picture
        keys: list[bytes] = []
        pictures: list[npt.NDArray[np.uint8]] = []
        pending: list[tuple[list[bytes], Callable[[], Features]]] = []
        step, row = self._frames_at_once(), 0

        def submit() -> None:
            pending.append((keys.copy(), self._embed_frames(np.stack(pictures))))
            keys.clear()
            pictures.clear()

        for a, b in stretches(numbers):
            for lo in range(a, b, step):
                for frame in top.block(lo, min(lo + step, b)):
                    key = self._feature_cache.key(frame)
                    known = self._feature_cache.get(key)
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
                        submit()
                self._report_progress(row, len(numbers))
        if pictures:
            submit()
        for batch, answer in pending:
            for key, features in zip(batch, answer(), strict=True):
                out[rows_of[key]] = features
                self._feature_cache.put(key, features)
        return out

    def _deferred_corruption(
        self, specs: Sequence[Spec], placement: str | Placement | None
    ) -> DeferredCorruptionFactory | None:
        """Return the factory of corruptions that run on the extractor's device; None to corrupt here."""
        can_corrupt = getattr(self._extractor, "can_corrupt", None)
        if can_corrupt is None or len(specs) != 1 or not specs[0].severity or not can_corrupt(str(specs[0])):
            return None
        (mask,) = masks_for(specs, placement, self._timeline)
        return partial(DeferredCorruption.on, str(specs[0]), self._source, mask, self._seed, self._video_id)

    def _embed_deferred(self, numbers: Indices, defer: DeferredCorruptionFactory) -> Features:
        """Return the features of frames that are sent clean and corrupted on the extractor's device."""
        assert self._extractor.frame_dim is not None
        out = np.empty((len(numbers), self._extractor.frame_dim), np.float32)
        step, pending = self._frames_at_once(), []
        for lo in range(0, len(numbers), step):
            batch = numbers[lo : lo + step]
            clean = np.concatenate([self._source.block(a, b) for a, b in stretches(batch)])
            pending.append((lo, self._embed_frames(clean, defer(batch))))
            self._report_progress(lo + len(batch), len(numbers))
        for lo, answer in pending:
            out[lo : lo + step] = answer()
        return out

    def _extract_windows(self, top: PipelineSource, which: Indices, came_from: Indices | None = None) -> Features:
        """Return the features of these windows, from a network that processes whole windows."""
        features = np.empty((len(which), self._extractor.dim), np.float32)
        height, width = top.size
        step = max(BATCH_BYTES // (self.grid.window * height * width * 3), 1)
        submit, pending = self._window_submitter(top, origins(top) if came_from is None else came_from), []
        for lo in range(0, len(which), step):
            part = which[lo : lo + step]
            pending.append((lo, submit(part)))
            self._joined_count += len(part)
            self._report_progress(lo + len(part), len(which))
        for lo, answer in pending:
            features[lo : lo + step] = answer()
        return features

    def _window_submitter(self, top: PipelineSource, came_from: Indices) -> Callable[[Indices], Callable[[], Features]]:
        """Return a function that submits successive windows of a state of the video to the extractor."""
        belt = SlidingFrames(top)
        if self._flow is None:
            return lambda windows: self._submit("", belt.take(self._rows[windows]))
        flows = self._flow.for_state(came_from)

        def submit(windows: Indices) -> Callable[[], Features]:
            rows, first, second = (
                self._rows[windows],
                self._ticks[self._flow_from[windows]],
                self._ticks[self._flow_to[windows]],
            )
            numbers = np.unique(np.stack([rows, first, second]))
            frames = belt.take(numbers)
            flow = flows.take(first, second, numbers, frames)
            return self._submit("", frames[np.searchsorted(numbers, rows)], flow)

        return submit

    def _embed_frames(
        self, frames: npt.NDArray[np.uint8], deferred: DeferredCorruption = NO_CORRUPTION
    ) -> Callable[[], Features]:
        self._seen_count += len(frames)
        return self._submit("see", frames, deferred=deferred)

    def _submit(
        self, method: str, *inputs: npt.NDArray[np.uint8], deferred: DeferredCorruption = NO_CORRUPTION
    ) -> Callable[[], Features]:
        """Submit frames, and their flow, to the extractor; a remote one computes while the caller goes on."""
        with measure_stage("model"):
            if hasattr(self._extractor, "submit"):
                pending = self._extractor.submit(method, *inputs, deferred=deferred)
                return lambda: self._finite(_wait_for(pending))
            features = self._extractor.see(*inputs) if method == "see" else self._extractor(*inputs)
        return lambda: self._finite(features)

    def _join(self, frame_features: Features, which: Indices) -> Features:
        features = np.empty((len(which), self._extractor.dim), np.float32)
        for lo in range(0, len(which), BATCH_WINDOWS):
            part = which[lo : lo + BATCH_WINDOWS]
            with measure_stage("model"):
                features[lo : lo + len(part)] = self._finite(self._extractor.join(frame_features[self._rows[part]]))
            self._joined_count += len(part)
        return features

    def _finite(self, features: Features) -> Features:
        """Return what the extractor computed, unless it holds NaN or infinities."""
        with naming(video=self._video_id):
            check_finite(np.asarray(features), "the extractor, features")
        return features

    def _changed_ticks(self, frames: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return the mask of ticks that differ from the clean video: a changed frame, or flow from or to one."""
        at_ticks = frames[self._ticks]
        if self._flow is None:
            return at_ticks
        changed = at_ticks.copy()
        changed[:-1] |= at_ticks[1:]
        changed[-1:] |= at_ticks[-2:-1]  # the last frame repeats the flow of the one before
        return changed

    def _frames_at_once(self) -> int:
        height, width = self._source.size
        return min(max(BATCH_BYTES // (height * width * 3), 1), BATCH_FRAMES)

    def _cost_since(self, before: Cost) -> Cost:
        return self.cost - before

    def _report_progress(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(done, total)

    def _check_clean(self, clean: Extraction) -> Extraction:
        """Return clean features from an earlier run, once their shapes fit this video."""
        frame_dim = self._extractor.frame_dim
        if frame_dim is not None and clean.seen is None:
            raise BadValue(
                "clean features of this extractor need the features of each frame: extract them with keep_frames"
            )
        for name, array, shape in (
            ("clean features", clean.features, (len(self), self._extractor.dim)),
            ("clean frame features", clean.seen, (len(self._source), frame_dim)),
        ):
            if array is not None and (array.shape != shape or array.dtype != np.float32):
                raise BadValue(f"{name} must be {shape} float32 for this video, not {array.shape} {array.dtype}")
        return clean


def _wait_for(answer: Callable[[], Features]) -> Features:
    with measure_stage("model"):
        return answer()
