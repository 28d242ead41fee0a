"""Runs of object detectors: scores equal those of the boxes, also after an interruption."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from helpers.small_objects import CLASSES, RECIPE, SETS, TRUE, find
from helpers.small_recognition import NAMES
from jostle.core.types.frame_sets import BoxSets
from jostle.datasets.class_matching import match_objects
from jostle.datasets.dataset import Dataset
from jostle.errors import BadValue, DataError
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.single_frames import NamedObjectModel, ObjectPredictor
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run import Run
from jostle.evaluation.results.run_analysis import analyse_run
from jostle.evaluation.runner.runner import run_benchmark
from jostle.io.formats.boxes import read_boxes
from jostle.metrics.pm_k_detection import pm_k_detection


@pytest.fixture
def finished_run(finished_runs: dict[str, Run]) -> Run:
    return finished_runs["objects"]


def test_scores_equal_those_of_the_predicted_boxes(finished_run: Run, videos: dict[str, Path]) -> None:
    predictions, classes = read_boxes(finished_run.folder / "predictions" / "clean.npz")
    assert classes == ("light", "dark")  # the model has no class for whales
    assert list(predictions) == list(BoxSets(CLASSES, SETS, TRUE).frames)
    for frame, boxes in predictions.items():
        video, _, number = frame.rpartition("/")
        (expected_boxes,) = find(jostle.read(videos[video]).frames[int(number)][None])
        assert boxes.box.tolist() == expected_boxes.box.tolist()
    expected = pm_k_detection(predictions, TRUE, SETS, 2)
    scores = finished_run.scores["clean_more"]["objects"]
    assert (finished_run.scores["metric"], finished_run.scores["clean"]) == ("pm-2 mAP", expected.pm_k)
    assert scores["detection"]["mean_ap"] == expected.mean_ap
    assert scores["localisation"]["pm_k"] == pm_k_detection(predictions, TRUE, SETS, 2, ignore_class=True).pm_k
    assert (scores["classes"], scores["of_classes"]) == (2, 3)
    assert [cell["cell"] for cell in finished_run.scores["cells"]] == ["gaussian_noise:3"]


def test_a_finished_run_is_read_and_analysed(finished_run: Run) -> None:
    record = RunRecord.read(finished_run.folder)
    assert record.annotations.classes == CLASSES
    assert record.annotations.sets == {anchor: tuple(others) for anchor, others in SETS.items()}
    analysis = analyse_run(record, draws=40)
    assert analysis.of("clean").value == finished_run.scores["clean"]
    assert analysis.videos == tuple(NAMES)
    assert np.isnan(analysis.by_class[0, 2])  # no whale
    assert analysis.drawn.shape == (40, 2)
    assert record.scores.clean_more.objects is not None
    assert json.loads(json.dumps(finished_run.scores))["clean_more"]["objects"]["detection"]["k"] == 2


def test_a_detector_that_returns_no_boxes_is_refused(videos: dict[str, Path], tmp_path: Path) -> None:
    blind: Any = NamedObjectModel(lambda frames: frames, "blind")
    model = BenchmarkModel(partial(ObjectPredictor, blind, match_objects("blind", (), CLASSES)), model="blind")
    data = Dataset("folder", "test", Path("data"), (BoxSets(CLASSES, SETS, TRUE),), videos)
    with pytest.raises((BadValue, DataError), match="blind must return Boxes with scores for each of 1 frames"):
        run_benchmark(RECIPE, data, model, tmp_path / "run", cells=select_cells(RECIPE, None))


def test_a_file_whose_counts_do_not_add_up_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "clean.npz"
    np.savez(path, frames=np.array(["v/1"]), counts=np.array([2]), boxes=np.zeros((1, 6)), known=np.array(["x"]))
    with pytest.raises(DataError, match=r"clean\.npz"):
        read_boxes(path)
