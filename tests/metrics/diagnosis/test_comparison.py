"""Two diagnoses subtracted."""

from __future__ import annotations

import json

import pytest

from jostle.errors import DataError
from jostle.metrics.diagnosis import compare_diagnoses, diagnose

TRUTH = [("u", "A", 0, 10), ("u", "A", 20, 22), ("v", "B", 0, 10)]
CLEAN = [("u", "A", 0, 10, 0.9), ("u", "A", 20, 22, 0.8), ("v", "B", 0, 10, 0.7)]
ROUGH = [("u", "A", 0, 10, 0.9), ("u", "A", 50, 52, 0.8), ("u", "A", 60, 62, 0.7)]


def test_what_went_wrong_by_kind(truth_of, found_of) -> None:
    truth = truth_of(TRUTH)
    found = compare_diagnoses(diagnose(found_of(CLEAN), truth), diagnose(found_of(ROUGH), truth))
    assert found.average_map == 0.25 - 1.0
    assert found.totals["background"] == 2
    assert found.totals["true_positive"] == -2
    assert found.grew_most == "background"
    assert found.false_negatives["overall"] == pytest.approx(2 / 3)
    assert found.false_negatives["length"]["XS"] == 1.0
    assert found.false_negatives["length"]["L"] is None
    assert found.sensitivity["length"]["XS"] == -1.0
    assert found.profile[0]["split"] == 1
    assert found.profile[0]["background"] == pytest.approx(1 / 2)
    assert found.profile[9]["background"] is None
    assert repr(found).startswith("Change(thumos14: average mAP -75.00%, ")
    json.dumps(found.to_dict(), allow_nan=False)


def test_stored_diagnoses_can_be_subtracted(truth_of, found_of) -> None:
    made = [diagnose(found_of(rows), truth_of(TRUTH)) for rows in (CLEAN, ROUGH)]
    stored = [json.loads(json.dumps(one.to_dict())) for one in made]
    assert compare_diagnoses(*stored).to_dict() == compare_diagnoses(*made).to_dict()


def test_no_change(truth_of, found_of) -> None:
    made = diagnose(found_of(ROUGH), truth_of(TRUTH))
    found = compare_diagnoses(made, made)
    assert found.average_map_n == 0.0
    assert set(found.totals.values()) | set(found.impact.values()) == {0.0}


def test_different_ground_truth_is_refused(truth_of, found_of) -> None:
    found = found_of(CLEAN)
    with pytest.raises(DataError, match=r"different ground truth, sha256:\w{12}\.\. and .* the same file and subset"):
        compare_diagnoses(diagnose(found, truth_of(TRUTH)), diagnose(found, truth_of([*TRUTH, ("v", "B", 20, 30)])))


def test_different_styles_are_refused(truth_of, found_of) -> None:
    found, truth = found_of(CLEAN), truth_of(TRUTH)
    with pytest.raises(DataError, match="differ in style, 'thumos14' and 'activitynet'"):
        compare_diagnoses(diagnose(found, truth), diagnose(found, truth, style="activitynet"))


def test_something_else_is_refused(truth_of, found_of) -> None:
    with pytest.raises(DataError, match="this is not a diagnosis: it lacks 'style'"):
        compare_diagnoses({"format": 1}, diagnose(found_of(CLEAN), truth_of(TRUTH)))
