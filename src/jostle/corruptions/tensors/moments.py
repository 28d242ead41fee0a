"""The moments of struck frames of several clips, made when they are asked for: many forms want keys alone, or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.corrupting.scene import Moment, Scene
from jostle.corruptions.kernels.frame_keys import frame_keys
from jostle.seeds import Part


class Moments:
    """One for each struck frame.

    Args:
        scenes: one a clip.
        clip: of each frame, the number of its scene.
        index: of each frame, its number in its clip.
    """

    def __init__(self, scenes: Sequence[Scene], clip: npt.NDArray[Any], index: npt.NDArray[Any]) -> None:
        self.scenes, self.clip, self.index = scenes, clip, index

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[Moment]:
        for clip, index in zip(self.clip.tolist(), self.index.tolist(), strict=True):
            yield self.scenes[clip].at(index)

    def keys(self, *parts: Part) -> npt.NDArray[np.int64]:
        """What `Moment.key` says of each, its bits as a number with a sign, which is what tensors hold."""
        return frame_keys(self.scenes, self.clip, self.index, *parts).view(np.int64)

    def scene_keys(self) -> npt.NDArray[np.uint64]:
        """What `Scene.key` says of the scene of each."""
        keys = np.array([scene.key() for scene in self.scenes], np.uint64)
        return np.asarray(keys[self.clip], np.uint64)
