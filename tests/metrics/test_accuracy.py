from __future__ import annotations

import numpy as np
import pytest

from jostle.errors import BadValue, DataError
from jostle.metrics.accuracy import top_k_accuracy, within_top_k


def test_top_k_accuracy_equals_sorting() -> None:
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 6, (200, 8))  # many ties
    labels = rng.integers(0, 8, 200)
    ranked = np.argsort(-scores, axis=1, kind="stable")
    for k in (1, 3, 8):
        expected = (ranked[:, :k] == labels[:, None]).any(axis=1)
        np.testing.assert_array_equal(within_top_k(scores, labels, k), expected)
        result = top_k_accuracy(scores, labels, k)
        assert (result.correct, result.count, result.accuracy) == (expected.sum(), 200, expected.mean())
        assert result.interval[0] < result.accuracy <= result.interval[1]
    assert result.to_dict()["interval"][1] == 1


@pytest.mark.parametrize(
    ("scores", "labels", "k", "kind", "message"),
    [
        ([[1.0, 2.0]], [0, 1], 1, DataError, r"got \(1, 2\) and \(2,\)"),
        (np.zeros((0, 2)), np.zeros(0, int), 1, DataError, "at least one row"),
        ([[1.0, 2.0]], [2], 1, DataError, r"labels must be whole numbers in 0\.\.1"),
        ([[1.0, 2.0]], [0.5], 1, DataError, "labels must be whole numbers"),
        ([[1.0, float("nan")]], [0], 1, DataError, "1 of 1 rows have NaN scores, the first is row 0"),
        ([[1.0, 2.0]], [0], 3, BadValue, r"k must lie in 1\.\.2, the number of classes, got 3"),
    ],
)
def test_invalid_scores_and_labels_are_refused(
    scores: list, labels: list, k: int, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        top_k_accuracy(scores, labels, k)
