"""Error profiles, confusions, frame offsets and timelines agree with the run."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.cell_scores import predictions_of
from jostle.evaluation.results.pm_k import offset_errors
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import analyse_run
from jostle.evaluation.tasks.views import TimelineView
from jostle.metrics.score import score
from jostle.reporting.analysis.cell_tables import cells_table, confusion_table, errors_table, offsets_table
from jostle.reporting.analysis.error_profile import confusion_of, error_profile


def test_error_profile_is_the_mean_of_the_cells(detection: RunRecord) -> None:
    profile, diagnosis = error_profile(detection), detection.diagnosis
    assert profile.clean.totals == diagnosis.false_positives.totals
    impacts = [
        cell_diagnosis.false_positives.impact["localization"]
        for cell in detection.counted
        if (cell_diagnosis := diagnosis.cells[cell])
    ]
    assert profile.corrupted.impact["localization"] == pytest.approx(np.mean(impacts))
    assert sum(share or 0 for share in profile.corrupted.shares.values()) == pytest.approx(1)
    assert profile.cells == detection.counted
    assert errors_table(profile).rows[-1][0] == "missed actions"


def test_confusions_grow_with_corruption(recognition: RunRecord) -> None:
    confusion = confusion_of(recognition)
    np.testing.assert_allclose(confusion.clean.sum(axis=1), 1)
    np.testing.assert_allclose(confusion.corrupted.sum(axis=1), 1)
    count = np.bincount(recognition.annotations.label)
    assert np.average(np.diag(confusion.clean), weights=count) == pytest.approx(recognition.scores.clean)
    assert np.average(np.diag(confusion.corrupted), weights=count) == pytest.approx(recognition.scores.mean_corrupted)
    growth = [one.growth for one in confusion.grew]
    assert growth
    assert growth == sorted(growth, reverse=True)
    assert len(confusion_table(confusion, most=2).rows) == 2
    assert confusion_of(recognition, []) is None
    assert error_profile(recognition) is None


def test_offset_errors_agree_with_pm_k(frames: RunRecord, detection: RunRecord) -> None:
    errors = offset_errors(frames)
    assert [one.cell for one in errors] == list(frames.cells)
    assert list(errors[0].error) == [-3, -2, -1, 1, 2, 3]
    assert errors[0].pm_k == frames.scores.clean
    assert errors[0].drop == pytest.approx(errors[0].accuracy - errors[0].pm_k)
    assert errors[-1].pm_k < errors[0].pm_k
    assert len(offsets_table([("run", one) for one in errors]).rows) == len(errors)
    assert offset_errors(detection) == []


def test_cells_table_has_every_cell_and_the_mean(detection: RunRecord) -> None:
    table = cells_table([analyse_run(detection)])
    assert [row[1] for row in table.rows] == [*detection.cells, "mean corrupted"]
    assert table.rows[0][1:5] == (CLEAN, detection.scores.clean, None, 1.0)
    assert table.rows[-1][2] == pytest.approx(detection.scores.mean_corrupted)


CELL = "thumos14-c/black_frame:3"


def timeline_of(record: RunRecord, video: str, *, brief: bool = False) -> TimelineView:
    view = record.view(video, CELL, brief=brief)
    assert isinstance(view, TimelineView)
    return view


def test_correct_detections_are_those_of_the_score(detection: RunRecord) -> None:
    for name in detection.annotations.videos:
        timeline = timeline_of(detection, name)
        assert timeline.tiou == 0.5
        for cell, detections in ((CLEAN, timeline.clean), (CELL, timeline.corrupted)):
            truth = detection.annotations.of_videos([name])
            scored = score(predictions_of(detection, cell, [name]), truth, protocol="thumos14", tious=[0.5])
            right = [one for one in detections if one.kind == "true_positive"]
            assert len(right) == (scored.matches.taken_by >= 0).sum()
            assert len(detections) == 4
            for correct in right:
                action = timeline.actions[correct.action or 0]
                assert correct.tiou >= 0.5
                assert correct.label == action.label
                assert action.found_clean if cell == CLEAN else action.found_corrupted


def test_actions_are_sorted_by_start_and_some_are_missed(detection: RunRecord) -> None:
    timelines = [timeline_of(detection, name) for name in detection.annotations.videos]
    for timeline in timelines:
        assert [action.start for action in timeline.actions] == sorted(action.start for action in timeline.actions)
        assert timeline.end >= max(action.end for action in timeline.actions)
    assert any(action.lost for timeline in timelines for action in timeline.actions)
    assert {one.kind for timeline in timelines for one in timeline.corrupted} > {"true_positive", "background"}


def test_a_brief_view_has_as_many_detections_on_clean_video_as_actions(detection: RunRecord) -> None:
    timeline = timeline_of(detection, detection.annotations.videos[0], brief=True)
    threshold = timeline.threshold
    assert all(one.score >= threshold for one in (*timeline.clean, *timeline.corrupted))
    assert (detection.predictions(CLEAN).score >= threshold).sum() == len(detection.annotations)
