"""What predictions of recognisers are worth."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from helpers.small_recognition import LABELS, RECIPE
from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset
from jostle.errors import BadValue, DataError
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.tasks.recognition import RecognitionTask

SCORES = {
    "a": [0.7, 0.2, 0.1],
    "b": [0.5, 0.3, 0.2],
    "c": [0.5, 0.4, 0.1],
    "d": [0.2, 0.3, 0.5],
}


def task(recipe: Recipe = RECIPE, labels: VideoLabels = LABELS) -> RecognitionTask:
    return RecognitionTask(recipe, Dataset("folder", "test", Path("data"), (labels,), {}))


def written(made: RecognitionTask, folder: Path) -> Path:
    path = folder / "cell.npz"
    made.write(path, {name: np.array(row, np.float32) for name, row in SCORES.items()})
    return path


@pytest.mark.parametrize(("k", "right"), [(1, 1), (2, 2), (3, 4)])
def test_accuracy_among_the_k_best(tmp_path: Path, k: int, right: int) -> None:
    made = task(dataclasses.replace(RECIPE, k=k))
    found = made.measure(written(made, tmp_path), list(SCORES))
    assert found.value == right / 4
    low, high = found.more["interval"]
    assert low < found.value <= high
    glances = [made.video_score(name, np.array(row, np.float32)) for name, row in SCORES.items()]
    assert np.mean(glances) == found.value


def test_any_of_several_classes_will_do(tmp_path: Path) -> None:
    both = VideoLabels(LABELS.videos, LABELS.classes, [0, 1, 2, 3, 3], [0, 1, 2, 0, 2])
    made = task(labels=both)
    assert made.measure(written(made, tmp_path), list(SCORES)).value == 0.5  # a and d
    assert made.fingerprint != task().fingerprint


def test_mean_average_precision(tmp_path: Path) -> None:
    made = task(dataclasses.replace(RECIPE, metric="video_mean_ap"))
    found = made.measure(written(made, tmp_path), list(SCORES))
    assert found.value == pytest.approx((3 / 4 + 1 / 3 + 1 / 3) / 3)  # of equal scores the later row is first
    assert found.more == {"hit_at_1": 0.25}
    assert made.video_score("a", np.array(SCORES["a"], np.float32)) is None


def test_more_guesses_than_classes_are_refused(tmp_path: Path) -> None:
    made = task(dataclasses.replace(RECIPE, k=4))
    with pytest.raises(BadValue, match="allows 4 guesses per video, and there are only 3 classes"):
        made.measure(written(made, tmp_path), list(SCORES))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = written(task(), tmp_path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match="no npz of videos and scores"):
        task().read(path)
