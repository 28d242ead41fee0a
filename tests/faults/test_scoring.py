"""Faults F29, F31, F35, F37, F41-F48 and F93 in scoring: reported clearly, counted, never NaN."""

from __future__ import annotations

import json

import numpy as np
import pytest

from helpers.refusals import refused
from jostle.core.types import Predictions, Truth
from jostle.errors import BadValue, DataError
from jostle.metrics.accuracy import top_k_accuracy
from jostle.metrics.score import score

NAMES = ("LongJump", "HighJump", "PoleVault")


def truth(**changes) -> Truth:
    facts = {
        "videos": ("a", "b", "c"),
        "classes": NAMES,
        "video": [0, 1, 2, 2],
        "start": [1.0, 2.0, 3.0, 9.0],
        "end": [4.0, 6.0, 8.0, 12.0],
        "label": [0, 1, 2, 0],
        "duration": [30.0, 30.0, 30.0],
    }
    return Truth(**(facts | changes))


def predictions(**changes) -> Predictions:
    facts = {
        "videos": ("a", "b", "c"),
        "classes": NAMES,
        "video": [0, 1, 2, 2],
        "start": [1.0, 2.0, 3.0, 9.0],
        "end": [4.0, 6.0, 8.0, 12.0],
        "label": [0, 1, 2, 0],
        "score": [0.9, 0.8, 0.7, 0.6],
    }
    return Predictions(**(facts | changes))


def clean_json(result) -> None:
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.fault("F29")
def test_F29_no_instance_left_is_an_error_not_nan() -> None:
    empty = truth(video=[], start=[], end=[], label=[])
    with refused("F29", DataError, match="no instance to score by"):
        score(predictions(), empty)


@pytest.mark.fault("F31")
def test_F31_instances_beyond_the_end_are_reported_and_kept() -> None:
    result = score(predictions(), truth(duration=[3.0, 30.0, 30.0]))
    assert "1 instance past the end of the video, counted as annotated" in result.remarks
    assert result.average_map == 1


@pytest.mark.fault("F35")
def test_F35_labels_spelled_otherwise_are_an_error_with_the_nearest_names() -> None:
    with refused("F35", DataError, match=r"'Long jump' may mean 'LongJump', 'high_jump' may mean 'HighJump'"):
        score(predictions(classes=("Long jump", "high_jump", "pole vault")), truth())
    with pytest.raises(DataError, match="check that both are of the same dataset"):
        score(predictions(classes=("x1", "x2", "x3")), truth())


@pytest.mark.fault("F37")
def test_F37_a_class_without_instances_is_listed_and_left_out_of_the_mean() -> None:
    result = score(predictions(), truth(classes=(*NAMES, "Shotput")))
    assert result.average_map == 1
    assert "classes without an instance do not count in the mean: Shotput" in result.remarks
    assert "Shotput" not in result.per_class


@pytest.mark.fault("F37")
def test_F37_a_video_without_instances_counts_for_false_alarms() -> None:
    quiet = truth(videos=("a", "b", "c", "quiet"), duration=[30.0] * 4)
    noisy = predictions(
        videos=("a", "b", "c", "quiet"),
        video=[0, 1, 2, 2, 3],
        start=[1.0, 2.0, 3.0, 9.0, 1.0],
        end=[4.0, 6.0, 8.0, 12.0, 4.0],
        label=[0, 1, 2, 0, 0],
        score=[0.9, 0.8, 0.7, 0.6, 0.95],
    )
    result = score(noisy, quiet)
    assert result.average_map < 1
    assert result.predictions["outside_subset"] == 0


@pytest.mark.fault("F41")
@pytest.mark.parametrize("values", [[9.0, 8.0, 7.0, 6.0], [-1.0, -2.0, -3.0, -4.0], [3, 2, 1, 0]])
def test_F41_scores_may_be_anything_finite_that_is_ordered(values) -> None:
    assert score(predictions(score=values), truth()).average_map == 1


@pytest.mark.fault("F41")
def test_F41_equal_scores_are_remarked_on() -> None:
    result = score(predictions(score=[0.5] * 4), truth())
    assert "all predictions have one score, so their ranking is arbitrary" in result.remarks


