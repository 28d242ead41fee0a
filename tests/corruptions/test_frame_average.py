"""The running mean over neighbouring frames equals a direct computation."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.corruptions.blur import LONGEST, TILE, _running_mean
from jostle.corruptions.engine.corruption import corruptions
from jostle.errors import BadValue


@pytest.mark.parametrize("half", [1, 2, 7, 11, LONGEST // 2])
def test_running_mean_is_the_truncated_mean(half: int) -> None:
    rng = np.random.default_rng(half)
    frames = rng.integers(0, 256, (2 * half + 9, TILE + 5), dtype=np.uint8)
    frames[:, :3] = 255  # the largest possible sums
    frames.setflags(write=False)
    for first in (0, 4):
        out = np.empty((len(frames) - first, frames.shape[1]), np.uint8)
        _running_mean(frames, out, half, first)
        for t, mean in enumerate(out, first):
            window = frames[max(t - half, 0) : t + half].astype(np.int64)
            assert np.array_equal(mean, window.sum(axis=0) // len(window))


def test_division_by_multiplication_is_exact_for_every_sum() -> None:
    for count in range(1, LONGEST + 1):
        share = ((1 << 22) + count - 1) // count
        total = np.arange(255 * count + 1)
        assert np.array_equal(total * share >> 22, total // count)
        assert total[-1] < 1 << 16
        assert total[-1] * share < 1 << 32


def test_an_exposure_that_overflows_the_sums_is_refused() -> None:
    with pytest.raises(BadValue, match="give at most 64"):
        corruptions["frame_average"].function(np.zeros((1, 2, 2, 3), np.uint8), LONGEST // 2 + 1, None)
