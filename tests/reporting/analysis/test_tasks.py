"""Error profiles, confusions and frame offsets agree with the run."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.results.pm_k import offset_errors
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import analyse_run
from jostle.reporting.analysis.cell_tables import cells_table, confusion_table, errors_table, offsets_table
from jostle.reporting.analysis.error_profile import confusion_of, error_profile


def test_error_profile_is_the_mean_of_the_cells(detection: RunRecord) -> None:
    profile, diagnosis = error_profile(detection), detection.diagnosis
    assert profile is not None
    assert diagnosis is not None
    assert profile.corrupted is not None
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


def test_other_tasks_have_no_error_profile(recognition: RunRecord) -> None:
    assert error_profile(recognition) is None


def test_confusions_grow_with_corruption(recognition: RunRecord) -> None:
    confusion = confusion_of(recognition)
    assert confusion is not None
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
