"""Runs of frame classifiers: scores of every frame of the sets, written as npz and scored by pm-k."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from jostle.benchmarks.recipe import Cell
from jostle.datasets.frame_sets import FrameSets
from jostle.filing.writing import write_text
from jostle.looking.class_match import Scores
from jostle.looking.work import Order
from jostle.metrics.pm_k import pm_k
from jostle.tasks.action_places import known_actions, places_of
from jostle.tasks.score_tables import read_table, write_table
from jostle.tasks.task import Array, Measured, Task, task
from jostle.types.segments import Segments

PORTION = 256  # frames whose results are kept together: a slow network on a long video may be stopped at any time


@task("frames")
class FramesTask(Task[Scores]):
    """(frames, classes) scores by video, the frames in the order that the sets have them; scored by pm-k."""

    suffix: ClassVar[str] = ".npz"

    @property
    def videos(self) -> Sequence[str]:
        return self.data.frames.videos

    def looks_at(self, name: str) -> bool:
        return name in self._frames_of

    @property
    def fingerprint(self) -> str:
        whole = self.data.frames
        labels = {frame: whole.labels[frame] for frame in whole.frames}
        text = json.dumps([{a: list(others) for a, others in whole.sets.items()}, labels], sort_keys=True)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    def write_truth(self, path: Path) -> None:
        whole = self.data.frames
        sets = {anchor: list(others) for anchor, others in whole.sets.items()}
        labels = {frame: whole.labels[frame] for frame in whole.frames}
        actions = places_of(self._actions, self.videos)
        write_text(path, [json.dumps({"format": 1, "sets": sets, "labels": labels, "actions": actions}), "\n"])

    @cached_property
    def _sets(self) -> FrameSets:
        """The sets without what has no file."""
        return self.data.at_hand().frames

    @cached_property
    def _frames_of(self) -> dict[str, tuple[str, ...]]:
        made: dict[str, list[str]] = defaultdict(list)
        for frame in self._sets.frames:
            made[frame.rpartition("/")[0]].append(frame)
        return {video: tuple(frames) for video, frames in made.items()}

    @cached_property
    def _actions(self) -> dict[str, Segments]:
        return known_actions(self.data)

    def portions(self, name: str) -> Sequence[int | None]:
        count = -(-len(self._frames_of[name]) // PORTION)
        return range(count) if count > 1 else (None,)

    def joined(self, found: Sequence[Scores]) -> Scores:
        return np.concatenate(found)

    def order(self, name: str, path: Path, cells: tuple[Cell, ...], seed: int, portion: int | None = None) -> Order:
        frames = self._frames_of[name]
        if portion is not None:
            frames = frames[portion * PORTION : (portion + 1) * PORTION]
        return Order(
            name, path, cells, seed, self._actions.get(name), frames, fps=self.data.rate_of(name), portion=portion
        )

    def packed(self, found: Mapping[str, Scores]) -> tuple[dict[str, Array], list[str]]:
        return dict(found), []

    def unpacked(self, arrays: Mapping[str, Array], classes: Sequence[str]) -> dict[str, Scores]:
        return dict(arrays)

    def write(self, path: Path, found: Mapping[str, Scores]) -> None:
        frames = [frame for video in found for frame in self._frames_of[video]]
        write_table(path, "frames", frames, np.concatenate(list(found.values())))

    def read(self, path: Path) -> dict[str, Scores]:
        by_frame = dict(zip(*read_table(path, "frames"), strict=True))
        return {
            video: np.stack([by_frame[frame] for frame in frames])
            for video, frames in self._frames_of.items()
            if frames[0] in by_frame
        }

    def measured(self, path: Path, names: Sequence[str]) -> Measured:
        scores = dict(zip(*read_table(path, "frames"), strict=True))
        sets = self._sets.without([frame for frame in self._sets.frames if frame not in scores])
        k, labels_of = self.recipe.k, self.recipe.labels_of
        assert k is not None
        assert labels_of is not None
        found = pm_k(scores, sets.sets, sets.labels, k, labels_of=labels_of)
        interval = found.pm_k_interval and list(found.pm_k_interval)
        return Measured(found.pm_k, {"interval": interval, "pm_k": found.to_dict()})
