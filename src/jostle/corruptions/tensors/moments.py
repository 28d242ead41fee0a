"""The moments of struck frames of several clips, made when they are asked for: many forms want keys alone, or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from jostle.corrupting.scene import Mask, Moment, Scene
from jostle.corruptions.kernels.frame_keys import frame_keys, messages
from jostle.seeds import Part
from jostle.types.clip import Clip

Numbers = npt.NDArray[np.intp]


class Moments:
    """One for each struck frame.

    Args:
        name: of the corruption, as `Scene` has it.
        size: (height, width).
        blank: a clip without pictures, for when frames are shown.
        masks: which frames are struck, one a clip.
    """

    def __init__(
        self, name: str, size: tuple[int, int], blank: Clip, masks: Sequence[Mask], seed: int, video_ids: Sequence[str]
    ) -> None:
        self.name, self.size, self.blank, self.masks, self.seed, self.video_ids = (
            name,
            size,
            blank,
            masks,
            seed,
            video_ids,
        )

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[Moment]:
        for clip, index in zip(self.clip.tolist(), self.index.tolist(), strict=True):
            yield self.scenes[clip].at(index)

    @cached_property
    def scenes(self) -> list[Scene]:
        """One a clip."""
        when = self.blank.pts, self.blank.fps
        return [
            Scene(self.name, self.size, *when, mask, seed=self.seed, video_id=video)
            for mask, video in zip(self.masks, self.video_ids, strict=True)
        ]

    @property
    def clip(self) -> Numbers:
        """Of each frame, the number of its clip."""
        return self._places[0]

    @property
    def index(self) -> Numbers:
        """Of each frame, its number in its clip."""
        return self._places[1]

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

    @cached_property
    def _places(self) -> tuple[Numbers, Numbers]:
        first = self.masks[0]
        if all(mask is first for mask in self.masks):  # as they are, unless frames are placed by actions
            struck = np.flatnonzero(first)
            return np.repeat(np.arange(len(self.masks)), len(struck)), np.tile(struck, len(self.masks))
        clip, index = np.nonzero(np.stack(self.masks))
        return clip, index
