"""Incremental feature extraction: a video's clean features, and under corruptions only what changed.

A corruption changes some frames and leaves the others as they were, byte for byte. So the features of windows without
a changed frame are those of the clean video, and where a network processes single frames, so are the features of
unchanged frames. The result is the same, to the bit, as if everything were computed again, if the extractor keeps the
promise of its protocol; a run checks that on one cell.

Where damaged frames are mended, the features they touch are not computed but interpolated.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

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
from jostle.features.deferred_corruption import (
    DeferredCorruption,
    DeferredCorruptionFactory,
    DeferredCorruptions,
    corrupts_on_device,
)
from jostle.features.extraction import CellExtraction, Cost, Extraction
from jostle.features.interpolation import DamageFinder, MendingResult, MendingStrategy, interpolate_rows
from jostle.features.options import ReleasedBug, Rule
from jostle.features.windows import WindowGrid, mean_rate, resample_frames
from jostle.models.extractors.protocol import FeatureExtractor, Features, FlowExtractor

# Batch sizes. The networks of jostle may divide a batch further; the bits do not depend on it.
BATCH_BYTES, BATCH_FRAMES, BATCH_WINDOWS = 16 * 2**20, 64, 256

# Cells whose frames are sent once, to be corrupted on the extractor's device; and groups of cells that are in progress,
# and that are begun before the first is waited for: while a core corrupts one, the device is done with those before.
CELLS_AT_ONCE, IN_PROGRESS, BEFORE_WAITING = 16, 8, 4

Progress = Callable[[int, int], None]
Indices = npt.NDArray[np.int64]
Corruptions = tuple[Sequence[Spec], str | Placement | None]  # the specs of a cell and their placement


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
        self._in_flight: dict[bytes, Callable[[], Features]] = {}  # by picture, those submitted and not cached yet
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
            before = self.cost
            mended = self._extract_mended(self._source, self._damage_finder)
            self._mended_clean = replace(mended, cost=self._cost_since(before))
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
        ((_, done),) = self.sweep({"": (specs, placement)})
        return done

    def sweep(self, cells: Mapping[str, Corruptions]) -> Iterator[tuple[str, Extraction]]:
        """Yield the features under each of many corruptions in order, decoding the video once.

        With an extractor in another process, cells are corrupted here while it computes those before.
        """
        clean = self.plain()
        most = IN_PROGRESS if hasattr(self._extractor, "submit") else 1
        in_progress: deque[list[CellExtraction]] = deque()
        for together in self._groups(cells):
            self._submit_frames(together, clean)
            in_progress.append(together)
            for earlier in list(in_progress)[:-BEFORE_WAITING]:
                self._submit_windows(earlier, clean)
            if len(in_progress) == most:
                yield from self._finish_cells(in_progress.popleft(), clean)
        while in_progress:
            for earlier in list(in_progress)[:2]:
                self._submit_windows(earlier, clean)
            yield from self._finish_cells(in_progress.popleft(), clean)

    def _groups(self, cells: Mapping[str, Corruptions]) -> Iterator[list[CellExtraction]]:
        """Yield cells that are computed together: those for which an extractor's device corrupts the same frames."""
        group: list[CellExtraction] = []
        for name, (specs, placement) in cells.items():
            before = self.cost
            top = self._corrupted(specs, placement)
            came_from, defer = origins(top), None
            if self._damage_finder is None and self._extractor.frame_dim is not None:
                defer = self._deferred_corruption(specs, placement)
            created = np.flatnonzero(came_from == MADE)
            cell = CellExtraction(name, top, came_from, created, defer, self._cost_since(before))
            if group and (len(group) == CELLS_AT_ONCE or not group[0].can_join(cell)):
                yield group
                group = []
            group.append(cell)
        if group:
            yield group

    def _submit_frames(self, cells: Sequence[CellExtraction], clean: Extraction) -> None:
        """Submit the frames, or windows of frames, that cells changed."""
        for cell, answer in zip(cells, self._embed_deferred(cells), strict=False):
            cell.finish = answer
        for cell in cells:
            with self._account(cell):
                if self._damage_finder is not None:
                    cell.done = self._extract_mended(cell.top, self._damage_finder)
                elif clean.seen is None:
                    changed = cell.came_from != np.arange(len(cell.came_from))
                    windows, cell.rows = self.grid.patched(self._changed_ticks(changed))
                    cell.finish = self._extract_windows(cell.top, windows)
                elif cell.defer is None:
                    cell.finish = self._embed_made(cell.top, cell.created)

    def _submit_windows(self, cells: Sequence[CellExtraction], clean: Extraction) -> None:
        """Wait for the features of frames, and submit the windows that they change; once for each cell."""
        for cell in cells:
            if cell.done is not None or cell.rows is not None:
                continue
            assert clean.seen is not None
            with self._account(cell):
                frame_features = clean.seen[cell.came_from]  # rows of new frames are arbitrary until they are filled in
                frame_features[cell.created] = cell.finish()
                if self.grid.reproduce_bugs:  # the bugs depend on which frames were corrupted, visibly or not
                    changed = cell.came_from != np.arange(len(cell.came_from))
                else:
                    changed = (frame_features.view(np.uint32) != clean.seen.view(np.uint32)).any(1)
                windows, cell.rows = self.grid.patched(self._changed_ticks(changed))
                cell.frame_features, cell.finish = frame_features, self._submit_join(frame_features, windows)

    def _finish_cells(self, cells: Sequence[CellExtraction], clean: Extraction) -> Iterator[tuple[str, Extraction]]:
        """Wait for the features of windows, and yield the extractions."""
        self._submit_windows(cells, clean)
        for cell in cells:
            done = cell.done
            if done is None:
                features = np.array(clean.features)
                with self._account(cell):
                    features[cell.rows] = cell.finish()
                done = Extraction(features, cell.frame_features)
            yield cell.name, replace(done, cost=cell.cost)

    @contextmanager
    def _account(self, cell: CellExtraction) -> Iterator[None]:
        """Add what is computed meanwhile to the cost of a cell, and name the cell in errors."""
        before = self.cost
        with naming(cell=cell.name):
            yield
        cell.cost += self._cost_since(before)

    def plain(self) -> Extraction:
        """Return the features of the clean video without mending; computed once."""
        if self._clean is None:
            self._clean = self._extract_fully(self._source)
        return self._clean

    def _extract_mended(self, top: PipelineSource, finder: DamageFinder) -> Extraction:
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
            features[stale] = self._extract_windows(top, stale, came_from)()
            return Extraction(interpolate_rows(features, lost), mended=MendingResult(damaged, unmended))
        unmended = bool(damaged.all())
        lost = damaged & (not unmended)
        frame_features = clean.seen[came_from]  # rows of new frames are arbitrary until they are filled in
        created = np.flatnonzero((came_from == MADE) & ~lost)
        frame_features[created] = self._embed_made(top, created)()
        frame_features = interpolate_rows(frame_features, lost)
        assert reference.seen is not None
        stale = np.flatnonzero(
            self._touched_windows((frame_features.view(np.uint32) != reference.seen.view(np.uint32)).any(1))
        )
        features = np.array(reference.features)
        features[stale] = self._submit_join(frame_features, stale)()
        return Extraction(features, frame_features, mended=MendingResult(damaged, unmended))

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
        features = self._submit_join(frame_features, np.arange(len(self), dtype=np.int64))()
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
            return Extraction(self._extract_windows(top, every)(), None, self._cost_since(before))
        frame_features = np.empty((len(top), self._extractor.frame_dim), np.float32)
        step, pending = self._frames_at_once(), []
        for lo in range(0, len(top), step):
            hi = min(lo + step, len(top))
            pending.append((lo, hi, self._embed_frames(top.block(lo, hi))))
            self._report_progress(hi, len(top))
        for lo, hi, answer in pending:
            frame_features[lo:hi] = answer()
        return Extraction(self._submit_join(frame_features, every)(), frame_features, self._cost_since(before))

    def _embed_made(self, top: PipelineSource, numbers: Indices) -> Callable[[], Features]:
        """Submit these frames, each distinct picture once; the returned function waits for their features."""
        assert self._extractor.frame_dim is not None
        out = np.empty((len(numbers), self._extractor.frame_dim), np.float32)
        rows_of: dict[bytes, list[int]] = {}  # rows of `out` by picture
        awaited: dict[bytes, Callable[[], Features]] = {}  # pictures that an earlier cell submitted
        keys: list[bytes] = []
        pending: list[tuple[list[bytes], Callable[[], Features]]] = []
        step, row = self._frames_at_once(), 0
        pictures = np.empty((min(step, len(numbers)), *top.size, 3), np.uint8)  # one for each of `keys`

        def submit() -> None:
            answer = cache(self._embed_frames(pictures[: len(keys)]))
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

    def _deferred_corruption(
        self, specs: Sequence[Spec], placement: str | Placement | None
    ) -> DeferredCorruptionFactory | None:
        """Return the factory of corruptions that run on the extractor's device; None to corrupt here."""
        if not corrupts_on_device(self._extractor, specs):
            return None
        (mask,) = masks_for(specs, placement, self._timeline)
        return partial(DeferredCorruption.on, str(specs[0]), self._source, mask, self._seed, self._video_id)

    def _embed_deferred(self, cells: Sequence[CellExtraction]) -> list[Callable[[], Features]]:
        """Submit frames that are sent clean and corrupted on the extractor's device, once for all of these cells.

        Returns:
            For each cell the function that waits for its features; none where cells are corrupted here.
        """
        factories = [cell.defer for cell in cells if cell.defer is not None]
        if not factories:
            return []
        numbers, step, pending = cells[0].created, self._frames_at_once(), []
        with self._account(cells[0]):
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
            self._seen_count += len(numbers)
            return self._finite(out)

        return [partial(finish, copy) for copy in range(len(factories))]

    def _extract_windows(
        self, top: PipelineSource, which: Indices, came_from: Indices | None = None
    ) -> Callable[[], Features]:
        """Submit these windows to a network that processes whole ones; the returned function waits for features."""
        features = np.empty((len(which), self._extractor.dim), np.float32)
        height, width = top.size
        step = max(BATCH_BYTES // (self.grid.window * height * width * 3), 1)
        submit, pending = self._window_submitter(top, origins(top) if came_from is None else came_from), []
        for lo in range(0, len(which), step):
            part = which[lo : lo + step]
            pending.append((lo, submit(part)))
            self._joined_count += len(part)
            self._report_progress(lo + len(part), len(which))

        def finish() -> Features:
            for lo, answer in pending:
                features[lo : lo + step] = self._finite(answer())
            return features

        return finish

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

    def _embed_frames(self, frames: npt.NDArray[np.uint8]) -> Callable[[], Features]:
        self._seen_count += len(frames)
        answer = self._submit("see", frames)
        return lambda: self._finite(answer())

    def _submit_join(self, frame_features: Features, which: Indices) -> Callable[[], Features]:
        """Submit windows of frame features; the returned function waits for the features of the windows."""
        pending = []
        for lo in range(0, len(which), BATCH_WINDOWS):
            part = which[lo : lo + BATCH_WINDOWS]
            pending.append(self._submit("join", frame_features[self._rows[part]]))
            self._joined_count += len(part)

        def finish() -> Features:
            parts = [np.empty((0, self._extractor.dim), np.float32), *(answer() for answer in pending)]
            return self._finite(np.concatenate(parts))

        return finish

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
