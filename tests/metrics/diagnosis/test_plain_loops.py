"""Diagnosis against the same rules written as plain loops, and invariants of any scene."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.metrics.diagnosis import diagnose, styles
from jostle.metrics.diagnosis.false_positives import ERROR_KINDS

TIOUS = (0.3, 0.5, 0.75)
STYLE = replace(styles["thumos14"], tious=TIOUS)
VIDEOS, CLASSES = ("u", "v", "w"), ("A", "B")


def overlap(a, b) -> float:
    inter = max(0.0, min(a[1], b[1]) - max(a[0], b[0]))
    union = (b[1] - b[0]) + (a[1] - a[0]) - inter
    return inter / union if union > 0 else 0.0


def matched(order, predictions, truth, tiou) -> dict[int, int]:
    """Return the instance that each row matches; rows are (video, class, start, end, score)."""
    matches: dict[int, int] = {}
    for row in order:
        options = [i for i, true in enumerate(truth) if true[:2] == predictions[row][:2]]
        options.sort(key=lambda i, row=row: (overlap(predictions[row][2:4], truth[i][2:4]), i), reverse=True)
        for i in options:
            if overlap(predictions[row][2:4], truth[i][2:4]) < tiou:
                break
            if i not in matches.values():
                matches[row] = i
                break
    return matches


def ap_n(order, hits, positives, n) -> float:
    recall, precision = [0.0], [0.0]
    right = wrong = 0
    for row in order:
        right, wrong = right + (row in hits), wrong + (row not in hits)
        recall.append(right / positives)
        precision.append(recall[-1] * n / (recall[-1] * n + wrong))
    recall, precision = [*recall, 1.0], [*precision, 0.0]
    for i in range(len(precision) - 2, -1, -1):
        precision[i] = max(precision[i], precision[i + 1])
    return sum((recall[i] - recall[i - 1]) * precision[i] for i in range(1, len(recall)))


def later_first(rows, predictions):
    return sorted(rows, key=lambda row: (predictions[row][4], row), reverse=True)


def earlier_first(rows, predictions):
    return sorted(rows, key=lambda row: -predictions[row][4])


@st.composite
def scenes(draw, ties: bool = True):
    """Draw rows on a coarse grid, so that equal overlaps (and scores, if `ties`) are frequent."""

    def segment():
        start = draw(st.integers(0, 12))
        return float(start), float(start + draw(st.integers(1, 9)))

    truth = [
        (draw(st.sampled_from(VIDEOS[:2])), draw(st.sampled_from(CLASSES)), *segment())
        for _ in range(draw(st.integers(1, 7)))
    ]
    count = draw(st.integers(0, 24))
    scores = draw(st.lists(st.integers(0, 8 if ties else 1000), min_size=count, max_size=count, unique=not ties))
    known = sorted({row[1] for row in truth})
    predictions = [
        (draw(st.sampled_from(VIDEOS)), draw(st.sampled_from(known)), *segment(), float(score)) for score in scores
    ]
    return truth, predictions


@settings(max_examples=150, deadline=None)
@given(scenes())
def test_diagnosis_equals_plain_loops(truth_of, predictions_of, scene) -> None:
    truth, predictions = scene
    diagnosis = diagnose(predictions_of(predictions), truth_of(truth), style=STYLE)
    classes, n = diagnosis.classes, len(truth) / len(diagnosis.classes)
    rows_of = {name: [i for i, row in enumerate(predictions) if row[1] == name] for name in classes}
    positives = {name: sum(row[1] == name for row in truth) for name in classes}
    matches_by_threshold = [
        {
            k: v
            for name in classes
            for k, v in matched(later_first(rows_of[name], predictions), predictions, truth, tiou).items()
        }
        for tiou in TIOUS
    ]

    # All predictions: mAP_N, and sensitivity and misses from the same matches.
    for c, name in enumerate(classes):
        order = later_first(rows_of[name], predictions)
        for t in range(len(TIOUS)):
            assert diagnosis.precision.ap_n[c, t] == pytest.approx(
                ap_n(order, matches_by_threshold[t], positives[name], n)
            )
            assert diagnosis.precision.ap[c, t] == pytest.approx(
                ap_n(order, matches_by_threshold[t], positives[name], positives[name])
            )
    missed = np.ones((len(TIOUS), len(truth)), bool)
    for name in classes:
        for t in range(len(TIOUS)):
            right = 0
            for rank, row in enumerate(later_first(rows_of[name], predictions), 1):
                if row in matches_by_threshold[t]:
                    right += 1
                    weight = right / positives[name] * n
                    missed[t, matches_by_threshold[t][row]] = weight / (weight + rank - right) <= 0.05
    np.testing.assert_array_equal(diagnosis.false_negatives.missed, missed)
    for name, characteristic in diagnosis.instances.characteristics.items():
        for b, label in enumerate(characteristic.labels):
            inside = set(np.flatnonzero(characteristic.bucket == b).tolist())
            values = []
            for class_name in classes:
                here = sum(truth[i][1] == class_name for i in inside)
                order = [
                    row
                    for row in earlier_first(rows_of[class_name], predictions)
                    if all(row not in hits or hits[row] in inside for hits in matches_by_threshold)
                ]
                if here:
                    values.append(np.mean([ap_n(order, hits, here, n) for hits in matches_by_threshold]))
            expected = np.mean(values) if values else None
            assert diagnosis.sensitivity.buckets[name][label] == (expected and pytest.approx(expected))
            rate = missed[:, sorted(inside)].mean() if inside else None
            assert diagnosis.false_negatives.buckets[name][label] == (rate and pytest.approx(rate))

    # The top-10G: kinds of error and what each costs.
    listed = [row for name in classes for row in earlier_first(rows_of[name], predictions)[: 10 * positives[name]]]
    errors = diagnosis.false_positives
    assert errors.rows.tolist() == listed
    turned = sorted(range(len(listed)), key=lambda i: (predictions[listed[i]][4], i), reverse=True)
    for t, tiou in enumerate(TIOUS):
        hits = matched([listed[i] for i in turned], predictions, truth, tiou)
        kinds = []
        for row in listed:
            near = [
                (overlap(predictions[row][2:4], true[2:4]), true[1]) for true in truth if true[0] == predictions[row][0]
            ]
            best, label = max(near, key=lambda pair: pair[0], default=(0.0, ""))
            same = label == predictions[row][1]
            if row in hits:
                kinds.append(0)
            elif best >= tiou:
                kinds.append(1 if same else 2)
            else:
                kinds.append(5 if best < 0.1 else 3 if same else 4)
        assert errors.kind[t].tolist() == kinds
        assert errors.matched[t].tolist() == [hits.get(row, -1) for row in listed]
        for code, error in enumerate(ERROR_KINDS[1:], 1):
            for c, name in enumerate(classes):
                left = [listed[i] for i in turned if predictions[listed[i]][1] == name and kinds[i] != code]
                gained = ap_n(left, hits, positives[name], n)
                assert errors.ap_after_removal[error][c, t] == pytest.approx(gained)


@settings(max_examples=60, deadline=None)
@given(scenes())
def test_invariants(truth_of, predictions_of, scene) -> None:
    truth, predictions = scene
    diagnosis = diagnose(predictions_of(predictions), truth_of(truth), style=STYLE)
    errors = diagnosis.false_positives
    for split in errors.profile:
        parts = [split[kind] for kind in ERROR_KINDS]
        assert parts == [None] * 6 if not split["count"] else sum(parts) == pytest.approx(1)
    assert min(errors.impact.values()) >= -1e-12  # removing a false positive never lowers precision
    assert errors.counts.sum(axis=1).tolist() == [diagnosis.top_10g.count] * len(TIOUS)
    for shares in diagnosis.false_negatives.share.values():
        assert sum(shares.values()) == pytest.approx(1)
    assert 0 <= diagnosis.precision.average_map_n <= 1 + 1e-12


@settings(max_examples=60, deadline=None)
@given(scenes(ties=False), st.randoms(use_true_random=False))
def test_order_of_rows_without_ties_does_not_matter(truth_of, predictions_of, scene, random) -> None:
    truth, predictions = scene
    shuffled = random.sample(predictions, len(predictions))
    one, other = (diagnose(predictions_of(rows), truth_of(truth), style=STYLE) for rows in (predictions, shuffled))
    assert one.to_dict() == other.to_dict()


@settings(max_examples=60, deadline=None)
@given(scenes())
def test_perfect_predictions_have_no_errors(truth_of, predictions_of, scene) -> None:
    truth, _ = scene
    predictions = [(*row, float(i)) for i, row in enumerate(truth)]
    diagnosis = diagnose(predictions_of(predictions), truth_of(truth), style=STYLE)
    assert diagnosis.false_positives.totals == dict.fromkeys(ERROR_KINDS, 0.0) | {"true_positive": len(truth)}
    assert diagnosis.precision.average_map == pytest.approx(1)
    assert diagnosis.false_negatives.overall == 0
    assert set(diagnosis.false_positives.impact.values()) == {0.0}
    values = [v for buckets in diagnosis.sensitivity.buckets.values() for v in buckets.values() if v is not None]
    assert values == pytest.approx([1.0] * len(values))
