"""Incremental feature extraction: a video's clean features, and under corruptions only what changed.

A corruption changes some frames and leaves the others as they were, byte for byte. So the features of windows without
a changed frame are those of the clean video, and where a network processes single frames, so are the features of
unchanged frames. The result is the same, to the bit, as if everything were computed again, if the extractor keeps the
promise of its protocol; a run checks that on one cell.

Where damaged frames are mended, the features they touch are not computed but interpolated.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from jostle.core.finite import naming
from jostle.core.types.segments import Segments
from jostle.core.types.video import VideoSource
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.damage_finder import DamageFinder, FindsDamage
from jostle.corruptions.engine.placement import Placement, Timeline
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import MADE, chain, origins
from jostle.errors import BadValue
from jostle.features.caches import KEEP_BYTES, CachedFrames
from jostle.features.deferred_corruption import (
    DeferredCorruption,
    DeferredCorruptionFactory,
    corrupts_on_device,
)
from jostle.features.extraction import CellExtraction, Cost, Extraction
from jostle.features.interpolation import MendingResult, interpolate_rows
from jostle.features.options import ReleasedBug, Rule
from jostle.features.requests import FeatureRequests, Progress
from jostle.features.windows import VideoWindows, WindowGrid, mean_rate, resample_frames
from jostle.models.extractors.protocol import FeatureExtractor

# Cells whose frames are sent once, to be corrupted on the extractor's device; and groups of cells that are in progress,
# and that are begun before the first is waited for: while a core corrupts one, the device is done with those before.
CELLS_AT_ONCE, IN_PROGRESS, BEFORE_WAITING = 16, 8, 4

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
        source: VideoSource,
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
        finder: DamageFinder | None = None,
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
        ticks = resample_frames(source.pts, source.fps, spec.fps)
        self._windows = VideoWindows(self.grid, ticks, flow=getattr(extractor, "sees_flow", False))
        self._requests = FeatureRequests(
            extractor, self._source, self._windows, video_id=video_id, keep_bytes=keep_bytes, progress=progress
        )
        self._keep_bytes = keep_bytes
        self._clean = None if clean is None else self._check_clean(clean)
        self._damage_finder = None if finder is None else finder.finder_for(self._source)
        self._mended_clean: Extraction | None = None

    def __len__(self) -> int:
        return self._windows.count

    @property
    def cost(self) -> Cost:
        return Cost(self._source.decoded, self._requests.seen, self._requests.joined, self._requests.flows)

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
        windows, rows = self._windows.patched(origins(top) != np.arange(len(top)))
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
        factories = [cell.defer for cell in cells if cell.defer is not None]
        if factories:
            with self._account(cells[0]):
                answers = self._requests.embed_deferred(cells[0].created, factories)
            for cell, answer in zip(cells, answers, strict=True):
                cell.finish = answer
        for cell in cells:
            with self._account(cell):
                if self._damage_finder is not None:
                    cell.done = self._extract_mended(cell.top, self._damage_finder)
                elif clean.seen is None:
                    changed = cell.came_from != np.arange(len(cell.came_from))
                    windows, cell.rows = self._windows.patched(changed)
                    cell.finish = self._requests.extract_windows(cell.top, windows)
                elif cell.defer is None:
                    cell.finish = self._requests.embed_pictures(cell.top, cell.created)

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
                windows, cell.rows = self._windows.patched(changed)
                cell.frame_features, cell.finish = frame_features, self._requests.join(frame_features, windows)

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

    def _extract_mended(self, top: VideoSource, finder: FindsDamage) -> Extraction:
        """Extract a state of the video, interpolating what damaged frames touch instead of computing it."""
        clean, came_from = self.plain(), origins(top)
        reference = clean
        if top is not self._source:
            top = CachedFrames(top, self._keep_bytes)  # the inspector and the extractor read the same frames
            reference = self.clean()
        damaged = finder.find_damaged(top, came_from)
        if clean.seen is None:
            lost = self._windows.touched(damaged)
            unmended = bool(lost.all())
            lost &= not unmended
            stale = np.flatnonzero(self._windows.touched(came_from != np.arange(len(came_from))) & ~lost)
            features = np.array(clean.features)
            features[stale] = self._requests.extract_windows(top, stale, came_from)()
            return Extraction(interpolate_rows(features, lost), mended=MendingResult(damaged, unmended))
        unmended = bool(damaged.all())
        lost = damaged & (not unmended)
        frame_features = clean.seen[came_from]  # rows of new frames are arbitrary until they are filled in
        created = np.flatnonzero((came_from == MADE) & ~lost)
        frame_features[created] = self._requests.embed_pictures(top, created)()
        frame_features = interpolate_rows(frame_features, lost)
        assert reference.seen is not None
        stale = np.flatnonzero(
            self._windows.touched((frame_features.view(np.uint32) != reference.seen.view(np.uint32)).any(1))
        )
        features = np.array(reference.features)
        features[stale] = self._requests.join(frame_features, stale)()
        return Extraction(features, frame_features, mended=MendingResult(damaged, unmended))

    def _extract_mended_fully(self, top: VideoSource, finder: FindsDamage) -> Extraction:
        """Extract a mended state without reusing clean features."""
        before = self.cost
        done, damaged = self._extract_fully(top), finder.find_damaged(top, origins(top))
        lost = damaged if done.seen is not None else self._windows.touched(damaged)
        mended = MendingResult(damaged, bool(lost.all()))
        if mended.left:
            return replace(done, cost=self._cost_since(before), mended=mended)
        if done.seen is None:
            return Extraction(interpolate_rows(done.features, lost), None, self._cost_since(before), mended)
        frame_features = interpolate_rows(done.seen, lost)
        features = self._requests.join(frame_features, np.arange(len(self), dtype=np.int64))()
        return Extraction(features, frame_features, self._cost_since(before), mended)

    def _corrupted(self, specs: Sequence[Spec], placement: str | Placement | None) -> VideoSource:
        masks = masks_for(specs, placement, self._timeline)
        seed, video_id, bit_rate, path = self._seed, self._video_id, self._bit_rate, self._path
        return chain(self._source, specs, masks, seed=seed, video_id=video_id, bit_rate=bit_rate, path=path)

    def _extract_fully(self, top: VideoSource, windows: int | None = None) -> Extraction:
        before = self.cost
        every = np.arange(len(self) if windows is None else windows, dtype=np.int64)
        if self._extractor.frame_dim is None:
            return Extraction(self._requests.extract_windows(top, every)(), None, self._cost_since(before))
        frame_features = self._requests.embed_video(top)
        return Extraction(self._requests.join(frame_features, every)(), frame_features, self._cost_since(before))

    def _deferred_corruption(
        self, specs: Sequence[Spec], placement: str | Placement | None
    ) -> DeferredCorruptionFactory | None:
        """Return the factory of corruptions that run on the extractor's device; None to corrupt here."""
        if not corrupts_on_device(self._extractor, specs):
            return None
        (mask,) = masks_for(specs, placement, self._timeline)
        return partial(DeferredCorruption.on, str(specs[0]), self._source, mask, self._seed, self._video_id)

    def _cost_since(self, before: Cost) -> Cost:
        return self.cost - before

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
