"""Index maps of time-level corruptions, tested without frames."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.core.random import rng_for
from jostle.corruptions.engine.corruption import corruptions
from jostle.corruptions.engine.spec import profiles
from jostle.corruptions.order import box_jumble, freeze, jumble, reverse_sampling
from jostle.corruptions.rate import frame_rate, sampling, slow_motion, time_lapse

TIME_LEVEL = [name for name in corruptions if corruptions[name].level == "time"]


def times(n: int, fps: float = 30.0) -> np.ndarray:
    return np.arange(n) / fps


@given(st.sampled_from(TIME_LEVEL), st.integers(0, 200), st.integers(0, 4), st.integers(0, 3))
def test_maps_keep_the_length_and_stay_in_range(name: str, n: int, severity: int, seed: int) -> None:
    corruption = corruptions[name]
    indices = corruption.function(times(n), corruption.scale[severity], rng_for(seed))
    assert indices.shape == (n,)
    assert indices.dtype == np.int64
    assert not n or (indices.min() >= 0 and indices.max() < n)


def test_sampling_and_its_reverse() -> None:
    assert sampling(times(7), 3, rng_for(0)).tolist() == [0, 0, 0, 3, 3, 3, 6]
    assert reverse_sampling(times(7), 3, rng_for(0)).tolist() == [6, 6, 6, 3, 3, 3, 0]


def test_jumble_shuffles_within_segments() -> None:
    indices = jumble(times(70), 32, rng_for(1))
    for first, last in ((0, 32), (32, 64), (64, 70)):
        assert sorted(indices[first:last].tolist()) == list(range(first, last))
    assert indices.tolist() != list(range(70))


def test_box_jumble_moves_whole_segments() -> None:
    indices = box_jumble(times(40), 9, rng_for(2)).tolist()
    assert sorted(indices) == list(range(40))
    breaks = sum(b != a + 1 for a, b in pairwise(indices))
    assert breaks <= 4


@pytest.mark.parametrize(("severity", "count"), [(1, 40), (2, 20), (3, 10), (4, 5), (5, 1)])
def test_freeze_keeps_the_published_share_of_frames(severity: int, count: int) -> None:
    value = profiles["ucf101-p"].entries["freeze"].values[severity - 1]
    indices = freeze(times(100), value, rng_for(3))
    assert len(set(indices.tolist())) == count
    assert indices[0] == 0
    assert (np.diff(indices) >= 0).all()
    assert (indices <= np.arange(100)).all()


def test_freeze_keeps_two_of_a_short_clip_at_severity_four() -> None:
    value = profiles["ucf101-p"].entries["freeze"].values[3]
    assert len(set(freeze(times(20), value, rng_for(3)).tolist())) == 2


def test_frame_rate_holds_the_last_frame_sent() -> None:
    assert frame_rate(times(7, 30), 10.0, rng_for(0)).tolist() == [0, 0, 0, 3, 3, 3, 6]
    assert frame_rate(times(6, 24), 12.0, rng_for(0)).tolist() == [0, 0, 2, 2, 4, 4]
    assert frame_rate(times(5, 10), 60.0, rng_for(0)).tolist() == [0, 1, 2, 3, 4]


def test_frame_rate_reads_timestamps() -> None:
    uneven = np.array([0.0, 0.3, 0.35, 0.4, 1.0, 1.05])
    assert frame_rate(uneven, 2.0, rng_for(0)).tolist() == [0, 0, 0, 0, 4, 4]


def test_slow_motion_and_time_lapse() -> None:
    assert slow_motion(times(6), 2.0, rng_for(0)).tolist() == [0, 0, 1, 1, 2, 2]
    assert time_lapse(times(6), 2.0, rng_for(0)).tolist() == [0, 2, 4, 5, 5, 5]
