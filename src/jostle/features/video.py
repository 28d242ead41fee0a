"""Incremental feature extraction: a video's clean features, and under corruptions only what changed.

A corruption changes some frames and leaves the others as they were, byte for byte. So the features of windows without
a changed frame are those of the clean video, and where a network processes single frames, so are the features of
unchanged frames. The result is the same, to the bit, as if everything were computed again, if the extractor keeps the
promise of its protocol; a run checks that on one cell.

Where damaged frames are mended, the features they touch are not computed but interpolated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from jostle.core.types.segments import Segments
from jostle.core.types.video import VideoSource
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.damage_finder import DamageFinder
from jostle.corruptions.engine.placement import Placement, Timeline
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import chain, origins
from jostle.errors import BadValue
from jostle.features.caches import KEEP_BYTES, CachedFrames
from jostle.features.deferred_corruption import (
    DeferredCorruption,
    DeferredCorruptionFactory,
    corrupts_on_device,
)
from jostle.features.extraction import Cost, Extraction
from jostle.features.options import ReleasedBug, Rule
from jostle.features.requests import FeatureRequests, Progress
from jostle.features.states import StateExtractor
from jostle.features.sweep import CellSweep, Corruptions
from jostle.features.windows import VideoWindows, WindowGrid, mean_rate, resample_frames
from jostle.models.extractors.protocol import FeatureExtractor


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
        self._seed, self._video_id, self._path, self._bit_rate = seed, video_id, path, bit_rate
        self._timeline = Timeline.of(source.pts, source.fps, segments, seed=seed, video_id=video_id)
        ticks = resample_frames(source.pts, source.fps, spec.fps)
        self._windows = VideoWindows(self.grid, ticks, flow=getattr(extractor, "sees_flow", False))
        requests = FeatureRequests(
            extractor, self._source, self._windows, video_id=video_id, keep_bytes=keep_bytes, progress=progress
        )
        self._states = StateExtractor(
            self._source,
            extractor,
            self._windows,
            requests,
            clean=clean,
            finder=None if finder is None else finder.finder_for(self._source),
            keep_bytes=keep_bytes,
        )

    def __len__(self) -> int:
        return self._windows.count

    @property
    def cost(self) -> Cost:
        return self._states.cost

    def clean(self) -> Extraction:
        """Return the features of the clean video, mended if requested; computed once."""
        return self._states.clean()

    def whole(self, specs: Sequence[Spec], placement: str | Placement | None = None) -> Extraction:
        """Return the features of the corrupted video, all computed from its frames."""
        top = self._corrupted(specs, placement)
        if self._states.finder is not None:
            return self._states.mended_fully(top)
        if not self.grid.reproduce_bugs:
            return self._states.fully(top)
        clean, before = self.clean(), self.cost  # rows that the released program fails to replace
        windows, rows = self._windows.patched(origins(top) != np.arange(len(top)))
        done = self._states.fully(top, len(self) + 1)
        features = np.array(clean.features)
        features[rows] = done.features[windows]
        return Extraction(features, done.seen, self.cost - before)

    def under(self, specs: Sequence[Spec], placement: str | Placement | None = None) -> Extraction:
        """Return the same features as `whole`, bit for bit, computed only where they can differ from the clean ones."""
        ((_, done),) = self.sweep({"": (specs, placement)})
        return done

    def sweep(self, cells: Mapping[str, Corruptions]) -> Iterator[tuple[str, Extraction]]:
        """Yield the features under each of many corruptions in order, decoding the video once.

        With an extractor in another process, cells are corrupted here while it computes those before.
        """
        bugs = bool(self.grid.reproduce_bugs)
        return CellSweep(self._states, self._corrupted, self._deferred_corruption, reproduce_bugs=bugs).run(cells)

    def plain(self) -> Extraction:
        """Return the features of the clean video without mending; computed once."""
        return self._states.plain()

    def _corrupted(self, specs: Sequence[Spec], placement: str | Placement | None) -> VideoSource:
        masks = masks_for(specs, placement, self._timeline)
        seed, video_id, bit_rate, path = self._seed, self._video_id, self._bit_rate, self._path
        return chain(self._source, specs, masks, seed=seed, video_id=video_id, bit_rate=bit_rate, path=path)

    def _deferred_corruption(
        self, specs: Sequence[Spec], placement: str | Placement | None
    ) -> DeferredCorruptionFactory | None:
        """Return the factory of corruptions that run on the extractor's device; None to corrupt here."""
        finder, extractor = self._states.finder, self._states.extractor
        if finder is not None or extractor.frame_dim is None or not corrupts_on_device(extractor, specs):
            return None
        (mask,) = masks_for(specs, placement, self._timeline)
        return partial(DeferredCorruption.on, str(specs[0]), self._source, mask, self._seed, self._video_id)
