"""Frame parameters of GPU kernels equal those of the compiled kernels, frame by frame."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("torch")

from jostle.core.random import key_for
from jostle.corruptions import blur, weather
from jostle.corruptions.engine.context import ClipContext
from jostle.corruptions.gpu import blur as gpu_blur
from jostle.corruptions.gpu import weather as gpu_weather
from jostle.corruptions.gpu.contexts import AffectedFrames, FrameContexts
from jostle.corruptions.kernels.blake2b import keys_for
from jostle.corruptions.kernels.filters import motion_trail, motion_trails
from jostle.corruptions.kernels.sfc64 import Draws, first_integers, first_uniform
from jostle.corruptions.kernels.smooth_motion import OverTime, drifts, sway, sways
from jostle.corruptions.kernels.textures import ICE_TEXTURES

SIZE, LENGTH, SEED = (58, 75), 40, 3
VIDEOS = ("one", "none", "two", "three")
OVER_TIME: tuple[OverTime, ...] = ("still", "moving")


@pytest.fixture
def at() -> FrameContexts:
    """Make contexts of some frames of several clips, one without frames, at uneven times not starting at 0."""
    rng = np.random.default_rng(0)
    masks = [rng.random(LENGTH) < share for share in (0.5, 0.0, 1.0, 0.3)]
    times = [0.2 + np.sort(rng.uniform(0, 60, LENGTH)) for _ in VIDEOS]
    scenes = [
        ClipContext("snow#2", SIZE, pts, Fraction(30), mask, seed=SEED, video_id=video)
        for pts, mask, video in zip(times, masks, VIDEOS, strict=True)
    ]
    return FrameContexts("snow#2", SEED, VIDEOS, AffectedFrames.of(masks), lambda: scenes)


def test_keys(at: FrameContexts) -> None:
    assert at.keys("texture").tolist() == [moment.key("texture") for moment in at]
    assert at.scene_keys("texture").tolist() == [moment.scene.key("texture") for moment in at]


def test_moments(at: FrameContexts) -> None:
    moments = [(scene, time_s) for scene, times in at.moments() for time_s in times]
    assert moments == [(moment.scene, moment.time_s) for moment in at]
    (one,) = FrameContexts.of(at.scenes[0], np.array([5, 5, 2])).moments()
    pts = at.scenes[0].pts
    assert one == (at.scenes[0], [pts[5] - pts[0], pts[5] - pts[0], pts[2] - pts[0]])


def test_sways(at: FrameContexts) -> None:
    together = [value for moment in at.moments() for value in sways(*moment, "wind", 0.2)]
    assert together == [sway(moment, "wind", 0.2) for moment in at]
    assert len({*together}) > len(at) // 2


@pytest.mark.parametrize("over_time", OVER_TIME)
def test_trails_of_motion_blur(over_time: OverTime, at: FrameContexts) -> None:
    angles = [blur.headings(moment.scene, [moment.time_s], over_time)[0] for moment in at]
    assert gpu_blur._headings(at, over_time) == angles
    moves, weight = motion_trails(15, 8, angles)
    assert moves.flags.c_contiguous  # a program reads them sequentially
    for (down, right), angle in zip(moves, angles, strict=True):
        dy, dx, own_weight = motion_trail(15, 8, angle)
        assert np.array_equal(down, dy)
        assert np.array_equal(right, dx)
        assert np.array_equal(weight, own_weight)


def test_trails_that_are_redrawn(at: FrameContexts) -> None:
    assert gpu_blur._headings(at, "redrawn") == [Draws(moment.key()).uniform(*blur.HEADINGS) for moment in at]


@pytest.mark.parametrize("over_time", OVER_TIME)
def test_drift_of_fog(over_time: OverTime, at: FrameContexts) -> None:
    together = [move for moment in at.moments() for move in drifts(*moment, 128, over_time)]
    assert together == [drifts(moment.scene, [moment.time_s], 128, over_time)[0] for moment in at]
    assert (len({*together}) > 1) == (over_time == "moving")


def test_fall_of_snow(at: FrameContexts) -> None:
    ways = [weather.snowfalls(moment.scene, [moment.time_s], *SIZE)[0] for moment in at]
    assert gpu_weather._snowfalls(at, SIZE).tolist() == [
        [offset % side for offset, side in zip(way, SIZE * 2, strict=True)] for way in ways
    ]
    keys = at.keys("texture")
    angles = [Draws(key_for(key, "fall")).uniform(*weather.FALLS) for key in keys.tolist()]
    assert first_uniform(keys_for(keys, "fall"), *weather.FALLS).tolist() == angles


@pytest.mark.parametrize("over_time", ["still", "redrawn"])
def test_panes_of_frost(over_time: OverTime, at: FrameContexts) -> None:
    panes = gpu_weather._panes(*SIZE)
    keys = at.keys() if over_time == "redrawn" else at.scene_keys()
    together = first_integers(keys, ICE_TEXTURES, *weather.places(panes[0], *SIZE)).tolist()
    for moment, (number, y, x) in zip(at, together, strict=True):
        texture, row, column = weather.pane(moment, *SIZE, over_time)
        assert (row, column) == (y, x)
        assert np.array_equal(panes[number], texture)
