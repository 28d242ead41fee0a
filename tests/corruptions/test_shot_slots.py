"""Shot noise by few slots a row gives what its whole table says."""

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
def test_slots_say_what_the_table_says(photons: float) -> None:
    table, chance = _shot_table(photons), np.arange(65536)
    wanted = table[:, chance >> 4]
    wanted[:, :TAIL] = table[:, SLICES : SLICES + TAIL]
    wanted[:, -TAIL:] = table[:, SLICES + TAIL :]
    slots = _shot_slots(photons)
    entry = slots[: 1024 << SLOT_BITS].view(np.uint32).reshape(256, -1)[:, chance >> (16 - SLOT_BITS)]
    place = chance & ((65536 >> SLOT_BITS) - 1)
    found = np.where(place <= entry >> (16 + SLOT_BITS), entry, entry >> 8) & 0xFF
    marked = (1 << 32) - (1 << (16 + SLOT_BITS))
    several = entry >= marked
    pieces = entry.astype(np.int64) - marked + (place >> (entry & 7))
    found[several] = slots[pieces[several]]
    assert np.array_equal(found, wanted)
    assert photons > 250 or np.count_nonzero(several) < 0.15 * several.size  # or it is of little use
