"""Frames task: a class for each of several similar frames, scored by pm-k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jostle.core.types.columns import Flags, Floats
from jostle.core.types.frame_sets import FrameSets
from jostle.core.types.score_table import ScoreTable
from jostle.datasets.class_matching import Scores
from jostle.datasets.dataset import Dataset
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.tasks.actions import ActionSpans, check_spans
from jostle.evaluation.tasks.frames.view import draw_frame_sets
from jostle.evaluation.tasks.score_tables import read_table, write_table
from jostle.evaluation.tasks.similar_frames import SimilarFramesTask, check_sets
from jostle.evaluation.tasks.task import Array, Item, Need, hash_json, task
from jostle.evaluation.tasks.views import FrameSetsView
from jostle.evaluation.tasks.words import Words

if TYPE_CHECKING:
    from jostle.evaluation.config import InferenceConfig


@dataclass(frozen=True)
class LabelledFrames:
    """Content of truth.json: sets of frames and their classes."""

    sets: dict[str, tuple[str, ...]]  # frames similar to each anchor
    labels: dict[str, tuple[int, ...] | int]  # accepted classes of each frame
    actions: ActionSpans | None = None  # spans of the actions in videos, where known; None in older runs

    def __post_init__(self) -> None:
        check_spans(self.actions)
        check_sets(self.sets, self.labels, "labels")

    def annotations(self) -> FrameSets:
        """Return the sets that were stored."""
        return FrameSets(self.sets, self.labels)


@task("frames")
class FramesTask(SimilarFramesTask[FrameSets, Scores]):
    """Task with (frames, classes) scores per video, frames in the order of the sets; scored by pm-k."""

    words = Words(
        title="Image classification",
        tag="image-classification",
        predictions="`.npz` with `frames` (N,) and `scores` (N, C)",
        unit="frames",
        group_score="accuracy",
        interval_note="; of a single cell exact where each anchor is of a video of its own",
        loss_rule="the best class of the anchor frame is none of its labels",
    )
    reads = FrameSets
    stored = LabelledFrames
    takes: ClassVar[Mapping[str, Need]] = {"k": "required", "labels_of": "required"}
    refuses: ClassVar[Mapping[str, str]] = {
        **SimilarFramesTask.refuses,
        "adapt": "is of frames, and adaptation is for recognisers and feature extractors",
    }

    def plain_truth(self) -> Mapping[str, Any]:
        return {"sets": self._plain_sets(), "labels": self._plain_labels()}

    @property
    def fingerprint(self) -> str:
        return hash_json([self._plain_sets(), self._plain_labels()])

    def _plain_sets(self) -> dict[str, list[str]]:
        return {anchor: list(others) for anchor, others in self.annotations.sets.items()}

    def _plain_labels(self) -> dict[str, Any]:
        return {frame: self.annotations.labels[frame] for frame in self.annotations.frames}

    @classmethod
    def build_model(
        cls, recipe: Recipe, data: Dataset, config: InferenceConfig, device: str, *, here: bool
    ) -> BenchmarkModel:
        from jostle.evaluation.tasks.frames.model import build_frame_classifier

        return build_frame_classifier(recipe, data.frames, config, device)

    def join_portions(self, outputs: Sequence[Scores]) -> Scores:
        return np.concatenate(outputs)

    def pack(self, outputs: Mapping[str, Scores]) -> tuple[dict[str, Array], list[str]]:
        return dict(outputs), []

    def unpack(self, arrays: Mapping[str, Array], classes: Sequence[str]) -> dict[str, Scores]:
        return dict(arrays)

    def write(self, path: Path, outputs: Mapping[str, Scores]) -> None:
        table = self.to_predictions(outputs)
        write_table(path, "frames", table.names, table.scores)

    def read(self, path: Path) -> dict[str, Scores]:
        by_frame = dict(zip(*read_table(path, "frames"), strict=True))
        return {
            video: np.stack([by_frame[frame] for frame in frames])
            for video, frames in self.frames_of.items()
            if frames[0] in by_frame
        }

    def to_predictions(self, outputs: Mapping[str, Scores]) -> ScoreTable:
        frames = [frame for video in outputs for frame in self.frames_of[video]]
        return ScoreTable(tuple(frames), np.concatenate(list(outputs.values())))

    def read_predictions(self, path: Path) -> ScoreTable:
        return ScoreTable(*read_table(path, "frames"))

    def frames_in(self, predictions: ScoreTable) -> Sequence[str]:
        return predictions.names

    def items(self, name: str) -> Sequence[Item]:
        anchors = [frame for frame in self.frames_of[name] if frame in self.usable.sets]
        return tuple(Item(", ".join(map(str, self._labels(frame))), frame=frame) for frame in anchors)

    def judge(self, name: str, output: Scores, threshold: float) -> tuple[Floats, Flags]:
        rows = {frame: row for row, frame in enumerate(self.frames_of[name])}
        margins, right = [], []
        for item in self.items(name):
            scores, own = output[rows[item.frame]], self._labels(item.frame)
            margins.append(float(scores[own].max() - np.delete(scores, own).max(initial=-np.inf)))
            right.append(int(scores.argmax()) in own)
        return np.array(margins, np.float64), np.array(right, np.bool_)

    def _labels(self, frame: str) -> list[int]:
        labels = self.usable.labels[frame]
        return [labels] if isinstance(labels, int) else sorted(labels)

    def view(
        self, name: str, clean: ScoreTable, corrupted: ScoreTable, *, tiou: float | None = None, brief: bool = False
    ) -> FrameSetsView | None:
        if brief:
            return None  # every set is a row, and a report has pictures of the video
        held_to_anchor = self.benchmark.labels_of == "anchor"
        return draw_frame_sets(name, self.annotations, (clean, corrupted), self.benchmark.k or 0, held_to_anchor)
