"""Moment retrieval: R@1, mean IoU and the mAP of QVHighlights."""

from __future__ import annotations

import math

import pytest

from jostle.core.types.language import MomentItem, MomentPrediction, MomentPredictions, MomentSet
from jostle.errors import BadValue, DataError
from jostle.metrics.moments import score_moments

ITEMS = MomentSet(
    (
        MomentItem("1", "v", "first", ((0.0, 4.0), (20.0, 60.0)), 150.0),
        MomentItem("2", "w", "second", ((10.0, 20.0),), 150.0),
    )
)


def make_predictions(**windows: tuple[tuple[float, float, float], ...]) -> MomentPredictions:
    return MomentPredictions({name[1:]: MomentPrediction(value) for name, value in windows.items()})


def test_top_window_is_compared_with_the_best_matching_moment() -> None:
    score = score_moments(make_predictions(q1=((20.0, 60.0, 0.1), (0.0, 4.0, 0.9)), q2=((10.0, 14.0, 1.0),)), ITEMS)
    assert score.recall == {0.3: 1.0, 0.5: 0.5, 0.7: 0.5}
    assert score.mean_iou == pytest.approx((1 + 0.4) / 2)


def test_average_precision_matches_each_true_window_once() -> None:
    windows = ((20.0, 60.0, 0.9), (20.0, 60.0, 0.8), (0.0, 4.0, 0.7))
    score = score_moments(make_predictions(q1=windows, q2=((10.0, 20.0, 1.0),)), ITEMS)
    assert score.windows.average_map == pytest.approx((((1 + 2 / 3) / 2) + 1) / 2)


def test_only_the_first_ten_windows_count() -> None:
    wrong = tuple((100.0 + i, 101.0 + i, 1.0 - i / 100) for i in range(10))
    score = score_moments(make_predictions(q1=((0.0, 4.0, 1.0),), q2=(*wrong, (10.0, 20.0, 0.5))), ITEMS)
    assert score.windows.map[0] == pytest.approx(0.25)


def test_scores_by_length_of_the_true_windows() -> None:
    score = score_moments(make_predictions(q1=((0.0, 4.0, 1.0),), q2=((10.0, 20.0, 1.0),)), ITEMS)
    assert {name: part.count for name, part in score.by_length.items()} == {"short": 2, "long": 1}
    assert (score.by_length["short"].average_map, score.by_length["long"].average_map) == (1.0, 0.0)


@pytest.mark.fault("F153")
def test_sentence_without_predicted_windows_counts_as_a_miss() -> None:
    mended = score_moments(make_predictions(q1=(), q2=((10.0, 20.0, 1.0),)), ITEMS)
    assert (mended.windows.average_map, mended.recall[0.5], mended.empty, mended.count) == (0.5, 0.5, 1, 2)
    absent = score_moments(make_predictions(q2=((10.0, 20.0, 1.0),)), ITEMS)
    assert (absent.windows.average_map, absent.missing) == (0.5, 1)


@pytest.mark.fault("F153")
def test_reproduced_bug_leaves_such_a_sentence_out() -> None:
    original = score_moments(make_predictions(q1=(), q2=((10.0, 20.0, 1.0),)), ITEMS, reproduce_bugs=("empty-query",))
    assert (original.windows.average_map, original.count, original.empty) == (1.0, 1, 1)
    with pytest.raises(BadValue, match="has no bug 'other'; known: empty-query"):
        score_moments(make_predictions(q1=()), ITEMS, reproduce_bugs=("other",))  # type: ignore[arg-type]


@pytest.mark.fault("F155")
@pytest.mark.parametrize("window", [(4.0, 2.0, 1.0), (math.nan, 2.0, 1.0), (0.0, math.inf, 1.0), (0.0, 1.0, math.nan)])
def test_invalid_windows_are_refused(window: tuple[float, float, float]) -> None:
    with pytest.raises(DataError) as caught:
        score_moments(make_predictions(q1=(window,)), ITEMS)
    assert caught.value.fault == "F155"


@pytest.mark.fault("F152")
def test_predictions_for_other_sentences_are_refused() -> None:
    with pytest.raises(DataError, match="none of the 1 predictions"):
        score_moments(make_predictions(q7=((0.0, 1.0, 1.0),)), ITEMS)


def test_highlight_detection_scores() -> None:
    rated = MomentSet((MomentItem("1", "v", "q", ((2.0, 6.0),), 10.0, (1, 2), ((4, 2, 0), (2, 1, 0))),))
    prediction = MomentPrediction(((2.0, 6.0, 1.0),), (0.1, 0.9, 0.2, 0.3, 0.0))
    score = score_moments(MomentPredictions({"1": prediction}), rated).highlights
    # Three annotators: clips 1 and 2, at ranks 1 and 3; clip 1; none.
    assert score["fair"].mean_ap == pytest.approx(((1 + 2 / 3) / 2 + 1 + 0) / 3)
    assert score["fair"].hit_at_1 == 1.0
    assert score["very_good"].mean_ap == pytest.approx(1 / 3)


def test_true_windows_are_the_actions_for_placements() -> None:
    shared = MomentSet((*ITEMS.items, MomentItem("3", "v", "again", ((0.0, 4.0),))))
    assert shared.actions["v"].start.tolist() == [0.0, 20.0]
