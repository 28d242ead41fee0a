"""Noise on tensors; see `jostle.corruptions.noise`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from jostle.corrupting.scene import Moment
from jostle.corruptions import noise as own
from jostle.corruptions.tensors.holding import held
from jostle.corruptions.tensors.streams import chances


def gaussian_noise(frames: Tensor, sigma: float, at: Sequence[Moment]) -> Tensor:
    """Numbers from a table, added."""
    rows, chance = _drawn(frames, at)
    added, turned = _folded(chance, held(own._gaussian_table(sigma), frames.device).to(torch.int16))
    return _bytes(rows + (added ^ turned)).view_as(frames)


def speckle_noise(frames: Tensor, sigma: float, at: Sequence[Moment]) -> Tensor:
    """Numbers from a table, multiplied."""
    rows, chance = _drawn(frames, at)
    gain, turned = _folded(chance, held(own._speckle_table(sigma), frames.device))
    factor = ((gain ^ turned) - turned).to(torch.int32) + (1 << own.GAIN_BITS)
    return _bytes((rows.to(torch.int32) * factor) >> own.GAIN_BITS).view_as(frames)


def shot_noise(frames: Tensor, photons: float, at: Sequence[Moment]) -> Tensor:
    """A table for each value of a pixel."""
    rows, chance = _drawn(frames, at)
    table = held(own._shot_table(photons), frames.device)
    place = chance >> 4
    place = torch.where(chance < own.TAIL, own.SLICES + chance, place)
    last = own.SLICES + own.TAIL + (chance & (own.TAIL - 1))
    place = torch.where(chance >= 65536 - own.TAIL, last, place)
    return table.flatten()[rows.to(torch.int32) * table.shape[1] + place].view_as(frames)


def impulse_noise(frames: Tensor, share: float, at: Sequence[Moment]) -> Tensor:
    """Black and white."""
    rows, chance = _drawn(frames, at)
    half = round(share * 32768)
    return rows.to(torch.uint8).masked_fill(chance < 2 * half, 0).masked_fill(chance < half, 255).view_as(frames)


def _drawn(frames: Tensor, at: Sequence[Moment]) -> tuple[Tensor, Tensor]:
    """(N, H, W * 3) values as int16, and 16 random bits for each."""
    rows = frames.flatten(2).to(torch.int16)
    return rows, chances([moment.key() for moment in at], range(rows.shape[1]), rows.shape[2], frames.device)


def _folded(chance: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """What a symmetric table says, of which the upper half is held, and -1 where that is to be turned round."""
    below = chance < 0x8000
    return table[torch.where(below, chance ^ 0x7FFF, chance) & 0x7FFF], -below.to(torch.int16)


def _bytes(values: Tensor) -> Tensor:
    return values.clamp_(0, 255).to(torch.uint8)
