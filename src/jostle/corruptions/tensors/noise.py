"""Noise on tensors; see `jostle.corruptions.noise`."""

from __future__ import annotations

from math import gcd
from typing import Any

import torch
from torch import Tensor

from jostle.corruptions import noise as own
from jostle.corruptions.tensors.holding import held
from jostle.corruptions.tensors.keys import keys_on
from jostle.corruptions.tensors.moments import Moments
from jostle.corruptions.tensors.programs import EXACT, has_triton, runs_on
from jostle.corruptions.tensors.streams import chances

if has_triton():
    from jostle.corruptions.tensors.noise_program import noise

ROWS = 32  # of frames, for one program: few, so that all of a GPU is busy with few frames
SPAN = 8  # numbers of a row that a thread takes at a time


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
    table = held(own._shot_table(photons), frames.device)
    if runs_on(frames):
        return _by_program("shot", frames, at, table, own.SLICES, own.TAIL)
    rows, chance = _drawn(frames, at)
    place = chance >> 4
    place = torch.where(chance < own.TAIL, own.SLICES + chance, place)
    last = own.SLICES + own.TAIL + (chance & (own.TAIL - 1))
    place = torch.where(chance >= 65536 - own.TAIL, last, place)
    return table.flatten()[rows.to(torch.int32) * table.shape[1] + place].view_as(frames)


def impulse_noise(frames: Tensor, share: float, at: Moments) -> Tensor:
    """Black and white."""
    half = round(share * 32768)
    if runs_on(frames):
        return _by_program("impulse", frames, at, frames, half, 2 * half)
    rows, chance = _drawn(frames, at)
    return rows.to(torch.uint8).masked_fill(chance < 2 * half, 0).masked_fill(chance < half, 255).view_as(frames)


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
