"""The diagnosis against the same rules written as plain loops, and what must hold of any scene."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.metrics.diagnosis import diagnose, styles
from jostle.metrics.diagnosis.false_positives import ERROR_KINDS

TIOUS = (0.3, 0.5, 0.75)
STYLE = replace(styles["thumos14"], tious=TIOUS)
VIDEOS, CLASSES = ("u", "v", "w"), ("A", "B")


def overlap(a, b) -> float:
    inter = max(0.0, min(a[1], b[1]) - max(a[0], b[0]))
    union = (b[1] - b[0]) + (a[1] - a[0]) - inter
    return inter / union if union > 0 else 0.0


def matched(order, found, truth, tiou) -> dict[int, int]:
    """Which instance each row takes; rows are (video, class, start, end, score)."""
    taken: dict[int, int] = {}
    for row in order:
        options = [i for i, true in enumerate(truth) if true[:2] == found[row][:2]]
        options.sort(key=lambda i, row=row: (overlap(found[row][2:4], truth[i][2:4]), i), reverse=True)
        for i in options:
            if overlap(found[row][2:4], truth[i][2:4]) < tiou:
                break
            if i not in taken.values():
                taken[row] = i
                break
    return taken


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


def later_first(rows, found):
    return sorted(rows, key=lambda row: (found[row][4], row), reverse=True)


def earlier_first(rows, found):
    return sorted(rows, key=lambda row: -found[row][4])


@st.composite
def scenes(draw, ties: bool = True):
    """Rows on a coarse grid, so that equal overlaps, and equal scores if wanted, happen often."""

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
    found = [
        (draw(st.sampled_from(VIDEOS)), draw(st.sampled_from(known)), *segment(), float(score)) for score in scores
    ]
    return truth, found


def columns(truth, found):
    classes = tuple(dict.fromkeys(row[1] for row in truth))
    return (
        Predictions(
            VIDEOS,
            CLASSES,
            [VIDEOS.index(row[0]) for row in found],
            [row[2] for row in found],
            [row[3] for row in found],
            [CLASSES.index(row[1]) for row in found],
            [row[4] for row in found],
        ),
        Truth(
            VIDEOS,
            classes,
            [VIDEOS.index(row[0]) for row in truth],
            [row[2] for row in truth],
            [row[3] for row in truth],
            [classes.index(row[1]) for row in truth],
        ),
    )


@settings(max_examples=150, deadline=None)
@given(scenes())
def test_all_parts(scene) -> None:
    truth, found = scene
    made = diagnose(*columns(truth, found), style=STYLE)
    classes, n = made.classes, len(truth) / len(made.classes)
    rows_of = {name: [i for i, row in enumerate(found) if row[1] == name] for name in classes}
    positives = {name: sum(row[1] == name for row in truth) for name in classes}
    taken = [
        {k: v for name in classes for k, v in matched(later_first(rows_of[name], found), found, truth, tiou).items()}
        for tiou in TIOUS
    ]

    # All predictions: mAP_N, and sensitivity and misses from the same matches.
    for c, name in enumerate(classes):
        order = later_first(rows_of[name], found)
        for t in range(len(TIOUS)):
            assert made.precision.ap_n[c, t] == pytest.approx(ap_n(order, taken[t], positives[name], n))
            assert made.precision.ap[c, t] == pytest.approx(ap_n(order, taken[t], positives[name], positives[name]))
    missed = np.ones((len(TIOUS), len(truth)), bool)
    for name in classes:
        for t in range(len(TIOUS)):
            right = 0
            for rank, row in enumerate(later_first(rows_of[name], found), 1):
                if row in taken[t]:
                    right += 1
                    weight = right / positives[name] * n
                    missed[t, taken[t][row]] = weight / (weight + rank - right) <= 0.05
    np.testing.assert_array_equal(made.false_negatives.missed, missed)
    for name, characteristic in made.instances.characteristics.items():
        for b, label in enumerate(characteristic.labels):
            inside = set(np.flatnonzero(characteristic.bucket == b).tolist())
            values = []
            for which in classes:
                here = sum(truth[i][1] == which for i in inside)
                order = [
                    row
                    for row in earlier_first(rows_of[which], found)
                    if all(row not in hits or hits[row] in inside for hits in taken)
                ]
                if here:
                    values.append(np.mean([ap_n(order, hits, here, n) for hits in taken]))
            expected = np.mean(values) if values else None
            assert made.sensitivity.buckets[name][label] == (expected and pytest.approx(expected))
            rate = missed[:, sorted(inside)].mean() if inside else None
            assert made.false_negatives.buckets[name][label] == (rate and pytest.approx(rate))

    # The top-10G: kinds of error and what each costs.
    listed = [row for name in classes for row in earlier_first(rows_of[name], found)[: 10 * positives[name]]]
    wrong = made.false_positives
    assert wrong.rows.tolist() == listed
    turned = sorted(range(len(listed)), key=lambda i: (found[listed[i]][4], i), reverse=True)
    for t, tiou in enumerate(TIOUS):
        hits = matched([listed[i] for i in turned], found, truth, tiou)
        kinds = []
        for row in listed:
            near = [(overlap(found[row][2:4], true[2:4]), true[1]) for true in truth if true[0] == found[row][0]]
            best, label = max(near, key=lambda pair: pair[0], default=(0.0, ""))
            same = label == found[row][1]
            if row in hits:
                kinds.append(0)
            elif best >= tiou:
                kinds.append(1 if same else 2)
            else:
                kinds.append(5 if best < 0.1 else 3 if same else 4)
        assert wrong.kind[t].tolist() == kinds
        assert wrong.matched[t].tolist() == [hits.get(row, -1) for row in listed]
        for code, error in enumerate(ERROR_KINDS[1:], 1):
            for c, name in enumerate(classes):
                left = [listed[i] for i in turned if found[listed[i]][1] == name and kinds[i] != code]
                gained = ap_n(left, hits, positives[name], n)
                assert wrong.ap_after_removal[error][c, t] == pytest.approx(gained)


@settings(max_examples=60, deadline=None)
@given(scenes())
def test_what_always_holds(scene) -> None:
    made = diagnose(*columns(*scene), style=STYLE)
    wrong = made.false_positives
    for split in wrong.profile:
        parts = [split[kind] for kind in ERROR_KINDS]
        assert parts == [None] * 6 if not split["count"] else sum(parts) == pytest.approx(1)
    assert min(wrong.impact.values()) >= -1e-12  # a false alarm less never costs precision
    assert wrong.counts.sum(axis=1).tolist() == [made.top_10g.count] * len(TIOUS)
    for shares in made.false_negatives.share.values():
        assert sum(shares.values()) == pytest.approx(1)
    assert 0 <= made.precision.average_map_n <= 1 + 1e-12


@settings(max_examples=60, deadline=None)
@given(scenes(ties=False), st.randoms(use_true_random=False))
def test_the_order_of_rows_without_ties_means_nothing(scene, random) -> None:
    truth, found = scene
    mixed = random.sample(found, len(found))
    one, other = (diagnose(*columns(truth, rows), style=STYLE) for rows in (found, mixed))
    assert one.to_dict() == other.to_dict()


@settings(max_examples=60, deadline=None)
@given(scenes())
def test_perfect_predictions_have_no_errors(scene) -> None:
    truth, _ = scene
    found = [(*row, float(i)) for i, row in enumerate(truth)]
    made = diagnose(*columns(truth, found), style=STYLE)
    assert made.false_positives.totals == dict.fromkeys(ERROR_KINDS, 0.0) | {"true_positive": len(truth)}
    assert made.precision.average_map == pytest.approx(1)
    assert made.false_negatives.overall == 0
    assert set(made.false_positives.impact.values()) == {0.0}
    values = [v for buckets in made.sensitivity.buckets.values() for v in buckets.values() if v is not None]
    assert values == pytest.approx([1.0] * len(values))
