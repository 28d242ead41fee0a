"""Keys and draws of many frames at once equal those of single frames."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from jostle.core.random import Part, key_for
from jostle.corruptions.engine.context import ClipContext
from jostle.corruptions.kernels.blake2b import frame_keys, keys_for
from jostle.corruptions.kernels.sfc64 import Draws, first_integers, first_uniform


@pytest.mark.parametrize("seed", [0, 3, -(10**19)])
@pytest.mark.parametrize("video", ["", "clip 1", "x" * 47, "x" * 90, "\udc80ü" * 70])  # one block, two and more
@pytest.mark.parametrize("parts", [(), ("texture",), ("a", 2.5, "long" * 40)])
def test_frame_keys_equal_single_keys(seed: int, video: str, parts: tuple[Part, ...]) -> None:
    times, videos = np.arange(1101) / 30, [f"{video}{own}" for own in ("", 12, "a")]
    every = np.ones(len(times), np.bool_)
    contexts = [ClipContext("fog#2", (4, 4), times, Fraction(30), every, seed=seed, video_id=own) for own in videos]
    clip, index = np.repeat([2, 0, 1], 7), np.tile([0, 9, 10, 99, 100, 999, 1100], 3)
    expected = [contexts[b].at(t).key(*parts) for b, t in zip(clip, index.tolist(), strict=True)]
    assert frame_keys(seed, "fog#2", videos, clip, index, *parts).tolist() == expected


def generators(keys: np.ndarray) -> list[np.random.Generator]:
    return [np.random.Generator(np.random.SFC64(key)) for key in keys.tolist()]


@pytest.fixture
def keys() -> np.ndarray:
    drawn = np.random.default_rng(0).integers(0, 2**64, 400, dtype=np.uint64)
    return np.concatenate([np.array([0, 1, 2**32 - 1, 2**32, 2**64 - 1], np.uint64), drawn])


@pytest.mark.parametrize("parts", [(), ("fall",), ("a", 2.5, "long" * 40)])
def test_derived_keys_equal_single_keys(keys: np.ndarray, parts: tuple[Part, ...]) -> None:
    assert keys_for(keys, *parts).tolist() == [key_for(key, *parts) for key in keys.tolist()]


def test_first_uniform(keys: np.ndarray) -> None:
    assert first_uniform(keys, -45, 45).tolist() == [rng.uniform(-45, 45) for rng in generators(keys)]


@pytest.mark.parametrize("stops", [(5, 257, 417), (5, 1, 70), (1, 1), (2**32 - 1, 3 * 10**9 + 1, 7)])
def test_first_integers(stops: tuple[int, ...], keys: np.ndarray) -> None:
    expected = [[int(rng.integers(stop)) for stop in stops] for rng in generators(keys)]
    assert first_integers(keys, *stops).tolist() == expected


def test_draws_continue_like_those_of_a_generator(keys: np.ndarray) -> None:
    for key, rng in zip(keys[:40].tolist(), generators(keys[:40]), strict=True):
        draws = Draws(key)
        for low, high, count in ((-10, 10, 1), (0, 224, 65), (3, 4, 5), (-7, 164, 64), (0, 2**32 - 1, 9)):
            assert draws.integers(low, high, count).tolist() == rng.integers(low, high, count).tolist()
            assert draws.uniform(-45, 45) == rng.uniform(-45, 45)
            assert draws.integer(5) == rng.integers(5)
