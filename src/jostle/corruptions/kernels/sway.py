"""Smooth, keyed motion over the time of a clip: what a hand, the wind or a camera does between two frames."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal

import numpy as np

from jostle.core.random import Part, key_for, rng_for
from jostle.corruptions.engine.context import Moment

# How the random part of a corruption behaves from frame to frame.
OverTime = Literal["redrawn", "still", "moving"]


def sway(at: Moment, what: str, hz: float) -> float:
    """A value in about -1..1 that wanders smoothly, `hz` times a second or so, and differs for every `what`.

    It is a sum of three sines whose frequencies and phases are drawn once for the clip, so any moment can be asked for
    by itself.
    """
    time_s = at.time_s
    return sum(
        weight * math.sin(2 * math.pi * hz * pace * time_s + phase)
        for weight, pace, phase in _waves(at.scene.seed, at.scene.video_id, at.scene.name, what)
    )


@lru_cache(64)
def _waves(seed: int, video_id: str, name: str, what: str) -> tuple[tuple[float, float, float], ...]:
    """Weight, pace and phase of each sine of a clip."""
    rng = rng_for(key_for(seed, video_id, name, "sway", what), "waves")
    pace = rng.uniform(0.5, 1.5, 3) * np.array([0.5, 1.0, 1.7])
    phase = rng.uniform(0, 2 * math.pi, 3)
    return tuple(zip((0.6875, 0.375, 0.1875), pace.tolist(), phase.tolist(), strict=True))


def texture_key(at: Moment, over_time: OverTime) -> int:
    """The key of what is drawn: a new one for each frame if redrawn, one for the clip otherwise."""
    return at.key("texture") if over_time == "redrawn" else at.scene.key("texture")


def drift(at: Moment, side: int, over_time: OverTime) -> tuple[int, int]:
    """How far down and to the right the wind has carried a plane of this side, which is a torus; 0 unless it moves."""
    if over_time != "moving":
        return 0, 0
    angle = _wind(at.scene.seed, at.scene.video_id, at.scene.name)
    way = 0.12 * side * at.time_s
    return int(way * math.sin(angle) * 0.4) % side, int(way * math.cos(angle)) % side


@lru_cache(64)
def _wind(seed: int, *scene: Part) -> float:
    """Where the wind of a clip blows."""
    return float(rng_for(seed, *scene, "wind").uniform(0, 2 * math.pi))
