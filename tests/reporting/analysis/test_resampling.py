"""Bootstrap draws do not depend on the order of videos; undefined values give no interval."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jostle.evaluation.results.run_analysis import estimate
from jostle.metrics.bootstrap import video_weights


@given(st.permutations(["a", "b", "c", "d"]), st.integers(0, 5))
def test_draws_do_not_depend_on_the_order_of_videos(names: list[str], seed: int) -> None:
    ordered, permuted = video_weights("abcd", 7, seed), video_weights(names, 7, seed)
    assert (ordered.sum(axis=1) == 4).all()
    np.testing.assert_array_equal(permuted, ordered[:, ["abcd".index(name) for name in names]])


def test_seeds_give_different_draws() -> None:
    assert (video_weights("abcdefgh", 5, 0) != video_weights("abcdefgh", 5, 1)).any()


def test_undefined_and_constant_values_have_no_interval() -> None:
    assert estimate(None, np.zeros(3)).value is None
    assert estimate(float("nan"), np.zeros(3)).value is None
    assert estimate(0.5, np.full(9, 0.5)).interval is None
    finite = estimate(0.5, np.array([0.4, np.nan, 0.6, np.inf, 0.5]))
    assert finite.interval is not None
    assert 0.4 <= finite.interval[0] <= finite.interval[1] <= 0.6
