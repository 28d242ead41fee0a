"""Tests of the caches between frames and an extractor."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jostle.features.caches import FrameFeatureCache

key = FrameFeatureCache.key


@pytest.fixture
def frame() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (16, 20, 3), np.uint8)


def test_equal_frames_have_one_key_in_every_memory_layout(frame: np.ndarray) -> None:
    shifted = np.empty(frame.size + 1, np.uint8)[1:].reshape(frame.shape)  # at an odd address
    shifted[:] = frame
    reversed_twice = np.ascontiguousarray(frame[:, ::-1])[:, ::-1]
    assert {key(frame), key(shifted), key(reversed_twice), key(frame.copy(order="F"))} == {key(frame)}


@pytest.mark.parametrize("shape", [(16, 20, 3), (5, 7, 3), (1, 1, 3), (0, 4, 3)])
def test_each_pixel_changes_the_key(shape: tuple[int, ...]) -> None:
    frame = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
    keys = {key(frame)}
    for index, bit in itertools.product(range(frame.size), (0, 7)):
        changed = frame.copy()
        changed.flat[index] ^= 1 << bit
        keys.add(key(changed))
    assert len(keys) == 1 + 2 * frame.size


def test_changes_of_two_words_do_not_cancel_each_other(frame: np.ndarray) -> None:
    keys = {key(frame)}
    pairs = list(itertools.combinations(range(7, frame.size, 32), 2))  # the highest bytes of words of one hash
    for first, second in pairs:
        changed = frame.copy()
        changed.flat[first] ^= 128
        changed.flat[second] ^= 128
        keys.add(key(changed))
    assert len(keys) == 1 + len(pairs)


def test_exchanged_words_and_shapes_change_the_key(frame: np.ndarray) -> None:
    words = frame.reshape(-1, 8)
    keys = {key(frame), key(frame.reshape(20, 16, 3)), key(frame[::-1]), key(frame[:, ::-1])}
    for first, second in itertools.combinations(range(0, len(words), 5), 2):
        changed = words.copy()
        changed[[first, second]] = words[[second, first]]
        keys.add(key(changed.reshape(frame.shape)))
    count = len(range(0, len(words), 5))
    assert len(keys) == 4 + count * (count - 1) // 2
