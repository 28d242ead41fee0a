"""The moments of struck frames of several clips, made when they are asked for: many forms want keys alone, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from jostle.core.random import Part
from jostle.corruptions.engine.context import Mask, Moment, Scene
from jostle.corruptions.kernels.frame_keys import frame_keys

Numbers = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Places:
    """Which frames of clips are struck.

    Attributes:
        masks: one a clip, all as long.
        clip: of each struck frame, the number of its clip.
        index: of each struck frame, its number in its clip.
        every: whether these are all frames of all clips, in their order.
    """

    masks: Sequence[Mask]
    clip: Numbers
    index: Numbers
    every: bool = False

    @classmethod
    def of(cls, masks: Sequence[Mask]) -> Places:
        """Those that masks say."""
        clip, index = np.nonzero(np.stack(masks))
        return cls(masks, clip, index)

    @property
    def frames(self) -> int:
        """Of a clip, struck or not."""
        return len(self.masks[0])

    @cached_property
    def rows(self) -> Numbers:
        """Of each struck frame, its number among the frames of all clips."""
        return np.asarray(self.clip * self.frames + self.index, np.intp)


@lru_cache(16)
def everywhere(clips: int, frames: int) -> Places:
    """All frames, which most calls strike: made once."""
    clip, index = np.divmod(np.arange(clips * frames), frames)
    return Places([np.ones(frames, np.bool_)] * clips, clip, index, every=True)


class Moments:
    """One for each struck frame.

    Args:
        name: of the corruption, as `Scene` has it.
        video_ids: one a clip.
        make_scenes: makes the scenes, one a clip, for those who want more than keys.
    """

    def __init__(
        self,
        name: str,
        seed: int,
        video_ids: Sequence[str],
        places: Places,
        make_scenes: Callable[[], Sequence[Scene]],
    ) -> None:
        self.name, self.seed, self.video_ids = name, seed, video_ids
        self.places, self.clip, self.index = places, places.clip, places.index
        self._make_scenes = make_scenes

    @classmethod
    def of(cls, scene: Scene, index: Numbers) -> Moments:
        """Of frames of one clip."""
        places = Places([scene.mask], np.zeros_like(index), index)
        return cls(scene.name, scene.seed, [scene.video_id], places, lambda: [scene])

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[Moment]:
        for clip, index in zip(self.clip.tolist(), self.index.tolist(), strict=True):
            yield self.scenes[clip].at(index)

    @cached_property
    def scenes(self) -> Sequence[Scene]:
        """One a clip."""
        return self._make_scenes()

    def keys(self, *parts: Part) -> npt.NDArray[np.uint64]:
        """What `Moment.key` says of each."""
        return frame_keys(self.seed, self.name, self.video_ids, self.clip, self.index, *parts)

    def scene_keys(self, *parts: Part) -> npt.NDArray[np.uint64]:
        """What `Scene.key` says of the scene of each."""
        keys = np.array([scene.key(*parts) for scene in self.scenes], np.uint64)
        return np.asarray(keys[self.clip], np.uint64)
