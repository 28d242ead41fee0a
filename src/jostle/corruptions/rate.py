"""Video at another pace: fewer frames, slower, faster. Index maps, as in `order`."""

from __future__ import annotations

import numpy as np

from jostle.core.types.clip import Times
from jostle.corruptions.engine.corruption import corruption
from jostle.corruptions.order import Indices


@corruption(level="time", scale=(2, 4, 8, 16, 32), cites="schiappa2023", draws=False)
def sampling(times: Times, step: int, rng: None) -> Indices:
    """Every `step`-th frame, each held for `step` frames."""
    return np.arange(len(times), dtype=np.int64) // step * step


@corruption(level="time", scale=(15.0, 10.0, 7.5, 5.0, 2.5), cites="yi2021", draws=False)
def frame_rate(times: Times, fps: float, rng: None) -> Indices:
    """Video sent at `fps` frames a second: each moment shows the last frame that was sent.

    Frames are picked by timestamp, without blending; a rate above the video's own changes nothing.
    """
    if len(times) == 0:
        return np.zeros(0, np.int64)
    # A hair of a frame, so that a moment that falls on a tick in exact numbers is not put before it by rounding.
    tick = np.floor((times - times[0]) * fps + 1e-6)
    sent = times[0] + tick / fps - 1e-6 / fps
    return np.asarray(np.minimum(times.searchsorted(sent), np.arange(len(times))), np.int64)


@corruption(level="time", scale=(1.25, 1.5, 2.0, 3.0, 4.0), cites="zeng2024", draws=False)
def slow_motion(times: Times, factor: float, rng: None) -> Indices:
    """The stretch played `factor` times as slowly from its start; what no longer fits is not seen."""
    return (np.arange(len(times)) / factor).astype(np.int64)


@corruption(level="time", scale=(1.25, 1.5, 2.0, 3.0, 4.0), cites="zeng2024", draws=False)
def time_lapse(times: Times, factor: float, rng: None) -> Indices:
    """The stretch played `factor` times as fast, then held at its last frame."""
    n = len(times)
    return np.minimum((np.arange(n) * factor).astype(np.int64), max(n - 1, 0))
