"""Recognition task: one class per video, stored as scores of all classes and written as npz."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from jostle.core.types.columns import Flags, Floats
from jostle.core.types.score_table import ScoreTable
from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.class_matching import Scores
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.recipes.recipe import Cell
from jostle.evaluation.tasks.score_tables import read_table, write_table
from jostle.evaluation.tasks.task import Array, Item, Task, action_pairs, task
from jostle.io.files.atomic import write_text
from jostle.metrics.accuracy import guesses, videos_within_top_k


@task("recognition")
class RecognitionTask(Task[Scores]):
    """Task with class scores per video, scored by accuracy or by mean average precision."""

    suffix: ClassVar[str] = ".npz"
    loss_rule: ClassVar[str] = "no class of the video among the guesses that the benchmark allows"

    @property
    def labels(self) -> VideoLabels:
        """Annotated labels of the videos."""
        return self.data.labels

    @property
    def annotations(self) -> VideoLabels:
        return self.labels

    def classes_in(self, names: Sequence[str]) -> int:
        return len({label for name in names for label in self._classes_of.get(name, ())})

    @property
    def fingerprint(self) -> str:
        labels = self.labels
        rows = sorted((labels.videos[v], labels.classes[k]) for v, k in zip(labels.video, labels.label, strict=True))
        return f"sha256:{hashlib.sha256(repr((labels.classes, rows)).encode()).hexdigest()}"

    @cached_property
    def _classes_of(self) -> dict[str, list[int]]:
        classes: dict[str, list[int]] = defaultdict(list)
        for v, k in zip(self.labels.video.tolist(), self.labels.label.tolist(), strict=True):
            classes[self.labels.videos[v]].append(k)
        return classes

    def write_truth(self, path: Path) -> None:
        classes = self.labels.classes
        videos = {name: [classes[k] for k in self._classes_of.get(name, [])] for name in self.videos}
        actions = action_pairs(self.actions, self.videos)
        content = {"format": 1, "classes": list(classes), "videos": videos, "actions": actions}
        write_text(path, [json.dumps(content, indent=1), "\n"])

    def make_job(
        self, name: str, path: Path, cells: tuple[Cell, ...], seed: int, portion: int | None = None
    ) -> VideoJob:
        return VideoJob(name, path, cells, seed, self.actions.get(name), fps=self.data.rate_of(name))

    def pack(self, outputs: Mapping[str, Scores]) -> tuple[dict[str, Array], list[str]]:
        return dict(outputs), []  # the classes are the data set's, whose fingerprint the run records

    def unpack(self, arrays: Mapping[str, Array], classes: Sequence[str]) -> dict[str, Scores]:
        return dict(arrays)

    def write(self, path: Path, outputs: Mapping[str, Scores]) -> None:
        write_table(path, "videos", list(outputs), np.stack(list(outputs.values())), self.labels.classes)

    def read(self, path: Path) -> dict[str, Scores]:
        return dict(zip(*read_table(path, "videos"), strict=True))

    def measured_truth(self, names: Sequence[str]) -> VideoLabels:
        if len(names) > 1:
            return self.labels.of_videos(names)
        labels = [(v, k) for v, name in enumerate(names) for k in self._classes_of.get(name, ())]
        video, label = np.array(labels, np.int32).reshape(-1, 2).T  # of one video, without going over all
        return VideoLabels(tuple(names), self.labels.classes, video, label)

    def to_predictions(self, outputs: Mapping[str, Scores]) -> ScoreTable:
        return ScoreTable(tuple(outputs), np.stack(list(outputs.values())))

    def read_predictions(self, path: Path, truth: VideoLabels) -> ScoreTable:
        return ScoreTable(*read_table(path, "videos"))

    def items(self, name: str) -> Sequence[Item]:
        labels = self._classes_of.get(name, ())
        return (Item(", ".join(self.labels.classes[k] for k in labels)),) if labels else ()

    def judge(self, name: str, output: Scores, threshold: float) -> tuple[Floats, Flags]:
        k = guesses(self.recipe, len(output))
        own = np.zeros(len(output), np.bool_)
        own[self._classes_of[name]] = True
        others = np.sort(output[~own])[::-1]
        rival = float(others[k - 1]) if len(others) >= k else -math.inf
        right = videos_within_top_k(self.measured_truth([name]), self.to_predictions({name: output}), k)
        return np.array([float(output[own].max()) - rival]), right
