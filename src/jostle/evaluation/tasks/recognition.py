"""Recognition task: one class per video, stored as scores of all classes and written as npz."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from jostle.core.types.columns import Flags, Floats, Indices
from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.class_matching import Scores
from jostle.errors import BadValue
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.recipes.recipe import Cell
from jostle.evaluation.tasks.score_tables import read_table, write_table
from jostle.evaluation.tasks.task import Array, Item, MetricValue, Task, action_pairs, task
from jostle.io.files.atomic import write_text
from jostle.metrics.accuracy import within_top_k
from jostle.metrics.metric import compute_custom_metric, metrics
from jostle.metrics.proportion import clopper_pearson
from jostle.metrics.video_classification import video_classification

ALSO = 5  # top-5 is reported besides top-1


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

    def measure(self, path: Path, names: Sequence[str]) -> MetricValue:
        videos, scores = read_table(path, "videos")
        k = self._k(scores.shape[1])
        accuracy, interval = self._accuracy(videos, scores, k)
        if self.recipe.metric == "video_mean_ap":
            labels = self.labels.of_videos(names)
            result = video_classification(_to_scored_labels(videos, self.labels.classes, scores), labels, k=k)
            return MetricValue(result.mean_ap, {f"hit_at_{k}": result.hit_at_k})
        if metrics.part(self.recipe.metric) is not None:
            return MetricValue(compute_custom_metric(self.recipe.metric, scores, self._only_class(videos)), {})
        more: dict[str, Any] = {"interval": interval, "chance": k / scores.shape[1]}
        if constant := int(np.count_nonzero(scores.min(axis=1) == scores.max(axis=1))):
            more["constant"] = constant  # videos whose answer is the first class, because all score the same
        if k < ALSO < scores.shape[1]:
            more[f"top_{ALSO}"] = self._accuracy(videos, scores, ALSO)[0]
        return MetricValue(accuracy, more)

    def video_score(self, name: str, output: Scores) -> float | None:
        if self.recipe.metric != "top_k_accuracy" or name not in self._classes_of:
            return None
        return float(self._right([name], output[None], self._k(len(output)))[0])

    def items(self, name: str) -> Sequence[Item]:
        labels = self._classes_of.get(name, ())
        return (Item(", ".join(self.labels.classes[k] for k in labels)),) if labels else ()

    def judge(self, name: str, output: Scores, threshold: float) -> tuple[Floats, Flags]:
        k = self._k(len(output))
        own = np.zeros(len(output), np.bool_)
        own[self._classes_of[name]] = True
        others = np.sort(output[~own])[::-1]
        rival = float(others[k - 1]) if len(others) >= k else -math.inf
        return np.array([float(output[own].max()) - rival]), self._right([name], output[None], k)

    def _k(self, classes: int) -> int:
        k = self.recipe.k or 1
        if k > classes:
            raise BadValue(f"{self.recipe.name} allows {k} guesses per video, and there are only {classes} classes")
        return k

    def _accuracy(self, videos: Sequence[str], scores: Scores, k: int) -> tuple[float, list[float] | None]:
        right = self._right(videos, scores, k)
        correct = int(np.count_nonzero(right))
        interval = clopper_pearson(correct, len(right))
        return correct / len(right), None if interval is None else list(interval)

    def _only_class(self, videos: Sequence[str]) -> Indices:
        """Return the class of each video, for metrics without multi-label support."""
        several = [name for name in videos if len(self._classes_of[name]) != 1]
        if several:
            raise BadValue(f"{self.recipe.metric} needs one class per video, and {several[0]} has several")
        return np.array([self._classes_of[name][0] for name in videos], np.int64)

    def _right(self, videos: Sequence[str], scores: Scores, k: int) -> Flags:
        """Return whether any class of each video is among the k best."""
        pairs = np.array([(row, k) for row, name in enumerate(videos) for k in self._classes_of[name]], np.int64)
        right = np.zeros(len(videos), np.bool_)
        np.logical_or.at(right, pairs[:, 0], within_top_k(scores[pairs[:, 0]], pairs[:, 1], k))
        return right


def _to_scored_labels(videos: Sequence[str], classes: tuple[str, ...], scores: Scores) -> VideoLabels:
    """Return every class of every video as a row with its score."""
    video, label = np.indices(scores.shape, np.int32)
    return VideoLabels(tuple(videos), classes, video.ravel(), label.ravel(), scores.astype(np.float64).ravel())