@pytest.mark.fault("F42")
def test_F42_odd_segments_match_nothing_and_are_counted() -> None:
    odd = predictions(start=[4.0, 3.0, 3.0, -5.0], end=[1.0, 3.0, 8.0, 900.0])
    result = score(odd, truth())
    assert "2 predictions without length, or that end before they start" in result.remarks
    assert result.average_map == pytest.approx(1 / 3)
    clean_json(result)


@pytest.mark.fault("F43")
def test_F43_exact_duplicates_are_counted_and_are_false_alarms() -> None:
    twice = predictions(
        video=[0, 0, 1, 2, 2],
        start=[1.0, 1.0, 2.0, 3.0, 9.0],
        end=[4.0, 4.0, 6.0, 8.0, 12.0],
        label=[0, 0, 1, 2, 0],
        score=[0.9, 0.9, 0.8, 0.7, 0.6],
    )
    result = score(twice, truth())
    assert result.predictions["duplicates"] == 1
    assert "1 prediction equal to another in everything, counted as false alarms" in result.remarks
    assert result.average_map < 1


@pytest.mark.fault("F44")
def test_F44_videos_the_truth_lacks_are_false_alarms_with_a_remark() -> None:
    result = score(predictions(videos=("a", "b", "elsewhere")), truth())
    assert result.predictions["outside_subset"] == 2
    assert any("2 predictions in 1 video that the ground truth does not have" in line for line in result.remarks)
    assert any("most in elsewhere (2)" in line for line in result.remarks)


@pytest.mark.fault("F45")
def test_F45_a_few_unknown_labels_are_ignored_and_counted() -> None:
    result = score(predictions(classes=("LongJump", "HighJump", "Juggling")), truth())
    assert result.predictions["unknown_label"] == 1
    assert "1 prediction ignored: the ground truth lacks their class (Juggling)" in result.remarks
    with pytest.raises(DataError, match="1 of 4 predictions have a class that the ground truth lacks: Juggling"):
        score(predictions(classes=("LongJump", "HighJump", "Juggling")), truth(), strict=True)


@pytest.mark.fault("F45")
def test_F45_mostly_unknown_labels_are_an_error() -> None:
    with refused("F45", DataError, match="3 of 4 predictions have a class that the ground truth lacks"):
        score(predictions(classes=("Juggling", "HighJump", "Yodelling")), truth())


@pytest.mark.fault("F45")
def test_F45_numbers_need_a_truth_that_numbers_its_classes() -> None:
    numbered = predictions(classes=("7", "8", "9"), numbered=True)
    with pytest.raises(DataError, match="classes as numbers and the ground truth does not number its classes"):
        score(numbered, truth())
    assert score(numbered, truth(label_ids=(7, 8, 9))).average_map == 1


@pytest.mark.fault("F45")
def test_F45_a_shift_by_one_is_suggested_never_made() -> None:
    numbered = predictions(classes=("1", "2", "3"), numbered=True, label=[1, 1, 2, 1])
    with pytest.raises(DataError, match="all would be known if each number were one less"):
        score(numbered, truth(label_ids=(0, 1, 2)), strict=True)


@pytest.mark.fault("F46")
def test_F46_no_predictions_score_nought() -> None:
    result = score(Predictions((), (), [], [], [], [], []), truth(), bootstrap=20)
    assert result.average_map == 0
    assert result.interval is None
    clean_json(result)


@pytest.mark.fault("F47")
@pytest.mark.parametrize(
    ("factor", "guess"), [(30.0, "these look like frames at 30 frames a second"), (1000.0, "milliseconds")]
)
def test_F47_times_that_are_not_seconds_are_refused_with_the_guess(factor, guess) -> None:
    late = truth(end=[20.0, 21.0, 22.0, 28.0], fps=[30.0] * 3)
    times = predictions(start=late.start * factor, end=late.end * factor)
    with refused("F47", DataError, match=guess):
        score(times, late)


