"""A survey says what the run said, and what each class, video and draw is worth by itself."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import jostle
from helpers.made_runs import made_run
from jostle.errors import DataError
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.metrics.pm_k import pm_k
from jostle.metrics.score import score
from jostle.reporting.analysis.cell_scores import predictions_on
from jostle.reporting.analysis.pm_k import offset_errors
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.run_analysis import survey


@pytest.mark.parametrize("task", ["detection", "recognition", "frames"])
def test_the_values_are_those_of_the_run(task: str, request: pytest.FixtureRequest) -> None:
    record = request.getfixturevalue(task)
    found = survey(record)
    for cell, value in record.values.items():
        assert found.value[found.place[cell]] == pytest.approx(value, abs=1e-12)
    assert found.corrupted().value == pytest.approx(record.scores.mean_corrupted)
    assert found.relative().value == pytest.approx(record.scores.relative_robustness)
    assert found.of(CLEAN).interval is None  # no draws were asked for


def test_intervals_are_those_of_the_bootstrap(detection: RunRecord) -> None:
    cell = detection.cells[1]
    drawn = survey(detection, draws=60, seed=3).of(cell)
    told = jostle.score(detection.predictions(cell), detection.truth, protocol="thumos14", bootstrap=60, seed=3)
    assert told.interval is not None
    assert drawn.value == pytest.approx(told.average_map)
    assert drawn.interval == pytest.approx(told.interval.average_map)


def test_the_value_of_a_video_is_its_score_alone(detection: RunRecord) -> None:
    found = survey(detection)
    for cell in detection.cells:
        for v in (0, 5, 11):
            name = found.videos[v]
            alone = score(
                predictions_on(detection, cell, [name]), detection.truth.of_videos([name]), protocol="thumos14"
            )
            assert found.by_video[found.place[cell], v] == pytest.approx(alone.average_map, abs=1e-12)


def test_classes_of_a_detector_and_of_a_recogniser(detection: RunRecord, recognition: RunRecord) -> None:
    found = survey(detection)
    told = score(detection.predictions(CLEAN), detection.truth, protocol="thumos14")
    for i, name in enumerate(found.classes):
        assert found.by_class[0, i] == pytest.approx(told.per_class[name].mean())
    shares = survey(recognition)
    videos = np.bincount(recognition.labels.label)
    assert np.average(shares.by_class[0], weights=videos) == pytest.approx(recognition.scores.clean)
    assert set(np.unique(shares.by_video)) <= {0.0, 1.0}


def test_frames_are_weighed_by_their_anchors(frames: RunRecord) -> None:
    found = survey(frames, draws=50)
    names, scores = frames.table(CLEAN)
    told = pm_k(dict(zip(names, scores, strict=True)), frames.frames.sets, frames.frames.labels, 3)
    assert found.value[0] == pytest.approx(told.pm_k)
    assert found.by_video[0].mean() == pytest.approx(told.pm_k)  # one anchor a video
    assert found.of(CLEAN).interval is not None


def test_some_videos_only(detection: RunRecord) -> None:
    some = survey(detection).videos[:5]
    found = survey(detection, videos=some, draws=20)
    told = score(predictions_on(detection, CLEAN, some), detection.truth.of_videos(some), protocol="thumos14")
    assert found.value[0] == pytest.approx(told.average_map)
    assert found.by_video.shape == (5, 5)


def test_one_video_has_no_interval(tmp_path: Path) -> None:
    record = RunRecord.read(made_run(tmp_path / "run", videos=1))
    found = survey(record, draws=30)
    assert found.of(CLEAN).value is not None
    assert found.of(CLEAN).interval is None


def test_a_clean_score_of_nothing_has_no_ratio(tmp_path: Path) -> None:
    record = RunRecord.read(made_run(tmp_path / "run", "recognition", videos=2, weakness=1.0))
    found = survey(record, draws=20)
    zero = found.value.copy()
    zero[0] = 0.0
    object.__setattr__(found, "value", zero)
    assert found.relative().value is None


def test_gone_predictions_are_named(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run")
    (folder / "predictions" / "clean.json").unlink()
    with pytest.raises(DataError, match="the predictions on clean video are gone"):
        survey(RunRecord.read(folder))


def test_a_cell_that_lacks_a_video_is_named(tmp_path: Path, detection: RunRecord) -> None:
    with pytest.raises(DataError, match="clean lacks 1 videos, as 'nobody'"):
        survey(detection, videos=[*detection.truth.videos, "nobody"])


@pytest.mark.fault("F126")
@pytest.mark.parametrize(("task", "anchors"), [("recognition", 1), ("frames", 1), ("frames", 4)])
def test_F126_the_page_has_the_intervals_of_scores_json(task: str, anchors: int, tmp_path: Path) -> None:
    record = RunRecord.read(
        made_run(tmp_path / "run", task, anchors=anchors, weakness=3.0, classes=("a", "b", "c", "d"))
    )
    analysis = survey(record, draws=1000)
    stored = {CLEAN: record.scores.clean_more.interval} | {one.cell: one.interval for one in record.scores.listed}
    assert len({stored[cell] for cell in analysis.cells}) > 1
    for cell in analysis.cells:
        assert analysis.of(cell).interval == pytest.approx(stored[cell], abs=1e-12)
    exact = "exact (Clopper and Pearson)" in analysis.interval_text
    assert exact == (anchors == 1)
    assert exact or "a video is drawn with all its anchors" in analysis.interval_text


@pytest.mark.fault("F126")
def test_F126_an_older_run_whose_intervals_are_over_anchors_is_computed_again(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run", "frames", anchors=4, cells=(), knows=0.2)
    (own,) = offset_errors(RunRecord.read(folder))
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    old = scores["clean_more"]["pm_k"]
    del old["videos"], old["interval_method"]
    old["pm_k_interval"] = [0.0, 0.001]
    (folder / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    assert offset_errors(RunRecord.read(folder)) == [own]
