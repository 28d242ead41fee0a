"""Sequential test of a mean: error rate under continuous monitoring, and early decisions."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.errors import BadValue
from jostle.metrics.sequential import ABOVE, BELOW, OPEN, SequentialMean

RUNS, VIDEOS = 1000, 1000


def simulate(drop: float, discordant: float, *, limit: float = -0.05, seed: int = 0) -> tuple[float, float]:
    """Return the median number of looks and the share of wrong decisions for paired differences of -1, 0 and 1."""
    worse, better = (round(VIDEOS * (discordant + sign * drop) / 2) for sign in (1, -1))
    values = np.repeat([-1.0, 1.0, 0.0], [worse, better, VIDEOS - worse - better])
    rng = np.random.default_rng(seed)
    orders = np.stack([rng.permutation(values) for _ in range(RUNS)], axis=1)
    test = SequentialMean(limit, VIDEOS, low=-1.0, high=1.0, alpha=0.05)
    looks = np.full(RUNS, VIDEOS)
    for number, row in enumerate(orders, 1):
        still_open = test.decision == OPEN
        test.add(row)
        looks[still_open & (test.decision != OPEN)] = number
        if (test.decision != OPEN).all():
            break
    correct = ABOVE if values.mean() >= limit else BELOW
    assert (test.decision != OPEN).all()  # after the last video at the latest
    return float(np.median(looks)), float(np.mean(test.decision != correct))


@pytest.mark.parametrize(("drop", "discordant", "most"), [(0.0, 0.06, 170), (0.20, 0.24, 60), (0.10, 0.14, 300)])
def test_clear_differences_are_decided_early(drop: float, discordant: float, most: int) -> None:
    looks, wrong = simulate(drop, discordant)
    assert looks <= most
    assert wrong <= 0.01


@pytest.mark.parametrize("drop", [0.050, 0.052])
def test_error_rate_at_the_limit(drop: float) -> None:
    """A fixed-sample test evaluated after every video would be wrong in most runs here."""
    for seed in range(2):
        assert simulate(drop, 0.08, seed=seed)[1] <= 0.05


@pytest.mark.parametrize(("value", "looks", "decision"), [(1.0, 6, ABOVE), (0.0, 5, BELOW)])
def test_stops_when_the_remaining_videos_cannot_change_the_outcome(value: float, looks: int, decision: object) -> None:
    test = SequentialMean(0.6, 10, alpha=1e-9)
    for _ in range(looks):
        assert test.decision == OPEN
        test.add(value)
    assert (test.decision, test.looks) == (decision, looks)


def test_decision_is_final() -> None:
    test = SequentialMean(0.5, 1000, alpha=0.05)
    for _ in range(30):
        test.add(1.0)
    assert test.decision == ABOVE
    for _ in range(400):
        test.add(0.0)
    assert test.decision == ABOVE


@pytest.mark.parametrize("facts", [{"low": 1.0}, {"alpha": 0.0}, {"alpha": 1.0}, {"count": 0}])
def test_invalid_settings_are_refused(facts: dict[str, float]) -> None:
    with pytest.raises(BadValue):
        SequentialMean(0.5, **{"count": 10, "alpha": 0.05, **facts})  # type: ignore[arg-type]
