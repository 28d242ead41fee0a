"""Statistical tests of whether two programs that draw at random sample from the same distribution."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

# The reference tests make some 600 comparisons of two dozen pictures each. Samples of one distribution are
# five standard errors apart once in 100,000 such comparisons, so the whole suite fails by bad luck less than
# once in 100.
STANDARD_ERRORS = 5.0
# Tolerance of random corruptions: the share by which a mean or a variance may differ.
SHARE = 0.03


def ks_distance(first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> float:
    """Return the Kolmogorov-Smirnov distance of two samples of whole numbers in -255..255.

    >>> ks_distance(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
    0.25
    """
    shares = [np.cumsum(np.bincount(x.ravel() + 255, minlength=511)) / x.size for x in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())


def ks_limit(n: int, m: int, chance: float = 1e-4) -> float:
    """Return the Kolmogorov-Smirnov distance that two samples of one distribution exceed with this chance at most.

    It is the asymptotic formula, which is too large for values with ties such as grey levels.
    """
    return math.sqrt(-math.log(chance / 2) / 2 * (n + m) / (n * m))


def allowed_gap(ours: Values, theirs: Values) -> float:
    """Return the largest allowed distance of two means: 3 % of theirs, or five standard errors if that is more."""
    error = math.sqrt(ours.var(ddof=1) / len(ours) + theirs.var(ddof=1) / len(theirs))
    return max(SHARE * abs(float(theirs.mean())), STANDARD_ERRORS * error)


def disagreements(ours: Sequence[Mapping[str, float]], theirs: Sequence[Mapping[str, float]]) -> list[str]:
    """Return a message for each statistic whose means over our images and over theirs differ too much.

    Args:
        ours, theirs: for each image its statistics by name. Images must be drawn independently.
    """
    messages = []
    for name in theirs[0]:
        mine = np.array([image[name] for image in ours])
        other = np.array([image[name] for image in theirs])
        gap, allowed = abs(float(mine.mean() - other.mean())), allowed_gap(mine, other)
        if not gap <= allowed:
            messages.append(f"{name}: {mine.mean():.4g} against {other.mean():.4g}, allowed gap {allowed:.2g}")
    return messages
