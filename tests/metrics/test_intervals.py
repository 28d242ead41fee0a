from __future__ import annotations

import numpy as np
import pytest

from jostle.errors import BadValue
from jostle.metrics.bootstrap import bias_corrected
from jostle.metrics.proportion import clopper_pearson


def test_interval_ends_solve_the_binomial_tails() -> None:
    """At either end the observed count or a more extreme one has a probability of 2.5 %."""
    from math import comb

    low, high = clopper_pearson(3, 20) or (0, 0)
    at_least = sum(comb(20, i) * low**i * (1 - low) ** (20 - i) for i in range(3, 21))
    at_most = sum(comb(20, i) * high**i * (1 - high) ** (20 - i) for i in range(4))
    assert (at_least, at_most) == pytest.approx((0.025, 0.025), abs=1e-12)


def test_intervals_of_no_and_all_successes() -> None:
    assert clopper_pearson(0, 10) == pytest.approx((0, 1 - 0.025**0.1))
    assert clopper_pearson(10, 10) == pytest.approx((0.025**0.1, 1))
    assert clopper_pearson(0, 10, 0.9)[1] == pytest.approx(1 - 0.05**0.1)


@pytest.mark.parametrize(("successes", "trials", "level"), [(-1, 5, 0.95), (6, 5, 0.95), (1, -1, 0.95), (1, 5, 1.0)])
def test_invalid_values_are_refused(successes: int, trials: int, level: float) -> None:
    with pytest.raises(BadValue, match="must lie"):
        clopper_pearson(successes, trials, level)


def test_draws_within_rounding_of_the_estimate_count_as_equal() -> None:
    rng = np.random.default_rng(0)
    draws = np.concatenate([rng.normal(1, 0.1, 900), np.ones(100)])
    ends = bias_corrected(draws, 1.0, 0.95)
    assert ends is not None
    for last_bit in (-1e-15, 1e-15):
        assert bias_corrected(draws, 1.0 + last_bit, 0.95) == ends
    assert bias_corrected(draws, 1.0 + 1e-6, 0.95) != ends
