"""Noise on tensors; see `jostle.corruptions.noise`."""

from __future__ import annotations

from functools import lru_cache
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.corruptions import noise as own
from jostle.corruptions.tensors.holding import held
from jostle.corruptions.tensors.keys import keys_on
from jostle.corruptions.tensors.moments import Moments
from jostle.corruptions.tensors.streams import chances
from jostle.programs import EXACT, has_triton, runs_on

if has_triton():
    from jostle.corruptions.tensors.noise_program import noise

ROWS = 32  # of frames, for one program: few, so that all of a GPU is busy with few frames
SPAN = 8  # numbers of a row that a thread takes at a time
SLOT_BITS = 6  # of a chance, for shot noise: 64 kB. With 12 photons 1.4 % of slots have several steps, with 250 10.7 %


def gaussian_noise(frames: Tensor, sigma: float, at: Moments) -> Tensor:
    """Numbers from a table, added."""
    table = held(own._gaussian_table(sigma), frames.device)
    if runs_on(frames):
        return _by_program("gaussian", frames, at, table)
    rows, chance = _drawn(frames, at)
    added, turned = _folded(chance, table.to(torch.int16))
    return _bytes(rows + (added ^ turned)).view_as(frames)


def speckle_noise(frames: Tensor, sigma: float, at: Moments) -> Tensor:
    """Numbers from a table, multiplied."""
    table = held(own._speckle_table(sigma), frames.device)
    if runs_on(frames):
        return _by_program("speckle", frames, at, table, own.GAIN_BITS, 1 << own.GAIN_BITS)
    rows, chance = _drawn(frames, at)
    gain, turned = _folded(chance, table)
    factor = ((gain ^ turned) - turned).to(torch.int32) + (1 << own.GAIN_BITS)
    return _bytes((rows.to(torch.int32) * factor) >> own.GAIN_BITS).view_as(frames)


def shot_noise(frames: Tensor, photons: float, at: Moments) -> Tensor:
    """A table for each value of a pixel."""
    if runs_on(frames):
        return _by_program("shot", frames, at, held(_shot_slots(photons), frames.device), SLOT_BITS, own.TAIL)
    table = held(own._shot_table(photons), frames.device)
    rows, chance = _drawn(frames, at)
    return table[rows.to(torch.int32), held(_places(), frames.device)[chance]].view_as(frames)


def impulse_noise(frames: Tensor, share: float, at: Moments) -> Tensor:
    """Black and white."""
    half = round(share * 32768)
    if runs_on(frames):
        return _by_program("impulse", frames, at, frames, half, 2 * half)
    rows, chance = _drawn(frames, at)
    return rows.to(torch.uint8).masked_fill(chance < 2 * half, 0).masked_fill(chance < half, 255).view_as(frames)


@lru_cache(1)
def _places() -> npt.NDArray[np.int32]:
    """Of each of 65,536 chances, where a row of the table of shot noise has it."""
    places = np.arange(65536, dtype=np.int32) // (65536 // own.SLICES)
    tail = np.arange(own.TAIL)
    places[: own.TAIL] = own.SLICES + tail
    places[-own.TAIL :] = own.SLICES + own.TAIL + tail
    return places


@lru_cache(8)
def _shot_slots(photons: float) -> npt.NDArray[np.uint8]:
    """The table of shot noise with few slots a row, so that a fast cache holds it.

    Rows rise with the chance, and most slots have one step at most. They say in 32 bits what is before it, what is
    behind it (from the eighth bit on), and at which chance of the slot it is (from the sixteenth on). A slot with more
    has the highest bit set and says where behind all slots its slices stand, and 16 bytes for those that are split.
    """
    slots = own._shot_table(photons)[:, _places()].reshape(256, 1 << SLOT_BITS, -1)
    before, behind = slots[..., 0], slots[..., -1]
    same = slots == before[..., None]
    entries = before | behind.astype(np.uint32) << 8 | same.sum(2, dtype=np.uint32) << 16
    several = ~(same | (slots == behind[..., None])).all(2)
    split = slots[..., : own.TAIL].copy()
    split[:, -1] = slots[:, -1, -own.TAIL :]
    slices = np.concatenate([slots[..., :: 65536 // own.SLICES], split], 2)[several]
    entries[several] = (1 << 31) + entries.nbytes + np.arange(len(slices)) * slices.shape[1]
    return np.concatenate([entries.ravel().view(np.uint8), slices.ravel()])


def _by_program(kind: str, frames: Tensor, at: Moments, table: Tensor, this: int = 0, that: int = 0) -> Tensor:
    """By a program that draws and lays on in one pass; the two numbers are what it says of the kind."""
    count, height, width = frames.shape[:3]
    streams, values = count * height, width * 3
    out = torch.empty_like(frames)
    fours = values % 4 == 0 and frames.data_ptr() % 4 == 0
    many = values // 4 if fours else values
    grain = gcd(many, SPAN)
    ways: dict[str, Any] = {"KIND": kind, "FOURS": fours, "GRAIN": grain, "ROWS": ROWS, "num_warps": 1}
    given = (frames, out, keys_on(frames, at), table, streams, height, many // grain, this, that)
    noise[(-(-streams // ROWS),)](*given, **ways, **EXACT)
    return out


def _drawn(frames: Tensor, at: Moments) -> tuple[Tensor, Tensor]:
    """(N, H, W * 3) values as int16, and 16 random bits for each."""
    rows = frames.flatten(2).to(torch.int16)
    return rows, chances(keys_on(frames, at), range(rows.shape[1]), rows.shape[2])


def _folded(chance: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """What a symmetric table says, of which the upper half is held, and -1 where that is to be turned round."""
    below = chance < 0x8000
    return table[torch.where(below, chance ^ 0x7FFF, chance) & 0x7FFF], -below.to(torch.int16)


def _bytes(values: Tensor) -> Tensor:
    return values.clamp_(0, 255).to(torch.uint8)
