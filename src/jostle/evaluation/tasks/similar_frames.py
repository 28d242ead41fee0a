"""Base of the tasks over sets of similar frames, whose model processes the frames one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from jostle.core.schema import Mismatch
from jostle.evaluation.inference.jobs import Output, VideoJob
from jostle.evaluation.recipes.recipe import Cell
from jostle.evaluation.tasks.task import Annotations, Task

PORTION = 256  # frames per results file, so that a slow network on a long video can be stopped at any time


class SimilarFramesTask(Task[Annotations, Output]):
    """Base of tasks whose model processes the frames of sets one by one; annotations include frames without a file."""

    refuses: ClassVar[Mapping[str, str]] = {
        "mend": "uses single frames, and mending needs the frames around them",
    }
    suffix: ClassVar[str] = ".npz"
    clean_is_enough: ClassVar[bool] = True

    @cached_property
    def usable(self) -> Annotations:
        """Sets of frames that have a file."""
        usable: Annotations = self._sets.without(tuple(self.missing))
        return usable

    @property
    def _sets(self) -> Any:
        return self.annotations

    @cached_property
    def frames_of(self) -> dict[str, tuple[str, ...]]:
        """Frames with a file, by video."""
        by_video: dict[str, list[str]] = defaultdict(list)
        usable: Any = self.usable
        for frame in usable.frames:
            by_video[video_of(frame)].append(frame)
        return {video: tuple(frames) for video, frames in by_video.items()}

    def uses_video(self, name: str) -> bool:
        return name in self.frames_of

    def videos_of(self, predictions: Any) -> Sequence[str]:
        return tuple(dict.fromkeys(map(video_of, self.frames_in(predictions))))

    def frames_in(self, predictions: Any) -> Sequence[str]:
        """Return the frames that predictions are about."""
        raise NotImplementedError

    def portions(self, name: str) -> Sequence[int | None]:
        count = -(-len(self.frames_of[name]) // PORTION)
        return range(count) if count > 1 else (None,)

    def make_job(
        self, name: str, path: Path, cells: tuple[Cell, ...], seed: int, portion: int | None = None
    ) -> VideoJob:
        frames = self.frames_of[name]
        if portion is not None:
            frames = frames[portion * PORTION : (portion + 1) * PORTION]
        return replace(super().make_job(name, path, cells, seed), frames=frames, portion=portion)


def video_of(frame: str) -> str:
    """Return the video of a frame `<video>/<name>`."""
    return frame.rpartition("/")[0]


def check_sets(sets: Mapping[str, Sequence[str]], known: Container[str], key: str) -> None:
    """Raise Mismatch unless there are sets, and every frame of them has an entry under a key of truth.json."""
    if not sets:
        raise Mismatch("must not be empty").under("sets")
    for anchor, others in sets.items():
        for frame in (anchor, *others):
            if frame not in known:
                raise Mismatch(f"lack the frame {frame!r} of the set of {anchor!r}").under(key)
