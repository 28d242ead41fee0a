"""Draws are the same whatever the order, and an interval says nothing it does not know."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jostle.metrics.bootstrap import video_weights
from jostle.reporting.analysis.run_analysis import estimate


@given(st.permutations(["a", "b", "c", "d"]), st.integers(0, 5))
def test_draws_do_not_depend_on_the_order_of_videos(names: list[str], seed: int) -> None:
    plain, turned = video_weights("abcd", 7, seed), video_weights(names, 7, seed)
    assert (plain.sum(axis=1) == 4).all()
    np.testing.assert_array_equal(turned, plain[:, ["abcd".index(name) for name in names]])


def test_seeds_differ() -> None:
    assert (video_weights("abcdefgh", 5, 0) != video_weights("abcdefgh", 5, 1)).any()


def test_estimates() -> None:
    assert estimate(None, np.zeros(3)).value is None
    assert estimate(float("nan"), np.zeros(3)).value is None
    assert estimate(0.5, np.full(9, 0.5)).interval is None
    known = estimate(0.5, np.array([0.4, np.nan, 0.6, np.inf, 0.5]))
    assert known.interval is not None
    assert 0.4 <= known.interval[0] <= known.interval[1] <= 0.6
