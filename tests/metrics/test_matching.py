"""Matching against brute-force implementations of the rules, and the differences between protocols."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.core.types import Predictions, Spans, Truth
from jostle.metrics.alignment import align
from jostle.metrics.matching import NONE, Segmentation, match, tiou
from jostle.metrics.mean_ap import average_precisions, interpolated_ap, precision_recall, raw_ap
from jostle.metrics.protocol import protocols

GRID = np.array([0.3, 0.5, 0.7])


def draw_columns(draw, rows: int):
    """Draw segments on a coarse grid, so that equal overlaps and scores are frequent."""
    video = draw(st.lists(st.integers(0, 2), min_size=rows, max_size=rows))
    label = draw(st.lists(st.integers(0, 1), min_size=rows, max_size=rows))
    start = np.array(draw(st.lists(st.integers(0, 6), min_size=rows, max_size=rows)), float)
    length = np.array(draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows)), float)
    return video, label, start, start + length


@st.composite
def scenes(draw):
    video, label, start, end = draw_columns(draw, draw(st.integers(1, 8)))
    truth = Truth(("a", "b", "c"), ("Jump", "Run"), video, start, end, label)
    rows = draw(st.integers(0, 12))
    video, label, start, end = draw_columns(draw, rows)
    score = draw(st.lists(st.sampled_from([0.1, 0.2, 0.5]), min_size=rows, max_size=rows))
    return Predictions(("a", "b", "c"), ("Jump", "Run"), video, start, end, label, score), truth


def overlap(start, end, other_start, other_end) -> float:
    if start == end == other_start == other_end:
        return 1.0
    union = max(end, other_end) - min(start, other_start)
    inter = min(end, other_end) - max(start, other_start)
    return inter / union if inter > 0 else 0.0


def match_toolkit(predictions: Predictions, truth: Truth, threshold: float) -> list[int]:
    """Return the row matched to each instance: predictions choose, and later rows and instances win ties."""
    matched_rows = [NONE] * len(truth)
    for row in sorted(range(len(predictions)), key=lambda i: (predictions.score[i], i), reverse=True):
        best = (threshold, NONE)
        for i in range(len(truth)):
            if (
                truth.video[i] == predictions.video[row]
                and truth.label[i] == predictions.label[row]
                and matched_rows[i] == NONE
            ):
                value = overlap(predictions.start[row], predictions.end[row], truth.start[i], truth.end[i])
                best = max(best, (value, i)) if value >= threshold else best
        if best[1] != NONE:
            matched_rows[best[1]] = row
    return matched_rows


def match_official(predictions: Predictions, truth: Truth, threshold: float) -> list[int]:
    """Return the row matched to each instance: instances choose in file order, by overlap, score and row number."""
    matched_rows: list[int] = []
    for i in range(len(truth)):
        best = (threshold, NONE)
        for row in sorted(range(len(predictions)), key=lambda j: -predictions.score[j]):
            if (
                truth.video[i] == predictions.video[row]
                and truth.label[i] == predictions.label[row]
                and row not in matched_rows
            ):
                inter = min(predictions.end[row], truth.end[i]) - max(predictions.start[row], truth.start[i])
                hull = max(predictions.end[row], truth.end[i]) - min(predictions.start[row], truth.start[i])
                if inter > 0 and inter / hull > best[0]:
                    best = (inter / hull, row)
        matched_rows.append(best[1])
    return matched_rows


@pytest.mark.parametrize(("protocol", "rule"), [("activitynet", match_toolkit), ("thumos14-official", match_official)])
@settings(max_examples=300, deadline=None)
@given(scenes())
def test_matching_equals_the_rules_of_each_program(protocol: str, rule, scene) -> None:
    predictions, truth = scene
    aligned = align(predictions, truth)
    matches = match(aligned, truth, protocols[protocol], GRID)
    for t, threshold in enumerate(GRID):
        rows = np.where(matches.taken_by[t] == NONE, NONE, np.append(matches.ranking.order, NONE)[matches.taken_by[t]])
        assert rows.tolist() == rule(predictions, truth, threshold)


@given(*[st.floats(0, 100) for _ in range(4)])
def test_tiou_is_symmetric_and_bounded(a, b, c, d) -> None:
    one, other = sorted((a, b)), sorted((c, d))
    value = tiou(*one, *other)
    assert value == pytest.approx(tiou(*other, *one), abs=1e-12)
    assert 0 <= value <= 1 + 1e-12
    assert tiou(*one, *one) == pytest.approx(1)


def test_tiou_never_divides_by_zero() -> None:
    assert tiou(5.0, 5.0, 5.0, 5.0) == 1
    assert tiou(5.0, 5.0, 6.0, 6.0) == 0
    assert tiou(30.0, 20.0, 20.0, 30.0) == 0  # reversed segment: the union is zero


def test_instance_with_several_segments_is_matched_once() -> None:
    truth = Truth(("a",), ("Jump",), [0, 0], [0.0, 50.0], [10.0, 60.0], [0, 0])
    rows = Segmentation(np.array([0, 0, 1]), np.array([0.0, 20.0, 50.0]), np.array([10.0, 30.0, 60.0]))
    predictions = Predictions(("a",), ("Jump",), [0, 0], [20.0, 0.0], [30.0, 10.0], [0, 0], [0.9, 0.8])
    matches = match(align(predictions, truth), truth, protocols["activitynet"], np.array([0.5]), segments=rows)
    assert matches.taken_by.tolist() == [[0, NONE]]


def test_ambiguous_segments_excuse_false_positives_only_in_the_official_protocol() -> None:
    truth = Truth(("a",), ("Jump",), [0], [0.0], [10.0], [0], ambiguous=Spans([0], [20.0], [30.0]))
    predictions = Predictions(("a",), ("Jump",), [0, 0], [29.0, 0.0], [40.0, 9.0], [0, 0], [0.9, 0.8])
    values = {}
    for name in ("thumos14-official", "activitynet"):
        matches = match(align(predictions, truth), truth, protocols[name], np.array([0.5]))
        values[name] = average_precisions(matches, protocols[name])[0, 0]
    assert values == {"thumos14-official": 1.0, "activitynet": 0.5}
    official = match(align(predictions, truth), truth, protocols["thumos14-official"], np.array([0.5]))
    assert [curve.tolist() for curve in precision_recall(official, 0, 0)] == [[1.0], [1.0]]


def test_average_precision_of_known_ranks() -> None:
    assert interpolated_ap(np.array([0, 1, 2]), 3) == 1.0
    assert interpolated_ap(np.array([], int), 3) == 0.0
    # Hits at ranks 2 and 3 (of 4 instances): precision 1/2 and 2/3, the first interpolated to the second.
    assert interpolated_ap(np.array([1, 2]), 4) == pytest.approx(2 / 3 * 0.5)
    # Recall 1/4 and 2/4 with a normaliser of 2: weights 0.5 and 1 against one false positive.
    assert interpolated_ap(np.array([1, 2]), 4, normaliser=2.0) == pytest.approx((0.5 + 0.5) / 4)
    assert raw_ap(np.array([1, 2]), 4) == pytest.approx((1 / 2 + 2 / 3) / 4)


def test_precision_recall_curve() -> None:
    truth = Truth(("a",), ("Jump", "Run"), [0, 0], [0.0, 20.0], [10.0, 30.0], [0, 0])
    predictions = Predictions(
        ("a",), ("Jump", "Run"), [0, 0, 0], [50.0, 0.0, 1.0], [60.0, 10.0, 2.0], [0, 0, 1], [0.9, 0.8, 0.7]
    )
    matches = match(align(predictions, truth), truth, protocols["activitynet"], np.array([0.5]))
    recall, precision = precision_recall(matches, 0, 0)
    assert recall.tolist() == [0.0, 0.5]
    assert precision.tolist() == [0.0, 0.5]


def test_protocols_leave_out_the_same_instances_as_their_programs() -> None:
    truth = Truth(
        ("a", "b"),
        ("Jump", "Run"),
        [0, 0, 0, 0, 1],
        [1.0, 1.0005, 1.0, 5.0, 1.0],
        [2.0, 2.0005, 2.0, 5.0, 2.0],
        [0, 0, 1, 0, 0],
    )
    assert len(protocols["activitynet"].prepare(truth)) == 5
    assert len(protocols["thumos14-official"].prepare(truth)) == 5
    for name in ("thumos14", "opentad"):
        prepared = protocols[name].prepare(truth)
        assert prepared.start.tolist() == [1.0, 1.0, 1.0]
        assert prepared.left_out == {"shorter than the protocol allows": 1, "duplicate of an earlier instance": 1}
    tiny = Truth(("a",), ("Jump",), [0], [1.0], [1.0005], [0])
    assert (len(protocols["thumos14"].prepare(tiny)), len(protocols["opentad"].prepare(tiny))) == (0, 1)
