"""Compact tables of Gaussian noise give the values of the full table."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from jostle.corruptions.engine.corruption import corruptions
from jostle.corruptions.engine.spec import profiles
from jostle.corruptions.gpu.noise import REAL_BITS, _gaussian_slots
from jostle.corruptions.noise import _gaussian_table

OTHERS = [entry for table in profiles.values() for entry in table.entries.values()]
OTHERS = [entry for entry in OTHERS if entry.corruption == "gaussian_noise"]
SIGMAS = {*corruptions["gaussian_noise"].scale, *(sigma for entry in OTHERS for sigma in entry.values)}


@pytest.mark.parametrize("sigma", sorted({*SIGMAS, 0.001, 0.7, 3.0}))
def test_slots_equal_the_full_table(sigma: float) -> None:
    chance = np.arange(65536)
    below = chance < 0x8000
    above = _gaussian_table(sigma).astype(np.int64)[np.where(below, chance ^ 0x7FFF, chance) & 0x7FFF]
    entries, bits = _gaussian_slots(sigma)
    real = (chance << 16).astype(np.uint32).view(np.int32).astype(np.float32)
    values = entries[real.view(np.uint32) >> (23 - bits)].astype(np.int64) + chance
    assert np.array_equal(values >> 16, np.where(below, ~above, above))
    assert bits <= REAL_BITS + 1 or sigma not in SIGMAS  # otherwise it saves little
