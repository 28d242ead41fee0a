"""The diagnosis as a whole, on scenes small enough to work out by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from jostle.core.types.predictions import Predictions
from jostle.errors import DataError
from jostle.metrics.diagnosis import MENDED_FAULTS, diagnose, styles
from jostle.metrics.diagnosis.false_positives import ERROR_KINDS

TRUTH = [("u", "A", 0, 10), ("u", "A", 20, 30), ("u", "B", 40, 50), ("v", "B", 0, 10)]
EACH_KIND = [
    ("u", "A", 0, 10, 0.9),  # right
    ("u", "A", 0, 9, 0.8),  # again
    ("u", "A", 40, 50, 0.7),  # a B
    ("u", "A", 20, 24, 0.6),  # too short
    ("u", "A", 46, 60, 0.5),  # of a B, and badly placed
    ("u", "A", 80, 90, 0.4),  # nothing there
    ("w", "A", 0, 10, 0.35),  # no ground truth in this video
    ("x", "A", 0, 10, 0.3),  # a video nobody knows
    ("v", "B", 0, 10, 0.9),
]


def test_each_kind_of_error(truth_of, found_of) -> None:
    made = diagnose(found_of(EACH_KIND), truth_of(TRUTH))
    wrong = made.false_positives
    assert [ERROR_KINDS[i] for i in wrong.kind[0]] == [*ERROR_KINDS, "background", "background", "true_positive"]
    assert wrong.matched[0].tolist() == [0, *[-1] * 7, 3]
    assert wrong.nearest.tolist() == [0, 0, 2, 1, 2, -1, -1, -1, 3]
    assert wrong.totals == dict(zip(ERROR_KINDS, [2, 1, 1, 1, 1, 3], strict=True))
    assert wrong.split.tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 1]
    assert wrong.profile[0]["count"] == 3
    assert wrong.profile[0]["true_positive"] == 2 / 3
    assert wrong.profile[9] == {"split": 10, "count": 0} | dict.fromkeys(ERROR_KINDS)


def test_impact_is_what_removal_gains(truth_of, found_of) -> None:
    rows = [("u", "A", 80, 90, 0.9), ("u", "A", 0, 10, 0.8)]
    made = diagnose(found_of(rows), truth_of(TRUTH[:1]))
    assert made.top_10g.average_map == 0.5
    assert made.false_positives.impact == dict.fromkeys(ERROR_KINDS[1:], 0.0) | {"background": 0.5}


def test_no_prediction_at_all(truth_of) -> None:
    made = diagnose(Predictions((), (), [], [], [], [], []), truth_of(TRUTH))
    said = made.to_dict()
    json.dumps(said, allow_nan=False)
    assert (said["average_map"], said["top_10g"]["count"], said["false_negatives"]["overall"]) == (0.0, 0, 1.0)
    assert all(split["background"] is None for split in said["false_positives"]["profile"])
    assert said["sensitivity"]["length"] == {"XS": None, "S": None, "M": 0.0, "L": None, "XL": None}
    assert said["sensitivity_profile"]["length"] == {"min": 0.0, "max": 0.0, "relative_min": None, "relative_max": None}


def test_the_json_of_the_contract(truth_of, found_of) -> None:
    said = diagnose(found_of(EACH_KIND), truth_of(TRUTH, duration=[100.0, 50.0, 9.0])).to_dict()
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    assert (said["format"], said["style"], said["tious"], said["normaliser"]) == (1, "thumos14", [0.5], 2.0)
    assert set(said["top_10g"]) == {"count", "average_map", "average_map_n"}
    assert [split["split"] for split in said["false_positives"]["profile"]] == list(range(1, 11))
    assert set(said["false_positives"]["profile"][0]) == {"split", "count", *ERROR_KINDS}
    assert list(said["false_positives"]["totals"]) == list(ERROR_KINDS)
    assert list(said["false_positives"]["impact"]) == list(ERROR_KINDS[1:])
    assert set(said["sensitivity"]) == {"base", "coverage", "length", "num-instances"}
    assert set(said["false_negatives"]) == {"overall", "coverage", "length", "num-instances", "share", "pairs"}
    assert said["false_negatives"]["pairs"]["coverage,length"] == {"XL,M": 0.5}
    assert said["false_negatives"]["share"]["length"] == {"XS": 0.0, "S": 0.0, "M": 1.0, "L": 0.0, "XL": 0.0}


def test_repr_is_one_line(truth_of, found_of) -> None:
    text = repr(diagnose(found_of(EACH_KIND), truth_of(TRUTH)))
    assert text.startswith("Diagnosis(thumos14: average mAP 50.00%, mAP_N 50.00%, costliest error ")
    assert "\n" not in text


def test_an_emptied_class_is_in_no_mean(truth_of, found_of) -> None:
    rows = [*TRUTH, ("u", "C", 5, 5)]
    made = diagnose(found_of([*EACH_KIND, ("u", "C", 1, 2, 0.9)]), truth_of(rows))
    plain = diagnose(found_of(EACH_KIND), truth_of(TRUTH))
    assert made.normaliser == 4 / 3
    assert made.precision.average_map == plain.precision.average_map
    assert np.isnan(made.precision.ap[2]).all()
    assert made.top_10g.count == plain.top_10g.count
    assert "1 instance left out: without length" in made.remarks
    assert "classes that lost all of their instances, in no mean: 1" in made.remarks


def test_an_unknown_class_is_left_out_and_rows_stay_those_of_the_file(truth_of, found_of) -> None:
    made = diagnose(found_of([("u", "Z", 0, 1, 1.0), *EACH_KIND]), truth_of(TRUTH))
    assert made.facts["predictions"]["unknown_label"] == 1
    assert made.false_positives.rows.tolist() == list(range(1, 10))


def test_values_without_a_bucket_are_reported(truth_of, found_of) -> None:
    truth = truth_of(TRUTH, characteristics={"length": [np.nan, 1, 1, 1], "coverage": [-1, 0.5, 0.5, 0.5]})
    made = diagnose(found_of(EACH_KIND), truth)
    assert made.to_dict()["characteristics"]["length"] == {"computed": False, "without_bucket": 1}
    assert "1 instances are in no bucket of coverage: it is missing or outside the edges" in made.remarks
    assert sum(made.false_negatives.share["length"].values()) == 0.75
    assert made.false_negatives.pairs["coverage,length"] == {"XL,XS": 2 / 3}


def test_any_of_several_annotations_may_be_matched_but_once(truth_of, found_of) -> None:
    several = (np.array([[0, 10], [30, 40]]),)
    truth = truth_of(TRUTH[:1], all_segments=several)
    found = found_of([("u", "A", 30, 40, 0.9), ("u", "A", 0, 10, 0.8)])
    made = diagnose(found, truth, annotators=2)
    assert made.false_positives.matched[0].tolist() == [0, -1]
    assert made.false_positives.totals["double_detection"] == 1
    assert (made.normaliser, made.precision.average_map, made.annotators) == (2.0, 1.0, 2)
    assert diagnose(found, truth).false_positives.matched[0].tolist() == [-1, 0]


def test_a_style_of_ones_own(truth_of, found_of) -> None:
    style = replace(styles["thumos14"], name="loose", tious=(0.3, 0.5))
    made = diagnose(found_of(EACH_KIND), truth_of(TRUTH), style=style)
    assert made.false_positives.matched[:, 3].tolist() == [1, -1]
    assert made.to_dict()["false_positives"]["counts"]["true_positive"] == [3, 2]
    assert made.false_negatives.missed.tolist() == [[False, False, True, False], [False, True, True, False]]


def test_a_match_outside_a_bucket_at_any_threshold_removes_the_prediction(truth_of, found_of) -> None:
    """The surest took a long instance at 0.3 only: for the short ones it is gone at 0.5 as well, no false alarm."""
    rows = [("u", "A", 0, 10), ("u", "A", 20, 22)]
    found = found_of([("u", "A", 0, 4, 0.9), ("u", "A", 20, 22, 0.8)])
    made = diagnose(found, truth_of(rows), style=replace(styles["thumos14"], tious=(0.3, 0.5)))
    assert made.sensitivity.buckets["length"]["XS"] == 1.0
    assert made.sensitivity.buckets["length"]["M"] == 0.5


def test_ties_are_matched_from_the_back_and_listed_from_the_front(truth_of, found_of) -> None:
    found = found_of([("u", "A", 0, 10, 0.5), ("u", "A", 0, 9, 0.5), ("u", "A", 0, 8, 0.5)])
    made = diagnose(found, truth_of(TRUTH[:1]))
    assert made.false_positives.rows.tolist() == [0, 1, 2]
    assert made.false_positives.matched[0].tolist() == [-1, -1, 0]
    assert made.precision.average_map == 1.0
    assert made.sensitivity.buckets["length"]["M"] == pytest.approx(1 / 3)  # as published: the other order


def test_no_instance_is_refused(truth_of, found_of) -> None:
    with pytest.raises(DataError, match="there is no instance to diagnose"):
        diagnose(found_of(EACH_KIND), truth_of([]))


def test_mended_faults_are_listed() -> None:
    assert [fault.number for fault in MENDED_FAULTS] == [1, 2, 3, 4, 7, 8, 9, 0]
    assert all(fault.original and fault.ours for fault in MENDED_FAULTS)
