"""Compact tables of shot noise give the values of the full table."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from jostle.corruptions.engine.corruption import corruptions
from jostle.corruptions.engine.spec import profiles
from jostle.corruptions.gpu.noise import SLOT_BITS, _shot_slots
from jostle.corruptions.noise import SLICES, TAIL, _shot_table

OTHERS = [entry for table in profiles.values() for entry in table.entries.values() if entry.corruption == "shot_noise"]
PHOTONS = {*corruptions["shot_noise"].scale, *(photons for entry in OTHERS for photons in entry.values), 0.7, 1000}


@pytest.mark.parametrize("photons", sorted(PHOTONS))
def test_slots_equal_the_full_table(photons: float) -> None:
    table, chance = _shot_table(photons), np.arange(65536)
    slots = _shot_slots(photons)
    entries = slots[: 1024 << SLOT_BITS].view(np.uint32).reshape(256, -1)
    offset = chance & ((65536 >> SLOT_BITS) - 1)
    marked = (1 << 32) - (1 << (16 + SLOT_BITS))
    count = 0
    for value in range(256):  # a row at a time stays in the processor's cache
        expected = table[value, chance >> 4]
        expected[:TAIL] = table[value, SLICES : SLICES + TAIL]
        expected[-TAIL:] = table[value, SLICES + TAIL :]
        entry = entries[value, chance >> (16 - SLOT_BITS)]
        values = np.where(offset <= entry >> (16 + SLOT_BITS), entry, entry >> 8) & 0xFF
        several = entry >= marked
        pieces = entry[several].astype(np.int64) - marked + (offset[several] >> (entry[several] & 7))
        values[several] = slots[pieces]
        assert np.array_equal(values, expected), f"value {value}"
        count += np.count_nonzero(several)
    assert photons > 250 or count < 0.15 * 256 * 65536  # otherwise it saves little
