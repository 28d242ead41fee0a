"""Complete diagnoses of small examples, with expected values worked out by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

from jostle.core.types.predictions import Predictions
from jostle.errors import DataError
from jostle.metrics.diagnosis import MENDED_FAULTS, diagnose
from jostle.metrics.diagnosis.false_positives import ERROR_KINDS

TRUTH = [("u", "A", 0, 10), ("u", "A", 20, 30), ("u", "B", 40, 50), ("v", "B", 0, 10)]
EACH_KIND = [
    ("u", "A", 0, 10, 0.9),  # true positive
    ("u", "A", 0, 9, 0.8),  # double detection
    ("u", "A", 40, 50, 0.7),  # wrong label
    ("u", "A", 20, 24, 0.6),  # localisation error
    ("u", "A", 46, 60, 0.5),  # confusion: wrong label and location
    ("u", "A", 80, 90, 0.4),  # background
    ("w", "A", 0, 10, 0.35),  # no ground truth in this video
    ("x", "A", 0, 10, 0.3),  # an unknown video
    ("v", "B", 0, 10, 0.9),
]


def test_each_kind_of_error(truth_of, predictions_of) -> None:
    diagnosis = diagnose(predictions_of(EACH_KIND), truth_of(TRUTH))
    errors = diagnosis.false_positives
    assert [ERROR_KINDS[i] for i in errors.kind[0]] == [*ERROR_KINDS, "background", "background", "true_positive"]
    assert errors.matched[0].tolist() == [0, *[-1] * 7, 3]
    assert errors.nearest.tolist() == [0, 0, 2, 1, 2, -1, -1, -1, 3]
    assert errors.totals == dict(zip(ERROR_KINDS, [2, 1, 1, 1, 1, 3], strict=True))
    assert errors.split.tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 1]
    assert errors.profile[0]["count"] == 3
    assert errors.profile[0]["true_positive"] == 2 / 3
    assert errors.profile[9] == {"split": 10, "count": 0} | dict.fromkeys(ERROR_KINDS)


def test_impact_is_the_gain_of_removing_errors(truth_of, predictions_of) -> None:
    rows = [("u", "A", 80, 90, 0.9), ("u", "A", 0, 10, 0.8)]
    diagnosis = diagnose(predictions_of(rows), truth_of(TRUTH[:1]))
    assert diagnosis.top_10g.average_map == 0.5
    assert diagnosis.false_positives.impact == dict.fromkeys(ERROR_KINDS[1:], 0.0) | {"background": 0.5}


def test_diagnosis_without_predictions(truth_of) -> None:
    diagnosis = diagnose(Predictions((), (), [], [], [], [], []), truth_of(TRUTH))
    content = diagnosis.to_dict()
    json.dumps(content, allow_nan=False)
    assert (content["average_map"], content["top_10g"]["count"], content["false_negatives"]["overall"]) == (0.0, 0, 1.0)
    assert all(split["background"] is None for split in content["false_positives"]["profile"])
    assert content["sensitivity"]["length"] == {"XS": None, "S": None, "M": 0.0, "L": None, "XL": None}
    assert content["sensitivity_profile"]["length"] == {
        "min": 0.0,
        "max": 0.0,
        "relative_min": None,
        "relative_max": None,
    }


def test_to_dict_has_the_documented_keys(truth_of, predictions_of) -> None:
    content = diagnose(predictions_of(EACH_KIND), truth_of(TRUTH, duration=[100.0, 50.0, 9.0])).to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert (content["format"], content["style"], content["tious"], content["normaliser"]) == (1, "thumos14", [0.5], 2.0)
    assert set(content["top_10g"]) == {"count", "average_map", "average_map_n"}
    assert [split["split"] for split in content["false_positives"]["profile"]] == list(range(1, 11))
    assert set(content["false_positives"]["profile"][0]) == {"split", "count", *ERROR_KINDS}
    assert list(content["false_positives"]["totals"]) == list(ERROR_KINDS)
    assert list(content["false_positives"]["impact"]) == list(ERROR_KINDS[1:])
    assert set(content["sensitivity"]) == {"base", "coverage", "length", "num-instances"}
    assert set(content["false_negatives"]) == {"overall", "coverage", "length", "num-instances", "share", "pairs"}
    assert content["false_negatives"]["pairs"]["coverage,length"] == {"XL,M": 0.5}
    assert content["false_negatives"]["share"]["length"] == {"XS": 0.0, "S": 0.0, "M": 1.0, "L": 0.0, "XL": 0.0}


def test_repr_is_one_line(truth_of, predictions_of) -> None:
    text = repr(diagnose(predictions_of(EACH_KIND), truth_of(TRUTH)))
    assert text.startswith("Diagnosis(thumos14: average mAP 50.00%, mAP_N 50.00%, costliest error ")
    assert "\n" not in text


def test_class_without_remaining_instances_is_in_no_mean(truth_of, predictions_of) -> None:
    rows = [*TRUTH, ("u", "C", 5, 5)]
    diagnosis = diagnose(predictions_of([*EACH_KIND, ("u", "C", 1, 2, 0.9)]), truth_of(rows))
    plain = diagnose(predictions_of(EACH_KIND), truth_of(TRUTH))
    assert diagnosis.normaliser == 4 / 3
    assert diagnosis.precision.average_map == plain.precision.average_map
    assert np.isnan(diagnosis.precision.ap[2]).all()
    assert diagnosis.top_10g.count == plain.top_10g.count
    assert "1 instance left out: without length" in diagnosis.remarks
    assert "classes that lost all of their instances, in no mean: 1" in diagnosis.remarks


def test_unknown_class_is_left_out_without_renumbering_rows(truth_of, predictions_of) -> None:
    diagnosis = diagnose(predictions_of([("u", "Z", 0, 1, 1.0), *EACH_KIND]), truth_of(TRUTH))
    assert diagnosis.facts["predictions"]["unknown_label"] == 1
    assert diagnosis.false_positives.rows.tolist() == list(range(1, 10))


def test_values_without_a_bucket_are_reported(truth_of, predictions_of) -> None:
    truth = truth_of(TRUTH, characteristics={"length": [np.nan, 1, 1, 1], "coverage": [-1, 0.5, 0.5, 0.5]})
    diagnosis = diagnose(predictions_of(EACH_KIND), truth)
    assert diagnosis.to_dict()["characteristics"]["length"] == {"computed": False, "without_bucket": 1}
    assert "1 instances are in no bucket of coverage: it is missing or outside the edges" in diagnosis.remarks
    assert sum(diagnosis.false_negatives.share["length"].values()) == 0.75
    assert diagnosis.false_negatives.pairs["coverage,length"] == {"XL,XS": 2 / 3}


def test_several_annotations_of_an_instance_are_matched_once(truth_of, predictions_of) -> None:
    several = (np.array([[0, 10], [30, 40]]),)
    truth = truth_of(TRUTH[:1], all_segments=several)
    predictions = predictions_of([("u", "A", 30, 40, 0.9), ("u", "A", 0, 10, 0.8)])
    diagnosis = diagnose(predictions, truth, annotators=2)
    assert diagnosis.false_positives.matched[0].tolist() == [0, -1]
    assert diagnosis.false_positives.totals["double_detection"] == 1
    assert (diagnosis.normaliser, diagnosis.precision.average_map, diagnosis.annotators) == (2.0, 1.0, 2)
    assert diagnose(predictions, truth).false_positives.matched[0].tolist() == [-1, 0]


def test_ground_truth_without_instances_is_refused(truth_of, predictions_of) -> None:
    with pytest.raises(DataError, match="there is no instance to diagnose"):
        diagnose(predictions_of(EACH_KIND), truth_of([]))


def test_fixed_faults_are_listed() -> None:
    assert [fault.number for fault in MENDED_FAULTS] == [1, 2, 3, 4, 7, 8, 9, 0]
    assert all(fault.original and fault.ours for fault in MENDED_FAULTS)
