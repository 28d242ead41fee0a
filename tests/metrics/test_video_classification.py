from __future__ import annotations

import numpy as np
import pytest

from jostle.core.types import VideoLabels
from jostle.errors import BadValue, DataError
from jostle.metrics.video_classification import video_classification

CLASSES = ("Jump", "Run", "Swim", "Unused")
TRUTH = VideoLabels(("a", "b", "c", "nothing"), CLASSES, [0, 0, 0, 1, 2], [0, 1, 1, 1, 2])


def predictions_of(*rows: tuple[str, str, float]) -> VideoLabels:
    videos, classes = (tuple(dict.fromkeys(column)) for column in list(zip(*rows, strict=True))[:2])
    return VideoLabels(
        videos,
        classes,
        [videos.index(video) for video, _, _ in rows],
        [classes.index(name) for _, name, _ in rows],
        [score for _, _, score in rows],
    )


def test_perfect_predictions_score_one() -> None:
    result = video_classification(
        predictions_of(("a", "Run", 0.9), ("a", "Jump", 0.8), ("b", "Run", 1), ("c", "Swim", 1)), TRUTH
    )
    assert (result.mean_ap, result.hit_at_k, result.average_hit_at_k) == (1, 1, 1)
    assert (result.videos, result.pairs) == (3, 4)  # duplicate pairs count once, videos without a class are ignored
    assert list(result.per_class) == ["Jump", "Run", "Swim"]


def test_misses_duplicates_and_unknown_classes() -> None:
    result = video_classification(
        predictions_of(
            ("b", "Run", 0.9),
            ("b", "Run", 0.8),  # a duplicate pair is a false positive
            ("a", "Run", 0.7),
            ("a", "Fly", 0.9),  # an unknown class uses up one of the k guesses
            ("z", "Jump", 0.9),  # a false positive in a video without ground truth
            ("a", "Jump", 0.1),
        ),
        TRUTH,
        k=2,
    )
    assert result.per_class == pytest.approx({"Jump": 0.5, "Run": (1 + 2 / 3) / 2, "Swim": 0})
    assert result.mean_ap == pytest.approx((0.5 + 5 / 6) / 3)
    assert result.hit_at_k == pytest.approx(2 / 3)
    assert result.average_hit_at_k == pytest.approx((0.5 + 1 + 0) / 3)
    assert (result.unknown_label, result.outside) == (1, 1)


def test_later_row_wins_among_equal_scores() -> None:
    rows = [("b", "Swim", 0.5), ("b", "Run", 0.5)]
    assert video_classification(predictions_of(*rows), TRUTH, k=1).hit_at_k == pytest.approx(1 / 3)
    assert video_classification(predictions_of(*rows[::-1]), TRUTH, k=1).hit_at_k == 0


def test_scores_equal_plain_computation() -> None:
    rng = np.random.default_rng(5)
    videos, classes = tuple(map(str, range(30))), tuple("abcdef")
    truth = VideoLabels(videos, classes, np.arange(60) % 30, rng.integers(0, 6, 60))
    guess = VideoLabels(videos, classes, np.repeat(np.arange(30), 6), np.tile(np.arange(6), 30), rng.random(180))
    result = video_classification(guess, truth)
    table = guess.score.reshape(30, 6)
    owned = [set(truth.label[truth.video == v].tolist()) for v in range(30)]
    best = [set(np.argsort(-row)[:3].tolist()) for row in table]
    assert result.hit_at_k == pytest.approx(np.mean([bool(o & b) for o, b in zip(owned, best, strict=True)]))
    shares = [len(o & b) / len(o) for o, b in zip(owned, best, strict=True)]
    assert result.average_hit_at_k == pytest.approx(np.mean(shares))
    for c, name in enumerate(classes):
        right = np.array([c in owned[v] for v in np.argsort(-table[:, c])])
        precision = np.cumsum(right) / np.arange(1, 31)
        raised = np.maximum.accumulate(precision[::-1])[::-1]
        assert result.per_class[name] == pytest.approx(raised[right].mean())


def test_invalid_inputs_are_refused() -> None:
    guess = predictions_of(("a", "Run", 0.9))
    with pytest.raises(DataError, match="have no scores; they look like ground truth"):
        video_classification(TRUTH, TRUTH)
    with pytest.raises(DataError, match="the ground truth holds no"):
        video_classification(guess, VideoLabels(("a",), ("Run",), [], []))
    with pytest.raises(BadValue, match="k must be at least 1, got 0"):
        video_classification(guess, TRUTH, k=0)
    with pytest.raises(DataError, match="2 of 3 predictions are of classes that the ground truth does not have"):
        video_classification(predictions_of(("a", "x", 1), ("a", "y", 1), ("a", "Run", 1)), TRUTH)
    numbered = VideoLabels(("a",), ("0",), [0], [0], [1.0], numbered=True)
    with pytest.raises(DataError, match="the predictions number their classes but the ground truth names them"):
        video_classification(numbered, TRUTH)
