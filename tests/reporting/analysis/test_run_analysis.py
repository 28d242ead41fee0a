"""Analysis of a run: agreement with its scores, and values by class, video and bootstrap draw."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jostle
from helpers.synthetic_runs import write_run
from jostle.errors import DataError
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.cell_scores import predictions_of
from jostle.evaluation.results.pm_k import offset_errors
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import analyse_run, class_drops, estimate, video_drops
from jostle.metrics.bootstrap import video_weights
from jostle.metrics.pm_k import pm_k
from jostle.metrics.score import score


def test_intervals_equal_those_of_the_bootstrap(detection: RunRecord) -> None:
    cell = detection.cells[1]
    drawn = analyse_run(detection, draws=60, seed=3).of(cell)
    expected = jostle.score(
        detection.predictions(cell), detection.annotations, protocol="thumos14", bootstrap=60, seed=3
    )
    assert drawn.value == pytest.approx(expected.average_map)
    assert drawn.interval == pytest.approx(expected.interval.average_map)


def test_value_of_a_video_is_its_own_score(detection: RunRecord) -> None:
    analysis = analyse_run(detection)
    for cell in detection.cells:
        for v in (0, 5, 11):
            name = analysis.videos[v]
            alone = score(
                predictions_of(detection, cell, [name]), detection.annotations.of_videos([name]), protocol="thumos14"
            )
            assert analysis.by_video[analysis.place[cell], v] == pytest.approx(alone.average_map, abs=1e-12)


def test_classes_of_a_detector_and_of_a_recogniser(detection: RunRecord, recognition: RunRecord) -> None:
    analysis = analyse_run(detection)
    expected = score(detection.predictions(CLEAN), detection.annotations, protocol="thumos14")
    for i, name in enumerate(analysis.classes):
        assert analysis.by_class[0, i] == pytest.approx(expected.per_class[name].mean())
    accuracies = analyse_run(recognition)
    videos = np.bincount(recognition.annotations.label)
    assert np.average(accuracies.by_class[0], weights=videos) == pytest.approx(recognition.scores.clean)
    assert set(np.unique(accuracies.by_video)) <= {0.0, 1.0}


def test_frame_runs_are_scored_by_anchor(frames: RunRecord) -> None:
    analysis = analyse_run(frames, draws=50)
    table, truth = frames.predictions(CLEAN), frames.annotations
    expected = pm_k(dict(zip(table.names, table.scores, strict=True)), truth.sets, truth.labels, 3)
    assert analysis.value[0] == pytest.approx(expected.pm_k)
    assert analysis.by_video[0].mean() == pytest.approx(expected.pm_k)  # one anchor a video
    assert analysis.of(CLEAN).interval is not None


def test_subset_of_videos(detection: RunRecord) -> None:
    videos = analyse_run(detection).videos[:5]
    analysis = analyse_run(detection, videos=videos, draws=20)
    expected = score(
        predictions_of(detection, CLEAN, videos), detection.annotations.of_videos(videos), protocol="thumos14"
    )
    assert analysis.value[0] == pytest.approx(expected.average_map)
    assert analysis.by_video.shape == (5, 5)


def test_one_video_has_no_interval(tmp_path: Path) -> None:
    record = RunRecord.read(write_run(tmp_path / "run", videos=1))
    analysis = analyse_run(record, draws=30)
    assert analysis.of(CLEAN).value is not None
    assert analysis.of(CLEAN).interval is None


def test_missing_predictions_are_named(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    record = RunRecord.read(folder)
    with pytest.raises(DataError, match="clean lacks 1 videos, as 'nobody'"):
        analyse_run(record, videos=[*record.annotations.videos, "nobody"])
    (folder / "predictions" / "clean.json").unlink()
    with pytest.raises(DataError, match="the predictions on clean video are gone"):
        analyse_run(RunRecord.read(folder))


@pytest.mark.fault("F126")
@pytest.mark.parametrize(
    ("task", "anchors", "exact"),
    [
        ("recognition", 1, True),
        ("frames", 1, True),
        ("frames", 4, False),
        ("questions", 1, False),
        ("moments", 1, False),
    ],
)
def test_F126_analysis_has_the_intervals_of_scores_json(task: str, anchors: int, exact: bool, tmp_path: Path) -> None:
    record = RunRecord.read(
        write_run(tmp_path / "run", task, anchors=anchors, weakness=3.0, classes=("a", "b", "c", "d"))
    )
    analysis = analyse_run(record, draws=1000)
    stored = {CLEAN: record.scores.clean_more.interval} | {one.cell: one.interval for one in record.scores.listed}
    assert len({stored[cell] for cell in analysis.cells}) > 1
    for cell in analysis.cells:
        assert analysis.of(cell).interval == pytest.approx(stored[cell], abs=1e-12)
    words = {True: "exact (Clopper and Pearson)", False: "a video is drawn with all its"}
    assert words[exact] in analysis.interval_text
    assert words[not exact] not in analysis.interval_text


@pytest.mark.fault("F126")
def test_F126_intervals_over_anchors_of_old_runs_are_recomputed(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", "frames", anchors=4, cells=(), knows=0.2)
    (expected_errors,) = offset_errors(RunRecord.read(folder))
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    pm_k_record = scores["clean_more"]["pm_k"]
    del pm_k_record["videos"], pm_k_record["interval_method"]
    pm_k_record["pm_k_interval"] = [0.0, 0.001]
    (folder / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    assert offset_errors(RunRecord.read(folder)) == [expected_errors]


def test_class_drops_of_selected_cells(detection: RunRecord) -> None:
    analysis = analyse_run(detection)
    every, one = class_drops(analysis), class_drops(analysis, ["thumos14-c/black_frame:3"])
    assert [drop.loss for drop in every] == sorted((drop.loss for drop in every), reverse=True)
    assert len(every) == len(analysis.classes)
    for drop in one:
        assert drop.corrupted == drop.worst
        assert drop.worst_cell == "thumos14-c/black_frame:3"
    by_name = {drop.name: drop for drop in every}
    index = analysis.classes.index("jump")
    assert by_name["jump"].corrupted == pytest.approx(analysis.by_class[1:, index].mean())
    assert by_name["jump"].worst == analysis.by_class[1:, index].min()


def test_every_video_has_one_drop(recognition: RunRecord) -> None:
    analysis = analyse_run(recognition)
    drops = video_drops(analysis)
    assert sorted(drop.name for drop in drops) == sorted(analysis.videos)
    assert np.mean([drop.clean for drop in drops]) == pytest.approx(recognition.scores.clean)


def test_no_drops_without_corrupted_cells(frames: RunRecord) -> None:
    assert video_drops(analyse_run(frames), []) == []


@given(st.permutations(["a", "b", "c", "d"]), st.integers(0, 5))
def test_draws_do_not_depend_on_the_order_of_videos(names: list[str], seed: int) -> None:
    ordered, permuted = video_weights("abcd", 7, seed), video_weights(names, 7, seed)
    assert (ordered.sum(axis=1) == 4).all()
    np.testing.assert_array_equal(permuted, ordered[:, ["abcd".index(name) for name in names]])


def test_seeds_give_different_draws() -> None:
    assert (video_weights("abcdefgh", 5, 0) != video_weights("abcdefgh", 5, 1)).any()


def test_undefined_and_constant_values_have_no_interval() -> None:
    assert estimate(None, np.zeros(3)).value is None
    assert estimate(float("nan"), np.zeros(3)).value is None
    assert estimate(0.5, np.full(9, 0.5)).interval is None
    finite = estimate(0.5, np.array([0.4, np.nan, 0.6, np.inf, 0.5]))
    assert 0.4 <= finite.interval[0] <= finite.interval[1] <= 0.6
