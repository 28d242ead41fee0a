"""Accuracy and mean average precision of recognition predictions."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from helpers.small_recognition import LABELS, RECIPE
from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset
from jostle.errors import BadValue
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.tasks.recognition import RecognitionTask

SCORES = {
    "a": [0.7, 0.2, 0.1],
    "b": [0.5, 0.3, 0.2],
    "c": [0.5, 0.4, 0.1],
    "d": [0.2, 0.3, 0.5],
}


def task(recipe: Recipe = RECIPE, labels: VideoLabels = LABELS) -> RecognitionTask:
    return RecognitionTask.of_data(recipe, Dataset("folder", "test", Path("data"), (labels,), {}))


def write_predictions(task: RecognitionTask, folder: Path) -> Path:
    path = folder / "cell.npz"
    task.write(path, {name: np.array(row, np.float32) for name, row in SCORES.items()})
    return path


@pytest.mark.parametrize(("k", "right"), [(1, 1), (2, 2), (3, 4)])
def test_top_k_accuracy(tmp_path: Path, k: int, right: int) -> None:
    recognition = task(dataclasses.replace(RECIPE, k=k))
    result = recognition.measure(write_predictions(recognition, tmp_path), list(SCORES))
    assert result.value == right / 4
    low, high = result.more["interval"]
    assert low < result.value <= high
    video_scores = [recognition.video_score(name, np.array(row, np.float32)) for name, row in SCORES.items()]
    assert np.mean(video_scores) == result.value


def test_any_of_several_labels_is_correct(tmp_path: Path) -> None:
    both = VideoLabels(LABELS.videos, LABELS.classes, [0, 1, 2, 3, 3], [0, 1, 2, 0, 2])
    recognition = task(labels=both)
    assert recognition.measure(write_predictions(recognition, tmp_path), list(SCORES)).value == 0.5  # a and d
    assert recognition.fingerprint != task().fingerprint


def test_mean_average_precision(tmp_path: Path) -> None:
    recognition = task(dataclasses.replace(RECIPE, metric="video_mean_ap"))
    result = recognition.measure(write_predictions(recognition, tmp_path), list(SCORES))
    assert result.value == pytest.approx((3 / 4 + 1 / 3 + 1 / 3) / 3)  # of equal scores the later row is first
    assert result.more == {"hit_at_1": 0.25}
    assert recognition.video_score("a", np.array(SCORES["a"], np.float32)) is None


def test_more_guesses_than_classes_are_refused(tmp_path: Path) -> None:
    recognition = task(dataclasses.replace(RECIPE, k=4))
    with pytest.raises(BadValue, match="allows 4 guesses per video, and there are only 3 classes"):
        recognition.measure(write_predictions(recognition, tmp_path), list(SCORES))
