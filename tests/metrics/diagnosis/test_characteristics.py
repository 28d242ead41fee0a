"""Instances of a diagnosis: characteristics, dropped rows and several annotations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jostle.errors import BadValue, DataError
from jostle.metrics.diagnosis import styles
from jostle.metrics.diagnosis.characteristics import annotated_segments, prepare

ROWS = [("u", "A", 0, 10), ("u", "A", 20, 22), ("u", "B", 0, 10), ("v", "A", 5, 30), ("v", "B", 7, 7)]
DURATION = [50.0, 20.0, np.nan]


GIVEN = {"length": [99.0] * 5, "num_instances": [7.0] * 5, "agreement": [0.5] * 5}
NULLS = {"length": [np.nan] * 5, "agreement": [np.nan] * 5}


@pytest.mark.parametrize(
    ("style", "facts", "expected"),
    [
        (
            *("activitynet", {"duration": DURATION}),
            {"coverage": [0.2, 0.04, 0.2], "length": [10, 2, 10], "num-instances": [2, 2, 1]},
        ),
        (
            *("thumos14", {"duration": DURATION}),  # which counts all instances of the video
            {"coverage": [0.2, 0.04, 0.2], "length": [10, 2, 10], "num-instances": [3, 3, 3]},
        ),
        # Without durations there is no coverage.
        ("activitynet", {"characteristics": NULLS}, {"length": [10, 2, 10, 25], "num-instances": [2, 2, 1, 1]}),
        (
            *("activitynet", {"characteristics": GIVEN}),
            {"agreement": [0.5] * 4, "length": [99.0] * 4, "num-instances": [7.0] * 4},
        ),
    ],
    ids=["computed", "of thumos14", "nulls", "given"],
)
def test_characteristics_are_computed_where_they_are_missing(truth_of, style: str, facts, expected) -> None:
    found = prepare(truth_of(ROWS, **facts), styles[style]).characteristics
    assert {name: one.values.tolist() for name, one in found.items()} == expected
    assert {one.computed for one in found.values()} == {facts != {"characteristics": GIVEN}}


def test_dropped_instances_are_counted_by_reason(truth_of) -> None:
    instances = prepare(truth_of([*ROWS, ("u", "C", 9, 9)], duration=DURATION), styles["thumos14"])
    assert instances.rows.tolist() == [0, 1, 2]
    assert instances.dropped == {"longer than its video": 1, "without length": 2}
    assert instances.classes == 3  # including the one without remaining instances
    assert instances.truth.counts.tolist() == [2, 1, 0]


def test_long_instances_are_kept_if_coverage_is_not_analysed(truth_of) -> None:
    style = replace(styles["thumos14"], buckets=styles["thumos14"].buckets[1:])
    instances = prepare(truth_of(ROWS, duration=DURATION), style)
    assert instances.dropped == {"longer than its video": 0, "without length": 1}


def test_missing_values_have_no_bucket_and_are_counted(truth_of) -> None:
    truth = truth_of(ROWS, characteristics={"length": [1, np.nan, -5, 30, 2]})
    length = prepare(truth, styles["thumos14"]).characteristics["length"]
    assert (length.bucket.tolist(), length.without, length.counts.tolist()) == ([0, -1, -1, 4], 2, [1, 0, 0, 0, 1])


def test_no_remaining_instance_is_refused(truth_of) -> None:
    with pytest.raises(DataError, match=r"no instance to diagnose: the ground truth has 1, 1 without length; check"):
        prepare(truth_of([("u", "A", 3, 3)]), styles["thumos14"])
    with pytest.raises(DataError, match=r"the ground truth has 0; check the subset"):
        prepare(truth_of([]), styles["thumos14"])


def test_several_annotations_per_instance(truth_of) -> None:
    several = (
        np.array([[0, 10], [1, 11], [2, 12]]),
        np.array([[20, 22], [5, 5], [1, 2]]),
        np.zeros((0, 2)),
    )
    truth = truth_of(ROWS[:3], all_segments=several)
    assert annotated_segments(truth, 1).end.tolist() == [10, 22, 10]
    two = annotated_segments(truth, 2)
    assert two.instance.tolist() == [0, 0, 1, 2]  # one has no length, one is missing
    assert two.start.tolist() == [0, 1, 20, 0]
    assert annotated_segments(truth, 9).instance.tolist() == [0, 0, 0, 1, 1, 2]


def test_missing_annotations_are_refused(truth_of) -> None:
    with pytest.raises(DataError, match=r"3 annotations of each instance .* use a file with 'all-segments'"):
        annotated_segments(truth_of(ROWS), 3)
    with pytest.raises(BadValue, match="annotators must be at least 1, got 0"):
        annotated_segments(truth_of(ROWS), 0)
