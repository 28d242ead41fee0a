"""Errors, confusions and offsets are read as the run has them."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.evaluation.recipes.recipe import CLEAN
from jostle.reporting.analysis.cell_tables import cells_table, confusion_table, errors_table, offsets_table
from jostle.reporting.analysis.error_profile import confusion_of, error_profile
from jostle.reporting.analysis.pm_k import offset_errors
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.run_analysis import survey


def test_the_profile_is_the_mean_of_the_cells(detection: RunRecord) -> None:
    found, told = error_profile(detection), detection.diagnosis
    assert found is not None
    assert told is not None
    assert found.corrupted is not None
    assert found.clean.totals == told.false_positives.totals
    each = [own.false_positives.impact["localization"] for cell in detection.counted if (own := told.cells[cell])]
    assert found.corrupted.impact["localization"] == pytest.approx(np.mean(each))
    assert sum(share or 0 for share in found.corrupted.shares.values()) == pytest.approx(1)
    assert found.cells == detection.counted
    assert errors_table(found).rows[-1][0] == "missed actions"


def test_other_tasks_have_no_profile(recognition: RunRecord) -> None:
    assert error_profile(recognition) is None


def test_confusions_grow_with_corruption(recognition: RunRecord) -> None:
    found = confusion_of(recognition)
    assert found is not None
    np.testing.assert_allclose(found.clean.sum(axis=1), 1)
    np.testing.assert_allclose(found.corrupted.sum(axis=1), 1)
    count = np.bincount(recognition.labels.label)
    assert np.average(np.diag(found.clean), weights=count) == pytest.approx(recognition.scores.clean)
    assert np.average(np.diag(found.corrupted), weights=count) == pytest.approx(recognition.scores.mean_corrupted)
    growth = [one.growth for one in found.grew]
    assert growth
    assert growth == sorted(growth, reverse=True)
    assert len(confusion_table(found, most=2).rows) == 2
    assert confusion_of(recognition, []) is None


def test_offsets_are_those_of_pm_k(frames: RunRecord, detection: RunRecord) -> None:
    found = offset_errors(frames)
    assert [one.cell for one in found] == list(frames.cells)
    assert list(found[0].error) == [-3, -2, -1, 1, 2, 3]
    assert found[0].pm_k == frames.scores.clean
    assert found[0].drop == pytest.approx(found[0].accuracy - found[0].pm_k)
    assert found[-1].pm_k < found[0].pm_k
    assert len(offsets_table([("run", one) for one in found]).rows) == len(found)
    assert offset_errors(detection) == []


def test_the_table_of_cells_has_every_cell_and_the_mean(detection: RunRecord) -> None:
    table = cells_table([survey(detection)])
    assert [row[1] for row in table.rows] == [*detection.cells, "mean corrupted"]
    assert table.rows[0][1:5] == (CLEAN, detection.scores.clean, None, 1.0)
    assert table.rows[-1][2] == pytest.approx(detection.scores.mean_corrupted)
