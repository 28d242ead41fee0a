"""Recognition task: one class per video, stored as scores of all classes and written as npz."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jostle.core.schema import Mismatch
from jostle.core.types.columns import Flags, Floats
from jostle.core.types.score_table import ScoreTable
from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.class_matching import Scores
from jostle.datasets.dataset import Dataset
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.tasks.actions import ActionSpans, check_spans
from jostle.evaluation.tasks.recognition.view import draw_class_scores
from jostle.evaluation.tasks.score_tables import read_table, write_table
from jostle.evaluation.tasks.task import Array, Item, Need, Task, task
from jostle.evaluation.tasks.views import ClassScoresView
from jostle.evaluation.tasks.words import Words
from jostle.metrics.accuracy import guesses, videos_within_top_k

if TYPE_CHECKING:
    from jostle.evaluation.config import InferenceConfig


@dataclass(frozen=True)
class LabelledVideos:
    """Content of truth.json: classes of videos."""

    classes: tuple[str, ...]
    videos: dict[str, tuple[str, ...]]  # classes of each video
    actions: ActionSpans | None = None  # spans of the actions in videos, where known; None in older runs

    def __post_init__(self) -> None:
        check_spans(self.actions)
        known = set(self.classes)
        if not known or len(known) < len(self.classes):
            raise Mismatch("must be distinct and not empty").under("classes")
        for video, labels in self.videos.items():
            if not known.issuperset(labels):
                raise (
                    Mismatch(f"has the class {min(set(labels) - known)!r}, which is not among the classes")
                    .under(video)
                    .under("videos")
                )

    def annotations(self) -> VideoLabels:
        """Return the labels that were stored."""
        index = {name: k for k, name in enumerate(self.classes)}
        pairs = [(v, index[name]) for v, names in enumerate(self.videos.values()) for name in names]
        video, label = np.array(pairs, np.int32).reshape(-1, 2).T
        return VideoLabels(tuple(self.videos), self.classes, video, label)


@task("recognition")
class RecognitionTask(Task[VideoLabels, Scores]):
    """Task with class scores per video, scored by accuracy or by mean average precision."""

    words = Words(
        title="Video classification",
        tag="video-classification",
        predictions="`.npz` with `videos` (N,), `scores` (N, C) and `classes` (C,)",
        group_score="accuracy",
        interval_note="; of a single cell exact",
        loss_rule="no class of the video among the guesses that the benchmark allows",
    )
    reads = VideoLabels
    stored = LabelledVideos
    indent = 1
    takes: ClassVar[Mapping[str, Need]] = {"k": "required", "sampling": "allowed"}
    suffix = ".npz"

    def classes_in(self, names: Sequence[str]) -> int:
        return len({label for name in names for label in self._classes_of.get(name, ())})

    @property
    def fingerprint(self) -> str:
        labels = self.annotations
        rows = sorted((labels.videos[v], labels.classes[k]) for v, k in zip(labels.video, labels.label, strict=True))
        return f"sha256:{hashlib.sha256(repr((labels.classes, rows)).encode()).hexdigest()}"

    @cached_property
    def _classes_of(self) -> dict[str, list[int]]:
        classes: dict[str, list[int]] = defaultdict(list)
        for v, k in zip(self.annotations.video.tolist(), self.annotations.label.tolist(), strict=True):
            classes[self.annotations.videos[v]].append(k)
        return classes

    def plain_truth(self) -> Mapping[str, Any]:
        classes = self.annotations.classes
        videos = {name: [classes[k] for k in self._classes_of.get(name, [])] for name in self.videos}
        return {"classes": list(classes), "videos": videos}

    @classmethod
    def build_model(
        cls, recipe: Recipe, data: Dataset, config: InferenceConfig, device: str, *, here: bool
    ) -> BenchmarkModel:
        from jostle.evaluation.tasks.recognition.model import build_recogniser

        return build_recogniser(recipe, data.labels, config, device)

    def pack(self, outputs: Mapping[str, Scores]) -> tuple[dict[str, Array], list[str]]:
        return dict(outputs), []  # the classes are the data set's, whose fingerprint the run records

    def unpack(self, arrays: Mapping[str, Array], classes: Sequence[str]) -> dict[str, Scores]:
        return dict(arrays)

    def write(self, path: Path, outputs: Mapping[str, Scores]) -> None:
        write_table(path, "videos", list(outputs), np.stack(list(outputs.values())), self.annotations.classes)

    def read(self, path: Path) -> dict[str, Scores]:
        return dict(zip(*read_table(path, "videos"), strict=True))

    def truth_of(self, names: Sequence[str]) -> VideoLabels:
        if len(names) > 1:
            return self.annotations.of_videos(names)
        labels = [(v, k) for v, name in enumerate(names) for k in self._classes_of.get(name, ())]
        video, label = np.array(labels, np.int32).reshape(-1, 2).T  # of one video, without going over all
        return VideoLabels(tuple(names), self.annotations.classes, video, label)

    def to_predictions(self, outputs: Mapping[str, Scores]) -> ScoreTable:
        return ScoreTable(tuple(outputs), np.stack(list(outputs.values())))

    def read_predictions(self, path: Path) -> ScoreTable:
        return ScoreTable(*read_table(path, "videos"))

    def videos_of(self, predictions: ScoreTable) -> Sequence[str]:
        return predictions.names

    def restrict(self, predictions: ScoreTable, names: Sequence[str]) -> ScoreTable:
        return predictions.of(names)

    def items(self, name: str) -> Sequence[Item]:
        labels = self._classes_of.get(name, ())
        return (Item(", ".join(self.annotations.classes[k] for k in labels)),) if labels else ()

    def judge(self, name: str, output: Scores, threshold: float) -> tuple[Floats, Flags]:
        k = guesses(self.benchmark, len(output))
        own = np.zeros(len(output), np.bool_)
        own[self._classes_of[name]] = True
        others = np.sort(output[~own])[::-1]
        rival = float(others[k - 1]) if len(others) >= k else -math.inf
        right = videos_within_top_k(self.truth_of([name]), self.to_predictions({name: output}), k)
        return np.array([float(output[own].max()) - rival]), right

    def view(
        self, name: str, clean: ScoreTable, corrupted: ScoreTable, *, tiou: float | None = None, brief: bool = False
    ) -> ClassScoresView:
        sides = [self.restrict(side, [name]) for side in (clean, corrupted)]
        return draw_class_scores(self.truth_of([name]), sides, self.benchmark.k or 1)
