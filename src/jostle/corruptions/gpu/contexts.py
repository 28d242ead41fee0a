"""Contexts of the corrupted frames of several clips, created lazily since many kernels need only keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from jostle.core.random import Part
from jostle.corruptions.engine.context import ClipContext, FrameContext, Mask
from jostle.corruptions.kernels.blake2b import frame_keys

Numbers = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class AffectedFrames:
    """Corrupted frames of a batch of clips.

    Attributes:
        masks: one a clip, of equal length.
        clip: clip index of each corrupted frame.
        index: frame index within its clip.
        every: whether these are all frames of all clips, in order.
    """

    masks: Sequence[Mask]
    clip: Numbers
    index: Numbers
    every: bool = False

    @classmethod
    def of(cls, masks: Sequence[Mask]) -> AffectedFrames:
        """Create it from the masks."""
        clip, index = np.nonzero(np.stack(masks))
        return cls(masks, clip, index)

    @property
    def frames(self) -> int:
        """Number of frames of a clip, corrupted or not."""
        return len(self.masks[0])

    @cached_property
    def rows(self) -> Numbers:
        """Index of each corrupted frame among the frames of all clips."""
        return np.asarray(self.clip * self.frames + self.index, np.intp)


@lru_cache(16)
def everywhere(clips: int, frames: int) -> AffectedFrames:
    """Return all frames of a batch, the most common case; cached."""
    clip, index = np.divmod(np.arange(clips * frames), frames)
    return AffectedFrames([np.ones(frames, np.bool_)] * clips, clip, index, every=True)


class FrameContexts:
    """Contexts of corrupted frames, one for each.

    Args:
        name: name of the corruption, as in `ClipContext`.
        video_ids: one a clip.
        make_scenes: creates the clip contexts, for kernels that need more than keys.
    """

    def __init__(
        self,
        name: str,
        seed: int,
        video_ids: Sequence[str],
        places: AffectedFrames,
        make_scenes: Callable[[], Sequence[ClipContext]],
    ) -> None:
        self.name, self.seed, self.video_ids = name, seed, video_ids
        self.places, self.clip, self.index = places, places.clip, places.index
        self._make_scenes = make_scenes

    @classmethod
    def of(cls, scene: ClipContext, index: Numbers) -> FrameContexts:
        """Create the contexts of frames of one clip."""
        places = AffectedFrames([scene.mask], np.zeros_like(index), index)
        return cls(scene.name, scene.seed, [scene.video_id], places, lambda: [scene])

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[FrameContext]:
        for clip, index in zip(self.clip.tolist(), self.index.tolist(), strict=True):
            yield self.scenes[clip].at(index)

    @cached_property
    def scenes(self) -> Sequence[ClipContext]:
        """Clip contexts, one a clip."""
        return self._make_scenes()

    def moments(self) -> Iterator[tuple[ClipContext, list[float]]]:
        """Yield each clip with the times of its corrupted frames, in seconds from the first frame of the clip.

        Clips and their frames are in the order of the contexts.
        """
        ends = np.searchsorted(self.clip, np.arange(1, len(self.scenes)))
        for scene, index in zip(self.scenes, np.split(self.index, ends), strict=True):
            yield scene, (scene.pts[index] - scene.pts[0]).tolist()

    def keys(self, *parts: Part) -> npt.NDArray[np.uint64]:
        """Return `FrameContext.key` of each frame."""
        return frame_keys(self.seed, self.name, self.video_ids, self.clip, self.index, *parts)

    def scene_keys(self, *parts: Part) -> npt.NDArray[np.uint64]:
        """Return `ClipContext.key` of the clip of each frame."""
        keys = np.array([scene.key(*parts) for scene in self.scenes], np.uint64)
        return np.asarray(keys[self.clip], np.uint64)
