"""Runs over sets of similar frames: which frames of a video are looked at, and by which portions results are kept."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from jostle.core.types.segments import Segments
from jostle.datasets.frame_sets import BoxSets, FrameSets
from jostle.evaluation.inference.jobs import Found, Order
from jostle.evaluation.recipes.recipe import Cell
from jostle.evaluation.tasks.action_spans import known_actions
from jostle.evaluation.tasks.task import Task

PORTION = 256  # frames whose results are kept together: a slow network on a long video may be stopped at any time


class SingleFramesTask(Task[Found]):
    """A benchmark whose model sees the frames of sets one by one."""

    @property
    @abstractmethod
    def _whole(self) -> FrameSets | BoxSets:
        """The sets, also of frames that have no file."""

    @property
    def videos(self) -> Sequence[str]:
        return self._whole.videos

    def looks_at(self, name: str) -> bool:
        return name in self.frames_of

    @cached_property
    def frames_of(self) -> dict[str, tuple[str, ...]]:
        """The frames of each video that have a file."""
        made: dict[str, list[str]] = defaultdict(list)
        for frame in self._whole.without(self.data.missing).frames:
            made[frame.rpartition("/")[0]].append(frame)
        return {video: tuple(frames) for video, frames in made.items()}

    @cached_property
    def _actions(self) -> dict[str, Segments]:
        return known_actions(self.data)

    def portions(self, name: str) -> Sequence[int | None]:
        count = -(-len(self.frames_of[name]) // PORTION)
        return range(count) if count > 1 else (None,)

    def order(self, name: str, path: Path, cells: tuple[Cell, ...], seed: int, portion: int | None = None) -> Order:
        frames = self.frames_of[name]
        if portion is not None:
            frames = frames[portion * PORTION : (portion + 1) * PORTION]
        return Order(
            name, path, cells, seed, self._actions.get(name), frames, fps=self.data.rate_of(name), portion=portion
        )
