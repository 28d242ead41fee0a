"""Base of tasks over sets of similar frames: the frames of each video, and the portions results are stored by."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from jostle.core.types.segments import Segments
from jostle.datasets.frame_sets import BoxSets, FrameSets
from jostle.evaluation.inference.jobs import Output, VideoJob
from jostle.evaluation.recipes.recipe import Cell
from jostle.evaluation.tasks.action_spans import known_actions
from jostle.evaluation.tasks.task import Task

PORTION = 256  # frames per results file, so that a slow network on a long video can be stopped at any time


class SingleFramesTask(Task[Output]):
    """Base of tasks whose model processes the frames of sets one by one."""

    @property
    @abstractmethod
    def _whole(self) -> FrameSets | BoxSets:
        """All sets, including frames without a file."""

    @property
    def videos(self) -> Sequence[str]:
        return self._whole.videos

    def uses_video(self, name: str) -> bool:
        return name in self.frames_of

    @cached_property
    def frames_of(self) -> dict[str, tuple[str, ...]]:
        """Frames with a file, by video."""
        by_video: dict[str, list[str]] = defaultdict(list)
        for frame in self._whole.without(self.data.missing).frames:
            by_video[frame.rpartition("/")[0]].append(frame)
        return {video: tuple(frames) for video, frames in by_video.items()}

    @cached_property
    def _actions(self) -> dict[str, Segments]:
        return known_actions(self.data)

    def portions(self, name: str) -> Sequence[int | None]:
        count = -(-len(self.frames_of[name]) // PORTION)
        return range(count) if count > 1 else (None,)

    def make_job(
        self, name: str, path: Path, cells: tuple[Cell, ...], seed: int, portion: int | None = None
    ) -> VideoJob:
        frames = self.frames_of[name]
        if portion is not None:
            frames = frames[portion * PORTION : (portion + 1) * PORTION]
        return VideoJob(
            name, path, cells, seed, self._actions.get(name), frames, fps=self.data.rate_of(name), portion=portion
        )