@pytest.mark.fault("F47")
def test_F47_fractions_of_the_video_are_refused() -> None:
    rows = 12
    fractions = Predictions(
        ("a",),
        NAMES,
        [0] * rows,
        np.linspace(0, 0.5, rows),
        np.linspace(0.4, 0.9, rows),
        [0] * rows,
        np.linspace(0, 1, rows),
    )
    with pytest.raises(DataError, match="these look like fractions of the video; multiply them by its duration"):
        score(fractions, truth())


@pytest.mark.fault("F47")
@pytest.mark.parametrize("duration", [[30.0] * 3, [np.nan] * 3])
def test_F47_a_few_fractions_are_remarked_on(duration: list[float]) -> None:
    real = truth(duration=duration)
    result = score(predictions(start=real.start / 30, end=real.end / 28), real)
    assert result.average_map == 0
    assert any("these look like fractions of the video" in line for line in result.remarks)
    assert not any("look like" in line for line in score(predictions(), real).remarks)


@pytest.mark.fault("F47")
def test_F47_fractions_are_refused_where_the_truth_has_no_durations_too() -> None:
    real = truth(end=[20.0, 21.0, 22.0, 28.0], duration=[np.nan] * 3)
    many = {name: np.tile(getattr(predictions(), name), 3) for name in ("video", "label")}
    rows = len(many["video"])
    with refused("F47", DataError, match="these look like fractions of the video"):
        score(
            predictions(**many, start=np.full(rows, 0.2), end=np.full(rows, 1.05), score=np.linspace(0, 1, rows)), real
        )


@pytest.mark.fault("F47")
def test_F47_frames_are_remarked_on_where_the_truth_has_no_durations() -> None:
    real = truth(duration=[np.nan] * 3)
    result = score(predictions(start=real.start * 30, end=real.end * 30), real)
    assert any("these look like frames" in line for line in result.remarks)


@pytest.mark.fault("F130")
def test_F130_complex_scores_have_no_order() -> None:
    with pytest.raises(BadValue, match="column 'score' must be real numbers"):
        predictions(score=np.array([0.9, 0.8, 0.7, 0.6]) + 1j)
    with pytest.raises(DataError, match="scores must be real numbers, got complex128"):
        top_k_accuracy(np.array([[1 + 1j, 2]]), [0])


@pytest.mark.fault("F47")
def test_F47_one_prediction_beyond_the_end_is_only_a_false_alarm() -> None:
    assert score(predictions(end=[4000.0, 6.0, 8.0, 12.0]), truth()).average_map < 1


@pytest.mark.fault("F93")
def test_F93_one_video_gives_no_interval_rather_than_one_of_no_width() -> None:
    one = truth(videos=("a",), video=[0] * 4, duration=[30.0])
    result = score(predictions(videos=("a",), video=[0] * 4), one, bootstrap=50)
    assert result.interval is None
    assert any(line.startswith("no interval: resampling the videos cannot move the score") for line in result.remarks)


@pytest.mark.fault("F93")
def test_F93_equal_values_give_no_interval() -> None:
    assert score(predictions(), truth(), bootstrap=50).interval is None


@pytest.mark.fault("F93")
def test_F93_one_class_and_vanishing_classes_are_handled() -> None:
    single = truth(classes=("LongJump",), label=[0, 0, 0, 0])
    off = predictions(classes=("LongJump",), label=[0] * 4, start=[1.0, 9.0, 3.0, 9.0])
    result = score(off, single, bootstrap=100)
    assert result.interval is not None
    rare = score(predictions(start=[1.0, 5.0, 3.0, 11.0]), truth(), bootstrap=100)
    clean_json(rare)
    assert np.isfinite(rare.interval.average_map).all()


@pytest.mark.fault("F40")
def test_F40_dropped_entries_are_reported_with_the_score() -> None:
    result = score(predictions(left_out={"not finite, dropped": 2}), truth(left_out={"reversed, dropped": 1}))
    assert "2 predictions left out: not finite, dropped" in result.remarks
    assert "1 instance left out: reversed, dropped" in result.remarks
    assert result.predictions["left_out"] == 2
    assert result.to_dict()["truth"]["left_out"] == {"reversed, dropped": 1}
