"""Sequential test of a mean, valid at every look: how many videos decide whether a score keeps a limit.

The capital of a gambler who bets against a hypothesis seldom grows if the hypothesis is true: with probability alpha at
most it ever reaches 1 / alpha (Ville's inequality). So one may look after every video and stop as soon as it does. The
bets are those of Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", for values that
are drawn without replacement: the statement is about the mean of this finite set, and the test ends with it at the
latest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.errors import BadValue

ABOVE, BELOW, OPEN = 1, -1, 0
MOST = 0.5  # share of the capital that is risked at most


class SequentialMean:
    """Test whether the mean of a finite set is above or below a limit, as its values are drawn in random order.

    Args:
        limit: that the mean is held against.
        count: values in the set.
        low: smallest value that there can be; `high` the largest.
        alpha: greatest probability of a wrong decision, for each side.

    Attributes:
        decision: `ABOVE` if the mean is at least the limit, `BELOW` if it is less, `OPEN` while that is not decided; an
            array of these, where arrays of values are added: independent tests side by side.
        looks: values that were added so far.

    >>> test = SequentialMean(0.5, 100, alpha=0.05)
    >>> for _ in range(20):
    ...     test.add(1.0)
    >>> int(test.decision)
    1
    """

    def __init__(self, limit: float, count: int, *, low: float = 0.0, high: float = 1.0, alpha: float) -> None:
        if not low < high or not 0 < alpha < 1 or count < 1:
            raise BadValue(f"a test needs low < high, 0 < alpha < 1 and values, got {low}, {high}, {alpha}, {count}")
        self._low, self._range, self._count = low, high - low, count
        self._limit, self._needed = (limit - low) / (high - low), -np.log(alpha)
        self.looks = 0
        self.decision: npt.NDArray[np.int8] = np.zeros((), np.int8)
        self._sum: Any = 0.0
        self._squares: Any = 0.0  # of distances from the mean so far
        self._above: Any = 0.0  # logarithm of the capital of bets on a mean above the limit
        self._below: Any = 0.0

    def add(self, value: npt.ArrayLike) -> None:
        """Add the next value of the set, or of each of several tests."""
        x = (np.asarray(value, np.float64) - self._low) / self._range
        before = self.looks
        # Mean of what is left if the mean of all is the limit.
        left = (self._count * self._limit - self._sum) / (self._count - before)
        variance = (0.25 + self._squares) / (before + 1)
        bet = np.sqrt(2 * self._needed / (variance * (before + 1) * np.log(before + 2)))
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.minimum(bet, MOST / np.clip(left, 1e-12, None)) * (x - left)
            loss = np.minimum(bet, MOST / np.clip(1 - left, 1e-12, None)) * (left - x)
            self._above = self._above + np.log1p(np.clip(gain, -MOST, None))
            self._below = self._below + np.log1p(np.clip(loss, -MOST, None))
        self._sum = self._sum + x
        self.looks += 1
        mean = (0.5 + self._sum) / (self.looks + 1)
        self._squares = self._squares + (x - mean) ** 2
        # What is left may not be able to change the outcome any more.
        rest, goal = self._count - self.looks, self._count * self._limit
        near = 1e-9 * self._count
        above = (self._above >= self._needed) | (self._sum >= goal - near)
        below = (self._below >= self._needed) | (self._sum + rest < goal - near)
        verdict = np.where(above, ABOVE, np.where(below, BELOW, OPEN)).astype(np.int8)
        self.decision = np.where(self.decision == OPEN, verdict, self.decision).astype(np.int8)
