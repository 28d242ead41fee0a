"""Which instances count, and what is known of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jostle.errors import BadValue, DataError
from jostle.metrics.diagnosis import styles
from jostle.metrics.diagnosis.characteristics import annotated_segments, prepare

ROWS = [("u", "A", 0, 10), ("u", "A", 20, 22), ("u", "B", 0, 10), ("v", "A", 5, 30), ("v", "B", 7, 7)]
DURATION = [50.0, 20.0, np.nan]


def test_what_the_file_lacks_is_computed(truth_of) -> None:
    made = prepare(truth_of(ROWS, duration=DURATION), styles["activitynet"])
    assert list(made.characteristics) == ["coverage", "length", "num-instances"]
    assert all(found.computed for found in made.characteristics.values())
    assert made.characteristics["coverage"].values.tolist() == [0.2, 0.04, 0.2]
    assert made.characteristics["length"].values.tolist() == [10, 2, 10]
    assert made.characteristics["num-instances"].values.tolist() == [2, 2, 1]


def test_thumos14_counts_all_instances_of_the_video(truth_of) -> None:
    made = prepare(truth_of(ROWS, duration=DURATION), styles["thumos14"])
    assert made.characteristics["num-instances"].values.tolist() == [3, 3, 3]


def test_what_the_file_says_is_taken_as_it_is(truth_of) -> None:
    truth = truth_of(ROWS, characteristics={"length": [99.0] * 5, "num_instances": [7.0] * 5, "agreement": [0.5] * 5})
    made = prepare(truth, styles["activitynet"])
    assert list(made.characteristics) == ["agreement", "length", "num-instances"]  # no duration: no coverage
    assert not any(found.computed for found in made.characteristics.values())
    assert made.characteristics["length"].values.tolist() == [99.0] * 4
    assert made.characteristics["num-instances"].values.tolist() == [7.0] * 4


def test_a_column_of_nulls_is_no_column(truth_of) -> None:
    truth = truth_of(ROWS, characteristics={"length": [np.nan] * 5, "agreement": [np.nan] * 5})
    made = prepare(truth, styles["activitynet"])
    assert list(made.characteristics) == ["length", "num-instances"]
    assert made.characteristics["length"].computed


def test_dropped_in_order_and_counted(truth_of) -> None:
    made = prepare(truth_of([*ROWS, ("u", "C", 9, 9)], duration=DURATION), styles["thumos14"])
    assert made.rows.tolist() == [0, 1, 2]
    assert made.dropped == {"longer than its video": 1, "without length": 2}
    assert made.classes == 3  # also the one that lost all
    assert made.truth.counts.tolist() == [2, 1, 0]


def test_long_instances_stay_where_coverage_is_not_analysed(truth_of) -> None:
    style = replace(styles["thumos14"], buckets=styles["thumos14"].buckets[1:])
    made = prepare(truth_of(ROWS, duration=DURATION), style)
    assert made.dropped == {"longer than its video": 0, "without length": 1}


def test_a_missing_value_is_in_no_bucket_and_counted(truth_of) -> None:
    truth = truth_of(ROWS, characteristics={"length": [1, np.nan, -5, 30, 2]})
    found = prepare(truth, styles["thumos14"]).characteristics["length"]
    assert (found.bucket.tolist(), found.without, found.counts.tolist()) == ([0, -1, -1, 4], 2, [1, 0, 0, 0, 1])


def test_nothing_left_is_refused(truth_of) -> None:
    with pytest.raises(DataError, match=r"no instance to diagnose: the ground truth has 1, 1 without length; check"):
        prepare(truth_of([("u", "A", 3, 3)]), styles["thumos14"])
    with pytest.raises(DataError, match=r"the ground truth has 0; check the subset"):
        prepare(truth_of([]), styles["thumos14"])


def test_several_annotations(truth_of) -> None:
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


def test_annotations_that_are_not_there(truth_of) -> None:
    with pytest.raises(DataError, match=r"3 annotations of each instance .* use a file with 'all-segments'"):
        annotated_segments(truth_of(ROWS), 3)
    with pytest.raises(BadValue, match="annotators must be at least 1, got 0"):
        annotated_segments(truth_of(ROWS), 0)
