"""Exact confidence intervals of proportions (Clopper and Pearson, 1934)."""

from __future__ import annotations

from jostle.errors import BadValue

Interval = tuple[float, float]


def clopper_pearson(successes: int, trials: int, level: float = 0.95) -> Interval | None:
    """Return the exact interval of a proportion, or None with fewer than two trials.

    With a = 1 - level the ends are BetaInv(a/2; k, n-k+1) and BetaInv(1-a/2; k+1, n-k); the lower one is 0 if
    nothing was right, the upper one 1 if everything was.

    >>> low, high = clopper_pearson(749, 1109)  # ResNet-50 on ImageNet-Vid-Robust
    >>> f"{100 * low:.1f} {100 * high:.1f}"
    '64.7 70.3'
    >>> clopper_pearson(1, 1) is None
    True
    """
    if trials < 0 or not 0 <= successes <= trials:
        raise BadValue(f"successes must lie in 0..{max(trials, 0)}, the number of trials, got {successes} of {trials}")
    if not 0 < level < 1:
        raise BadValue(f"level must lie between 0 and 1, as in 0.95, got {level}")
    if trials < 2:
        return None
    from scipy.special import betaincinv  # type: ignore[import-untyped, unused-ignore]

    tail = (1 - level) / 2
    low = float(betaincinv(successes, trials - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, trials - successes, 1 - tail)) if successes < trials else 1.0
    return low, high
