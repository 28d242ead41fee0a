"""Average precision tables computed from ranks."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.metrics.mean_ap import average_precision_table, interpolated_ap, mean_of_table, precise_enough


def test_table_has_the_interpolated_ap_of_each_class() -> None:
    ranks = np.array([[4, 0, -1, 7], [-1, -1, 2, 1]])
    label, positives = np.array([1, 1, 0, 1]), np.array([1, 3, 0])
    table = average_precision_table(ranks, label, positives, normaliser=2.0)
    assert table[1, 0] == interpolated_ap(np.array([0, 4, 7]), 3, normaliser=2.0)
    assert table[0].tolist() == [0.0, interpolated_ap(np.array([2]), 1, normaliser=2.0)]
    assert np.isnan(table[2]).all()
    assert mean_of_table(table) == pytest.approx(table[:2].mean())
    assert mean_of_table(table[2:]) == 0.0


def test_precision_may_rise_above_the_floor_again() -> None:
    """With N = positives = 4, precision at ranks 4, 5 and 6 is 1/5, 2/6 and 3/7."""
    ranks, label, positives = np.array([[6, 4, 5, -1]]), np.zeros(4, int), np.array([4])
    precise = precise_enough(ranks, label, positives, normaliser=4, floor=0.2)
    assert precise.tolist() == [[True, False, True, False]]  # 1/5 is not above the floor
    assert precise_enough(ranks, label, positives, normaliser=4, floor=0.0).tolist() == [[True, True, True, False]]
