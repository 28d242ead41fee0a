"""Frame classification task: scores of every frame of the sets, written as npz and scored by pm-k."""

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
from jostle.evaluation.tasks.action_spans import action_pairs
from jostle.evaluation.tasks.score_tables import read_table, write_table
from jostle.evaluation.tasks.single_frames import SingleFramesTask
from jostle.evaluation.tasks.task import Array, MetricValue, task
from jostle.io.files.atomic import write_text
from jostle.metrics.pm_k import pm_k


@task("frames")
class FramesTask(SingleFramesTask[Scores]):
    """Task with (frames, classes) scores per video, frames in the order of the sets; scored by pm-k."""

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
        actions = action_pairs(self._actions, self.videos)
        write_text(path, [json.dumps({"format": 1, "sets": sets, "labels": labels, "actions": actions}), "\n"])

    @cached_property
    def _sets(self) -> FrameSets:
        """Sets of frames that have a file."""
        return self.data.at_hand().frames

    def join_portions(self, outputs: Sequence[Scores]) -> Scores:
        return np.concatenate(outputs)

    def pack(self, outputs: Mapping[str, Scores]) -> tuple[dict[str, Array], list[str]]:
        return dict(outputs), []

    def unpack(self, arrays: Mapping[str, Array], classes: Sequence[str]) -> dict[str, Scores]:
        return dict(arrays)

    def write(self, path: Path, outputs: Mapping[str, Scores]) -> None:
        frames = [frame for video in outputs for frame in self.frames_of[video]]
        write_table(path, "frames", frames, np.concatenate(list(outputs.values())))

    def read(self, path: Path) -> dict[str, Scores]:
        by_frame = dict(zip(*read_table(path, "frames"), strict=True))
        return {
            video: np.stack([by_frame[frame] for frame in frames])
            for video, frames in self.frames_of.items()
            if frames[0] in by_frame
        }

    def measure(self, path: Path, names: Sequence[str]) -> MetricValue:
        scores = dict(zip(*read_table(path, "frames"), strict=True))
        sets = self._sets.without([frame for frame in self._sets.frames if frame not in scores])
        k, labels_of = self.recipe.k, self.recipe.labels_of
        assert k is not None
        assert labels_of is not None
        result = pm_k(scores, sets.sets, sets.labels, k, labels_of=labels_of)
        interval = result.pm_k_interval and list(result.pm_k_interval)
        return MetricValue(result.pm_k, {"interval": interval, "pm_k": result.to_dict()})
