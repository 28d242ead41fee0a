"""The moments of struck frames of several clips, made when they are asked for: many forms want keys alone, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from jostle.corrupting.scene import Moment, Scene
from jostle.corruptions.kernels.frame_keys import frame_keys, messages
from jostle.seeds import Part

Numbers = npt.NDArray[np.intp]


class Moments:
    """One for each struck frame.

    Args:
        name: of the corruption, as `Scene` has it.
        video_ids: one a clip.
        clip: of each frame, the number of its clip.
        index: of each frame, its number in its clip.
        make_scenes: makes the scenes, one a clip, for those who want more than keys.
    """

    def __init__(
        self,
        name: str,
        seed: int,
        video_ids: Sequence[str],
        clip: Numbers,
        index: Numbers,
        make_scenes: Callable[[], Sequence[Scene]],
    ) -> None:
        self.name, self.seed, self.video_ids = name, seed, video_ids
        self.clip, self.index = clip, index
        self._make_scenes = make_scenes

    @classmethod
    def of(cls, scene: Scene, index: Numbers) -> Moments:
        """Of frames of one clip."""
        return cls(scene.name, scene.seed, [scene.video_id], np.zeros_like(index), index, lambda: [scene])

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

    def messages(self, *parts: Part) -> npt.NDArray[np.uint64]:
        """What is hashed for these keys."""
        return np.asarray(messages(self.seed, self.name, self.video_ids, self.clip, self.index, *parts), np.uint64)

    def scene_keys(self) -> npt.NDArray[np.uint64]:
        """What `Scene.key` says of the scene of each."""
        keys = np.array([scene.key() for scene in self.scenes], np.uint64)
        return np.asarray(keys[self.clip], np.uint64)
