"""Features of one video in any state: as it is, corrupted, or mended."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jostle.core.types.video import VideoSource
from jostle.corruptions.engine.damage_finder import FindsDamage
from jostle.corruptions.engine.stages import MADE, origins
from jostle.errors import BadValue
from jostle.features.caches import CachedFrames
from jostle.features.extraction import Cost, Extraction
from jostle.features.interpolation import MendingResult, interpolate_rows
from jostle.features.requests import FeatureRequests
from jostle.features.windows import VideoWindows
from jostle.models.extractors.protocol import FeatureExtractor


class StateExtractor:
    """Extracts the features of one video in any state, and keeps those of the clean one.

    Args:
        clean: features of the clean video from an earlier run, which are reused.
        finder: finds damaged frames, whose features are interpolated.
    """

    def __init__(
        self,
        source: CachedFrames,
        extractor: FeatureExtractor,
        windows: VideoWindows,
        requests: FeatureRequests,
        *,
        clean: Extraction | None,
        finder: FindsDamage | None,
        keep_bytes: int,
    ) -> None:
        if clean is not None:
            _check_clean(clean, extractor, windows.count, len(source))
        self.source, self.extractor, self.windows, self.requests, self.finder = (
            source,
            extractor,
            windows,
            requests,
            finder,
        )
        self._clean, self._keep_bytes = clean, keep_bytes
        self._mended_clean: Extraction | None = None

    @property
    def cost(self) -> Cost:
        """Amount of computation so far."""
        return Cost(self.source.decoded, self.requests.seen, self.requests.joined, self.requests.flows)

    def clean(self) -> Extraction:
        """Return the features of the clean video, mended if requested; computed once."""
        if self.finder is None:
            return self.plain()
        if self._mended_clean is None:
            before = self.cost
            self._mended_clean = replace(self.mended(self.source), cost=self.cost - before)
        return self._mended_clean

    def plain(self) -> Extraction:
        """Return the features of the clean video without mending; computed once."""
        if self._clean is None:
            self._clean = self.fully(self.source)
        return self._clean

    def mended(self, top: VideoSource) -> Extraction:
        """Extract a state of the video, interpolating what damaged frames touch instead of computing it."""
        assert self.finder is not None
        clean, came_from = self.plain(), origins(top)
        reference = clean
        if top is not self.source:
            top = CachedFrames(top, self._keep_bytes)  # the inspector and the extractor read the same frames
            reference = self.clean()
        damaged = self.finder.find_damaged(top, came_from)
        if clean.seen is None:
            lost = self.windows.touched(damaged)
            unmended = bool(lost.all())
            lost &= not unmended
            stale = np.flatnonzero(self.windows.touched(came_from != np.arange(len(came_from))) & ~lost)
            features = np.array(clean.features)
            features[stale] = self.requests.extract_windows(top, stale, came_from)()
            return Extraction(interpolate_rows(features, lost), mended=MendingResult(damaged, unmended))
        unmended = bool(damaged.all())
        lost = damaged & (not unmended)
        frame_features = clean.seen[came_from]  # rows of new frames are arbitrary until they are filled in
        created = np.flatnonzero((came_from == MADE) & ~lost)
        frame_features[created] = self.requests.embed_pictures(top, created)()
        frame_features = interpolate_rows(frame_features, lost)
        assert reference.seen is not None
        stale = np.flatnonzero(
            self.windows.touched((frame_features.view(np.uint32) != reference.seen.view(np.uint32)).any(1))
        )
        features = np.array(reference.features)
        features[stale] = self.requests.join(frame_features, stale)()
        return Extraction(features, frame_features, mended=MendingResult(damaged, unmended))

    def mended_fully(self, top: VideoSource) -> Extraction:
        """Extract a mended state without reusing clean features."""
        assert self.finder is not None
        before = self.cost
        done, damaged = self.fully(top), self.finder.find_damaged(top, origins(top))
        lost = damaged if done.seen is not None else self.windows.touched(damaged)
        mended = MendingResult(damaged, bool(lost.all()))
        if mended.left:
            return replace(done, cost=self.cost - before, mended=mended)
        if done.seen is None:
            return Extraction(interpolate_rows(done.features, lost), None, self.cost - before, mended)
        frame_features = interpolate_rows(done.seen, lost)
        features = self.requests.join(frame_features, np.arange(self.windows.count, dtype=np.int64))()
        return Extraction(features, frame_features, self.cost - before, mended)

    def fully(self, top: VideoSource, windows: int | None = None) -> Extraction:
        before = self.cost
        every = np.arange(self.windows.count if windows is None else windows, dtype=np.int64)
        if self.extractor.frame_dim is None:
            return Extraction(self.requests.extract_windows(top, every)(), None, self.cost - before)
        frame_features = self.requests.embed_video(top)
        return Extraction(self.requests.join(frame_features, every)(), frame_features, self.cost - before)


def _check_clean(clean: Extraction, extractor: FeatureExtractor, windows: int, frames: int) -> None:
    """Raise BadValue unless clean features from an earlier run fit a video."""
    frame_dim = extractor.frame_dim
    if frame_dim is not None and clean.seen is None:
        raise BadValue(
            "clean features of this extractor need the features of each frame: extract them with keep_frames"
        )
    for name, array, shape in (
        ("clean features", clean.features, (windows, extractor.dim)),
        ("clean frame features", clean.seen, (frames, frame_dim)),
    ):
        if array is not None and (array.shape != shape or array.dtype != np.float32):
            raise BadValue(f"{name} must be {shape} float32 for this video, not {array.shape} {array.dtype}")
