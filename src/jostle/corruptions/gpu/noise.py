"""Noise on a GPU; see `jostle.corruptions.noise`."""

from __future__ import annotations

from functools import lru_cache
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.core.triton_support import EXACT, has_triton
from jostle.corruptions import noise as own
from jostle.corruptions.gpu.contexts import FrameContexts
from jostle.corruptions.gpu.device_tables import device_table
from jostle.corruptions.gpu.streams import keys_on

if has_triton():
    from jostle.corruptions.gpu.noise_program import noise

ROWS = 32  # of frames, for one program: few, so that all of a GPU is busy with few frames
SPAN = 8  # numbers of a row that a thread takes at a time
SLOT_BITS = 6  # of a chance, for shot noise: 64 kB. With 12 photons 1.4 % of slots have several steps, with 250 10.7 %
REAL_BITS = 6  # of a chance as a real number, for gaussian noise: enough for severities 1 to 4; the fifth has 7


def gaussian_noise(frames: Tensor, sigma: float, at: FrameContexts) -> Tensor:
    """Add noise from a table."""
    entries, bits = _gaussian_slots(sigma)
    return _lay_noise("gaussian", frames, at, device_table(entries, frames.device), bits)


def speckle_noise(frames: Tensor, sigma: float, at: FrameContexts) -> Tensor:
    """Multiply by noise from a table."""
    table = device_table(own._speckle_table(sigma), frames.device)
    return _lay_noise("speckle", frames, at, table, own.GAIN_BITS)


def shot_noise(frames: Tensor, photons: float, at: FrameContexts) -> Tensor:
    """Draw from a table for each value of a pixel."""
    return _lay_noise("shot", frames, at, device_table(_shot_slots(photons), frames.device), SLOT_BITS)


def impulse_noise(frames: Tensor, share: float, at: FrameContexts) -> Tensor:
    """Replace values by black or white."""
    half = round(share * 32768)
    return _lay_noise("impulse", frames, at, frames, 0, half, 2 * half)


@lru_cache(1)
def _places() -> npt.NDArray[np.int32]:
    """Return the position of each of 65,536 chances in a row of the table of shot noise."""
    places = np.arange(65536, dtype=np.int32) // (65536 // own.SLICES)
    tail = np.arange(own.TAIL)
    places[: own.TAIL] = own.SLICES + tail
    places[-own.TAIL :] = own.SLICES + own.TAIL + tail
    return places


@lru_cache(16)
def _gaussian_slots(sigma: float) -> tuple[npt.NDArray[np.int32], int]:
    """The table of gaussian noise with few slots, so that the threads of a GPU meet in few lines of its cache.

    A slot holds the chances that are alike in sign, exponent and the first bits behind it as real numbers, once they
    are read as 16 bits with a sign: that makes both tails lie around 0, where real numbers are dense. No slot has more
    than one step, of 1. Its entry and the chance add up to the noise from the 16th bit on: below the step one is
    borrowed from there. Of all that is handed out only these entries, some kilobytes, are ever read.

    Returns:
        The entries, and how many bits behind the exponent they are for.
    """
    above = own._gaussian_table(sigma).astype(np.int32)
    chance = np.arange(-32768, 32768)
    place = chance & 0xFFFF
    noise = np.concatenate([~above[::-1], above])[place]
    real = (chance * 65536).astype(np.float32).view(np.uint32)
    bits = REAL_BITS
    while True:
        slot = real >> (23 - bits)
        starts = np.flatnonzero(np.diff(slot, prepend=slot[0] + 1))
        widths = np.diff(starts, append=len(slot))
        highest = np.repeat(np.maximum.reduceat(noise, starts), widths)
        if (noise >= highest - 1).all():
            break
        bits += 1
    step = np.minimum.reduceat(np.where(noise == highest, place, 65536), starts)
    entries = np.zeros(512 << bits, np.int32)
    entries[slot[starts]] = (highest[starts] << 16) - step
    return entries, bits


@lru_cache(8)
def _shot_slots(photons: float) -> npt.NDArray[np.uint8]:
    """The table of shot noise with few slots a row, so that a fast cache holds it.

    Rows rise with the chance, and most slots have one step at most. They say in 32 bits what is before it, what is
    behind it (from the eighth bit on), and in the highest bits the last chance of the slot that is before it: as many
    bits as say a chance of a slot. A slot with more has all of these set, and the others say where its pieces stand
    behind all slots. Its lowest three bits are at the same time the bits of a chance that its pieces do not tell
    apart: those of a slice, but none in the first and the last slot of a row, where slices are split.
    """
    slots = own._shot_table(photons)[:, _places()].reshape(256, 1 << SLOT_BITS, -1)
    before, behind = slots[..., 0], slots[..., -1]
    same = slots == before[..., None]
    several = ~(same | (slots == behind[..., None])).all(2)
    last = np.where(before == behind, 0, same.sum(2, dtype=np.uint32) - 1)
    entries = before | behind.astype(np.uint32) << 8 | last.astype(np.uint32) << (16 + SLOT_BITS)
    split = np.zeros_like(several)
    split[:, [0, -1]] = several[:, [0, -1]]
    slices, chances = slots[several & ~split][:, :: 65536 // own.SLICES], slots[split]
    gap = np.zeros(4, np.uint8)  # so that places of slices end in the bits 100, and those of chances in 000
    marked = entries.nbytes + len(gap) - (1 << (16 + SLOT_BITS))
    entries[several & ~split] = (marked + np.arange(len(slices)) * slices.shape[1]) % (1 << 32)
    entries[split] = (marked + slices.nbytes + len(gap) + np.arange(len(chances)) * chances.shape[1]) % (1 << 32)
    return np.concatenate([entries.ravel().view(np.uint8), gap, slices.ravel(), gap, chances.ravel()])


def _lay_noise(
    kind: str, frames: Tensor, at: FrameContexts, table: Tensor, bits: int, salt: int = 0, either: int = 0
) -> Tensor:
    """Draw and apply noise in one pass; the program defines the arguments."""
    count, height, width = frames.shape[:3]
    streams, values = count * height, width * 3
    out = torch.empty_like(frames)
    fours = values % 4 == 0 and frames.data_ptr() % 4 == 0
    many = values // 4 if fours else values
    grain = gcd(many, SPAN)
    ways: dict[str, Any] = {"KIND": kind, "BITS": bits, "FOURS": fours, "GRAIN": grain, "ROWS": ROWS, "num_warps": 1}
    arguments = (frames, out, keys_on(frames, at), table, streams, height, many // grain, salt, either)
    noise[(-(-streams // ROWS),)](*arguments, **ways, **EXACT)
    return out
