"""The byte median equals the median found by sorting."""

from __future__ import annotations

import numpy as np

from jostle.mending.blank_frames import median


def test_median_equals_sorting() -> None:
    values = np.random.default_rng(0).integers(0, 256, (5, 33, 40, 11), np.uint8)
    values[0] = 255
    values[1, :17] = 0
    assert np.array_equal(median(values), np.sort(values, 1)[:, 16])
