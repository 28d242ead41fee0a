"""Other videos that might have been filmed: the intervals that come of drawing a run's videos."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.core.types.columns import Floats
from jostle.metrics.bootstrap import bias_corrected

LEVEL = 0.95
DRAWS = 1000


@dataclass(frozen=True)
class Estimate:
    """A number, and where it would lie with other videos.

    Attributes:
        value: None where it has no meaning, as a ratio to a clean score of 0.
        interval: (low, high), None where it cannot be had.
    """

    value: float | None
    interval: tuple[float, float] | None = None


def estimate(measured: float | None, drawn: Floats, level: float = LEVEL) -> Estimate:
    """A number with its interval from what it is in each draw; a draw in which it has no meaning is left out."""
    if measured is None or not np.isfinite(measured):
        return Estimate(None)
    known = drawn[np.isfinite(drawn)]
    return Estimate(float(measured), bias_corrected(known, float(measured), level) if len(known) > 1 else None)
