"""Runs of recognition: one class a video, kept as scores of all classes and written as npz."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from jostle.core.types.columns import Flags, Indices
from jostle.core.types.segments import Segments
from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.class_matching import Scores
from jostle.errors import BadValue
from jostle.evaluation.inference.jobs import Order
from jostle.evaluation.recipes.recipe import Cell
from jostle.evaluation.tasks.action_spans import known_actions, places_of
from jostle.evaluation.tasks.score_tables import read_table, write_table
from jostle.evaluation.tasks.task import Array, Measured, Task, task
from jostle.io.files.atomic import write_text
from jostle.metrics.accuracy import clopper_pearson, within_top_k
from jostle.metrics.metric import metrics, own_value
from jostle.metrics.video_classification import video_classification

ALSO = 5  # top-5 is given beside top-1


@task("recognition")
class RecognitionTask(Task[Scores]):
    """Scores of the data set's classes by video, scored by accuracy or by mean average precision."""

    suffix: ClassVar[str] = ".npz"

    @property
    def labels(self) -> VideoLabels:
        """What is annotated."""
        return self.data.labels

    @property
    def videos(self) -> Sequence[str]:
        return self.labels.videos

    def classes_in(self, names: Sequence[str]) -> int:
        return len({label for name in names for label in self._classes_of.get(name, ())})

    @property
    def fingerprint(self) -> str:
        labels = self.labels
        rows = sorted((labels.videos[v], labels.classes[k]) for v, k in zip(labels.video, labels.label, strict=True))
        return f"sha256:{hashlib.sha256(repr((labels.classes, rows)).encode()).hexdigest()}"

    @cached_property
    def _actions(self) -> dict[str, Segments]:
        return known_actions(self.data)

    @cached_property
    def _classes_of(self) -> dict[str, list[int]]:
        made: dict[str, list[int]] = defaultdict(list)
        for v, k in zip(self.labels.video.tolist(), self.labels.label.tolist(), strict=True):
            made[self.labels.videos[v]].append(k)
        return made

    def write_truth(self, path: Path) -> None:
        classes = self.labels.classes
        videos = {name: [classes[k] for k in self._classes_of.get(name, [])] for name in self.videos}
        actions = places_of(self._actions, self.videos)
        told = {"format": 1, "classes": list(classes), "videos": videos, "actions": actions}
        write_text(path, [json.dumps(told, indent=1), "\n"])

    def order(self, name: str, path: Path, cells: tuple[Cell, ...], seed: int, portion: int | None = None) -> Order:
        return Order(name, path, cells, seed, self._actions.get(name), fps=self.data.rate_of(name))

    def packed(self, found: Mapping[str, Scores]) -> tuple[dict[str, Array], list[str]]:
        return dict(found), []  # the classes are the data set's, whose fingerprint the run has

    def unpacked(self, arrays: Mapping[str, Array], classes: Sequence[str]) -> dict[str, Scores]:
        return dict(arrays)

    def write(self, path: Path, found: Mapping[str, Scores]) -> None:
        write_table(path, "videos", list(found), np.stack(list(found.values())), self.labels.classes)

    def read(self, path: Path) -> dict[str, Scores]:
        return dict(zip(*read_table(path, "videos"), strict=True))

    def measured(self, path: Path, names: Sequence[str]) -> Measured:
        videos, scores = read_table(path, "videos")
        k = self._k(scores.shape[1])
        found = self._accuracy(videos, scores, k)
        if self.recipe.metric == "video_mean_ap":
            labels = self.labels.of_videos(names)
            made = video_classification(_scored(videos, self.labels.classes, scores), labels, k=k)
            return Measured(made.mean_ap, {f"hit_at_{k}": made.hit_at_k})
        if metrics.part(self.recipe.metric) is not None:
            return Measured(own_value(self.recipe.metric, scores, self._only_class(videos)), {})
        more: dict[str, Any] = {"interval": found[1]}
        if k < ALSO < scores.shape[1]:
            more[f"top_{ALSO}"] = self._accuracy(videos, scores, ALSO)[0]
        return Measured(found[0], more)

    def glance(self, name: str, found: Scores) -> float | None:
        if self.recipe.metric != "top_k_accuracy" or name not in self._classes_of:
            return None
        return float(self._right([name], found[None], self._k(len(found)))[0])

    def _k(self, classes: int) -> int:
        k = self.recipe.k or 1
        if k > classes:
            raise BadValue(f"{self.recipe.name} gives {k} guesses a video, and there are {classes} classes")
        return k

    def _accuracy(self, videos: Sequence[str], scores: Scores, k: int) -> tuple[float, list[float] | None]:
        right = self._right(videos, scores, k)
        correct = int(np.count_nonzero(right))
        interval = clopper_pearson(correct, len(right))
        return correct / len(right), None if interval is None else list(interval)

    def _only_class(self, videos: Sequence[str]) -> Indices:
        """The class of each video, for metrics that know no videos of several."""
        several = [name for name in videos if len(self._classes_of[name]) != 1]
        if several:
            raise BadValue(f"{self.recipe.metric} is for one class a video, and {several[0]} has several")
        return np.array([self._classes_of[name][0] for name in videos], np.int64)

    def _right(self, videos: Sequence[str], scores: Scores, k: int) -> Flags:
        """Whether any class of each video is among the k best."""
        pairs = np.array([(row, k) for row, name in enumerate(videos) for k in self._classes_of[name]], np.int64)
        right = np.zeros(len(videos), np.bool_)
        np.logical_or.at(right, pairs[:, 0], within_top_k(scores[pairs[:, 0]], pairs[:, 1], k))
        return right


def _scored(videos: Sequence[str], classes: tuple[str, ...], scores: Scores) -> VideoLabels:
    """Every class of every video as a row with its score."""
    video, label = np.indices(scores.shape, np.int32)
    return VideoLabels(tuple(videos), classes, video.ravel(), label.ravel(), scores.astype(np.float64).ravel())
