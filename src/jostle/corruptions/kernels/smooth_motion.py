"""Smooth, keyed motion over the time of a clip, as of a hand, the wind or a camera."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np

from jostle.core.random import Part, key_for, rng_for
from jostle.corruptions.engine.context import ClipContext, FrameContext

# How the random part of a corruption behaves from frame to frame.
OverTime = Literal["redrawn", "still", "moving"]


def sway(at: FrameContext, what: str, hz: float) -> float:
    """Return a smoothly wandering value in about -1..1, of about `hz` cycles a second, keyed by `what`."""
    return sways(at.scene, [at.time_s], what, hz)[0]


def sways(scene: ClipContext, times: Sequence[float], what: str, hz: float) -> list[float]:
    """Return `sway` at each of these times of a clip, in seconds.

    It is a sum of three sines whose frequencies and phases are drawn once for the clip, so any moment can be computed
    by itself.
    """
    (a, u, x), (b, v, y), (c, w, z) = _waves(scene.seed, scene.video_id, scene.name, what, hz)
    sin = math.sin  # not NumPy's, whose last digit may be another
    return [a * sin(u * t + x) + b * sin(v * t + y) + c * sin(w * t + z) for t in times]


@lru_cache(64)
def _waves(seed: int, video_id: str, name: str, what: str, hz: float) -> tuple[tuple[float, float, float], ...]:
    """Return the weight, angular frequency and phase of each sine of a clip."""
    rng = rng_for(key_for(seed, video_id, name, "sway", what), "waves")
    pace = rng.uniform(0.5, 1.5, 3) * np.array([0.5, 1.0, 1.7])
    phase = rng.uniform(0, 2 * math.pi, 3)
    return tuple(zip((0.6875, 0.375, 0.1875), (2 * math.pi * hz * pace).tolist(), phase.tolist(), strict=True))


def texture_key(at: FrameContext, over_time: OverTime) -> int:
    """Return the key of a texture: one for each frame if redrawn, one for the clip otherwise."""
    return at.key("texture") if over_time == "redrawn" else at.scene.key("texture")


def drifts(scene: ClipContext, times: Sequence[float], side: int, over_time: OverTime) -> list[tuple[int, int]]:
    """Return the cyclic displacement of a texture by the wind at each time, down and right; 0 unless it moves."""
    if over_time != "moving":
        return [(0, 0)] * len(times)
    angle = _wind(scene.seed, scene.video_id, scene.name)
    down, right = math.sin(angle), math.cos(angle)
    ways = [0.12 * side * time_s for time_s in times]
    return [(int(way * down * 0.4) % side, int(way * right) % side) for way in ways]


@lru_cache(64)
def _wind(seed: int, *scene: Part) -> float:
    """Return the direction of the wind in a clip."""
    return float(rng_for(seed, *scene, "wind").uniform(0, 2 * math.pi))
