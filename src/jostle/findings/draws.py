"""Other videos that might have been filmed: draws of a run's videos, and the intervals that come of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jostle.metrics.bootstrap import bias_corrected
from jostle.seeds import rng_for
from jostle.types.columns import Floats

LEVEL = 0.95
DRAWS = 1000
Weights = npt.NDArray[np.int16]  # (draws, videos)


@dataclass(frozen=True)
class Estimate:
    """A number, and where it would lie with other videos.

    Attributes:
        value: None where it has no meaning, as a ratio to a clean score of 0.
        interval: (low, high), None where it cannot be had.
    """

    value: float | None
    interval: tuple[float, float] | None = None


def weights_of(videos: Sequence[str], draws: int, seed: int = 0) -> Weights:
    """(draws, videos) how often each video is drawn; two runs on the same videos meet the same draws.

    These are the draws of `jostle eval --bootstrap` and `jostle.compare`.

    >>> weights_of(["a", "b", "c"], 2).sum(axis=1).tolist()
    [3, 3]
    """
    place = {name: i for i, name in enumerate(sorted(videos))}
    own = np.array([place[name] for name in videos], np.int64)
    rng = rng_for(seed, "bootstrap over videos", *place)
    made = np.empty((draws, len(own)), np.int16)
    for row in made:
        row[:] = np.bincount(rng.integers(0, len(own), len(own)), minlength=len(own))[own]
    return made


def estimate(measured: float | None, drawn: Floats, level: float = LEVEL) -> Estimate:
    """A number with its interval from what it is in each draw; a draw in which it has no meaning is left out."""
    if measured is None or not np.isfinite(measured):
        return Estimate(None)
    known = drawn[np.isfinite(drawn)]
    return Estimate(float(measured), bias_corrected(known, float(measured), level) if len(known) > 1 else None)
