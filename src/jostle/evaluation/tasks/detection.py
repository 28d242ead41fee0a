"""Detection task: actions in long videos, stored as segments and written as ActivityNet JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from jostle.core.types.columns import Flags, Floats
from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.errors import DataError
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.recipes.recipe import Cell, Recipe
from jostle.evaluation.tasks.task import Array, Item, Task, task
from jostle.io.files.annotations import read_predictions, write_predictions, write_truth
from jostle.metrics.diagnosis.diagnosis import diagnose
from jostle.metrics.diagnosis.style import Style, styles
from jostle.metrics.score import operating_score

LOSS_TIOU = 0.5  # overlap from which a detection is of an action


@task("detection")
class DetectionTask(Task[Segments]):
    """Task with segments per video, scored by mean average precision."""

    suffix: ClassVar[str] = ".json"
    loss_rule: ClassVar[str] = "no detection of the action's class at tIoU 0.5 with a score of at least the threshold"

    @property
    def annotations(self) -> Truth:
        return self.data.truth

    @property
    def classes(self) -> Sequence[str]:
        return self.data.truth.classes

    def classes_in(self, names: Sequence[str]) -> int:
        return len(np.unique(self.data.truth.of_videos(names).label))

    @property
    def fingerprint(self) -> str:
        return self.data.truth.fingerprint

    def write_truth(self, path: Path) -> None:
        write_truth(self.data.truth, path, format="activitynet")

    def diagnose(self, path: Path, names: Sequence[str]) -> dict[str, Any] | None:
        truth = self.data.truth.of_videos(names)
        try:
            return diagnose(read_predictions(path), truth, style=style_for(self.recipe)).to_dict()
        except DataError:  # nothing is detected, or nothing is annotated in these videos
            return None

    def make_job(
        self, name: str, path: Path, cells: tuple[Cell, ...], seed: int, portion: int | None = None
    ) -> VideoJob:
        return VideoJob(name, path, cells, seed, self.data.truth.actions[name], fps=self.data.rate_of(name))

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

    def read_predictions(self, path: Path, truth: Truth) -> Predictions:
        return read_predictions(path)

    def items(self, name: str) -> Sequence[Item]:
        actions = self.data.truth.actions[name]
        rows = zip(actions.label.tolist(), actions.start.tolist(), actions.end.tolist(), strict=True)
        return tuple(Item(actions.classes[label], start, end) for label, start, end in rows)

    def operating_threshold(self, outputs: Mapping[str, Segments]) -> float:
        scores = [segments.score for segments in outputs.values() if segments.score is not None]
        return operating_score(np.concatenate(scores), len(self.data.truth.of_videos(list(outputs))))

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


def style_for(recipe: Recipe) -> Style:
    """Return the diagnosis buckets of a benchmark: those of the data set that its protocol is from."""
    return styles["activitynet" if recipe.protocol == "activitynet" else "thumos14"]
