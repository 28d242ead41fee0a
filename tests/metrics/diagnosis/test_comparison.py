"""Comparison of two diagnoses by kind of error."""

from __future__ import annotations

import json

import pytest

from jostle.errors import DataError
from jostle.metrics.diagnosis import compare_diagnoses, diagnose

TRUTH = [("u", "A", 0, 10), ("u", "A", 20, 22), ("v", "B", 0, 10)]
CLEAN = [("u", "A", 0, 10, 0.9), ("u", "A", 20, 22, 0.8), ("v", "B", 0, 10, 0.7)]
CORRUPTED = [("u", "A", 0, 10, 0.9), ("u", "A", 50, 52, 0.8), ("u", "A", 60, 62, 0.7)]


def test_changes_by_kind_of_error(truth_of, predictions_of) -> None:
    truth = truth_of(TRUTH)
    change = compare_diagnoses(diagnose(predictions_of(CLEAN), truth), diagnose(predictions_of(CORRUPTED), truth))
    assert change.average_map == 0.25 - 1.0
    assert change.totals["background"] == 2
    assert change.totals["true_positive"] == -2
    assert change.grew_most == "background"
    assert change.false_negatives["overall"] == pytest.approx(2 / 3)
    assert change.false_negatives["length"]["XS"] == 1.0
    assert change.false_negatives["length"]["L"] is None
    assert change.sensitivity["length"]["XS"] == -1.0
    assert change.profile[0]["split"] == 1
    assert change.profile[0]["background"] == pytest.approx(1 / 2)
    assert change.profile[9]["background"] is None
    assert repr(change).startswith("Change(thumos14: average mAP -75.00%, ")


def test_stored_diagnoses_can_be_compared(truth_of, predictions_of) -> None:
    diagnoses = [diagnose(predictions_of(rows), truth_of(TRUTH)) for rows in (CLEAN, CORRUPTED)]
    stored = [json.loads(json.dumps(diagnosis.to_dict())) for diagnosis in diagnoses]
    assert compare_diagnoses(*stored).to_dict() == compare_diagnoses(*diagnoses).to_dict()


def test_comparison_with_itself_is_zero(truth_of, predictions_of) -> None:
    diagnosis = diagnose(predictions_of(CORRUPTED), truth_of(TRUTH))
    change = compare_diagnoses(diagnosis, diagnosis)
    assert change.average_map_n == 0.0
    assert set(change.totals.values()) | set(change.impact.values()) == {0.0}


def test_diagnoses_of_other_truth_or_style_are_refused(truth_of, predictions_of) -> None:
    predictions, truth = predictions_of(CLEAN), truth_of(TRUTH)
    diagnosis = diagnose(predictions, truth)
    more = diagnose(predictions, truth_of([*TRUTH, ("v", "B", 20, 30)]))
    with pytest.raises(DataError, match=r"different ground truth, sha256:\w{12}\.\. and .* the same file and subset"):
        compare_diagnoses(diagnosis, more)
    with pytest.raises(DataError, match="differ in style, 'thumos14' and 'activitynet'"):
        compare_diagnoses(diagnosis, diagnose(predictions, truth, style="activitynet"))
    with pytest.raises(DataError, match="this is not a diagnosis: it lacks 'style'"):
        compare_diagnoses({"format": 1}, diagnosis)
