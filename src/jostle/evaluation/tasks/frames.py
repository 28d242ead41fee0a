"""Runs of frame classifiers: scores of every frame of the sets, written as npz and scored by pm-k."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from jostle.datasets.class_matching import Scores
from jostle.datasets.frame_sets import FrameSets
from jostle.evaluation.tasks.action_spans import places_of
from jostle.evaluation.tasks.score_tables import read_table, write_table
from jostle.evaluation.tasks.single_frames import SingleFramesTask
from jostle.evaluation.tasks.task import Array, Measured, task
from jostle.io.files.atomic import write_text
from jostle.metrics.pm_k import pm_k


@task("frames")
class FramesTask(SingleFramesTask[Scores]):
    """(frames, classes) scores by video, the frames in the order that the sets have them; scored by pm-k."""

    suffix: ClassVar[str] = ".npz"

    @property
    def _whole(self) -> FrameSets:
        return self.data.frames

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

    def joined(self, found: Sequence[Scores]) -> Scores:
        return np.concatenate(found)

    def packed(self, found: Mapping[str, Scores]) -> tuple[dict[str, Array], list[str]]:
        return dict(found), []

    def unpacked(self, arrays: Mapping[str, Array], classes: Sequence[str]) -> dict[str, Scores]:
        return dict(arrays)

    def write(self, path: Path, found: Mapping[str, Scores]) -> None:
        frames = [frame for video in found for frame in self.frames_of[video]]
        write_table(path, "frames", frames, np.concatenate(list(found.values())))

    def read(self, path: Path) -> dict[str, Scores]:
        by_frame = dict(zip(*read_table(path, "frames"), strict=True))
        return {
            video: np.stack([by_frame[frame] for frame in frames])
            for video, frames in self.frames_of.items()
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
