"""Detection task: actions in long videos, stored as segments and written as ActivityNet JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jostle.core.types.columns import Flags, Floats
from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.datasets.dataset import Dataset
from jostle.errors import DataError, UnknownName
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.tasks.task import Array, Item, Need, StoredTruth, Task, task
from jostle.evaluation.tasks.views import TimelineView
from jostle.evaluation.tasks.words import Words
from jostle.io.files.annotations import read_predictions, read_truth, write_predictions, write_truth
from jostle.metrics.protocol import Protocol, protocols

if TYPE_CHECKING:
    from jostle.evaluation.config import InferenceConfig

LOSS_TIOU = 0.5  # overlap from which a detection is of an action


@task("detection")
class DetectionTask(Task[Truth, Segments]):
    """Task with segments per video, scored by mean average precision."""

    words = Words(
        title="Temporal action detection",
        tag="temporal-action-detection",
        has_pipeline=False,
        predictions="detections in ActivityNet's JSON, times in seconds",
        group_score="AP",
        video_note="The score of a single video is its own mAP over the classes it has.",
        loss_rule="no detection of the action's class at tIoU 0.5 with a score of at least the threshold",
    )
    reads = Truth
    models = "detectors"
    takes: ClassVar[Mapping[str, Need]] = {"protocol": "required", "tious": "allowed"}

    @classmethod
    def actions_in(cls, data: Dataset, annotations: Truth) -> Mapping[str, Segments]:
        return annotations.actions

    @classmethod
    def read_truth(cls, path: Path, classes: Sequence[str]) -> StoredTruth[Truth]:
        truth = read_truth(path).with_classes(classes)
        return StoredTruth(truth, truth.actions)

    def write_truth(self, path: Path) -> None:
        write_truth(self.annotations, path, format="activitynet")

    @property
    def fingerprint(self) -> str:
        return self.annotations.fingerprint

    @property
    def classes(self) -> Sequence[str]:
        return self.annotations.classes

    def classes_in(self, names: Sequence[str]) -> int:
        return len(np.unique(self.annotations.of_videos(names).label))

    @classmethod
    def build_model(
        cls, recipe: Recipe, data: Dataset, config: InferenceConfig, device: str, *, here: bool
    ) -> BenchmarkModel:
        from jostle.evaluation.tasks.detection.model import build_detector

        return build_detector(data.truth, config, device, here=here)

    def tries_model(self, *, begun: bool) -> bool:
        return False  # detectors are loaded before a run, and a long video takes minutes

    def pack(self, outputs: Mapping[str, Segments]) -> tuple[dict[str, Array], list[str]]:
        classes = list(dict.fromkeys(name for segments in outputs.values() for name in segments.classes))
        index = {name: i for i, name in enumerate(classes)}
        arrays = {}
        for cell, segments in outputs.items():
            score = np.ones(len(segments)) if segments.score is None else segments.score
            label = np.array([index[name] for name in segments.classes], np.float64)[segments.label]
            arrays[cell] = np.stack([segments.start, segments.end, label, score])
        return arrays, classes

    def unpack(self, arrays: Mapping[str, Array], classes: Sequence[str]) -> dict[str, Segments]:
        return {
            cell: Segments(start, end, label.astype(np.int64), score, tuple(classes))
            for cell, (start, end, label, score) in arrays.items()
        }

    def write(self, path: Path, outputs: Mapping[str, Segments]) -> None:
        write_predictions(self.to_predictions(outputs), path)

    def read(self, path: Path) -> dict[str, Segments]:
        predictions = read_predictions(path)
        return {
            name: Segments(predictions.start[rows], predictions.end[rows], predictions.label[rows].astype(np.int64),
                           predictions.score[rows], predictions.classes)
            for v, name in enumerate(predictions.videos)
            for rows in [np.flatnonzero(predictions.video == v)]
        }  # fmt: skip

    def to_predictions(self, outputs: Mapping[str, Segments]) -> Predictions:
        return Predictions.from_segments(dict(outputs))

    def read_predictions(self, path: Path) -> Predictions:
        return read_predictions(path)

    def videos_of(self, predictions: Predictions) -> Sequence[str]:
        return self.annotations.of_videos(predictions.videos).videos

    def restrict(self, predictions: Predictions, names: Sequence[str]) -> Predictions:
        if set(names) == set(predictions.videos):
            return predictions
        selected = frozenset(names)
        mask = np.array([name in selected for name in predictions.videos], np.bool_)
        rows = mask[predictions.video]
        index = np.cumsum(mask, dtype=np.int32) - 1
        return replace(
            predictions,
            videos=tuple(name for name in predictions.videos if name in selected),
            video=index[predictions.video[rows]],
            start=predictions.start[rows],
            end=predictions.end[rows],
            label=predictions.label[rows],
            score=predictions.score[rows],
        )

    def diagnose(self, path: Path, names: Sequence[str]) -> dict[str, Any] | None:
        from jostle.metrics.diagnosis.diagnosis import diagnose
        from jostle.metrics.diagnosis.style import styles

        # The buckets are those of the data set that the protocol is from.
        style = styles["activitynet" if self.benchmark.protocol == "activitynet" else "thumos14"]
        truth = self.annotations.of_videos(names)
        try:
            return diagnose(read_predictions(path), truth, style=style).to_dict()
        except DataError:  # nothing is detected, or nothing is annotated in these videos
            return None

    @property
    def rules(self) -> Protocol:
        """Protocol that detections are scored by."""
        assert self.benchmark.protocol is not None
        return protocols[self.benchmark.protocol]

    def items(self, name: str) -> Sequence[Item]:
        actions = self.annotations.actions[name]
        rows = zip(actions.label.tolist(), actions.start.tolist(), actions.end.tolist(), strict=True)
        return tuple(Item(actions.classes[label], start, end) for label, start, end in rows)

    def operating_threshold(self, outputs: Mapping[str, Segments]) -> float:
        from jostle.metrics.score import operating_score

        scores = [segments.score for segments in outputs.values() if segments.score is not None]
        return operating_score(np.concatenate(scores), len(self.annotations.of_videos(list(outputs))))

    def judge(self, name: str, output: Segments, threshold: float) -> tuple[Floats, Flags]:
        items, best = self.items(name), np.zeros(len(self.items(name)))
        classes = np.array(output.classes)[output.label] if len(output) else np.array([], str)
        for row, item in enumerate(items):
            assert item.start is not None
            assert item.end is not None
            overlap = np.minimum(output.end, item.end) - np.maximum(output.start, item.start)
            union = (output.end - output.start) + (item.end - item.start) - overlap
            matching = (classes == item.label) & (overlap >= LOSS_TIOU * union)
            if matching.any() and output.score is not None:
                best[row] = output.score[matching].max()
        return best, (best >= threshold) & (best > 0)

    def view(
        self, name: str, clean: Predictions, corrupted: Predictions, *, tiou: float | None = None, brief: bool = False
    ) -> TimelineView:
        """Return the detections along a video; in brief those that are as confident as there are actions."""
        from jostle.evaluation.tasks.detection.view import draw_detections
        from jostle.metrics.score import operating_score

        processed = self.annotations.of_videos(clean.videos)
        if name not in processed.videos:
            raise UnknownName("video", name, processed.videos)
        threshold, tious = operating_score(clean.score, len(processed)), self.benchmark.tious
        return draw_detections(
            processed.of_videos([name]),
            [self.restrict(side, [name]) for side in (clean, corrupted)],
            self.rules,
            tiou=tious[len(tious) // 2] if tiou is None else tiou,
            tious=tious,
            threshold=threshold,
            least=threshold if brief else 0.0,
        )
