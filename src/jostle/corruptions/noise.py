"""Noise, drawn for each value of each pixel of each frame (Hendrycks and Dietterich, 2019).

The originals compute in float64 and drop the fraction at the end. Since a pixel is a whole number, dropping the
fraction of pixel + noise equals adding noise whose fraction was dropped; so the noise can be a table of whole
numbers, and one look-up a value is all that is left. Shot noise depends on the pixel and has a table for each of its
256 values. All are indexed by 16 random bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel
from jostle.core.types.clip import Frame
from jostle.corruptions.engine.context import FrameContext
from jostle.corruptions.engine.corruption import corruption
from jostle.corruptions.kernels.filters import rows_of
from jostle.corruptions.kernels.streams import draw_two, pick_folded, start, step, upper_quantiles

Table = npt.NDArray[Any]

# The table of shot noise has 4,096 slices of probability a row; the first and the last are split into 16 again, behind
# the others, so that the rare strong deviations are there as well.
SLICES, TAIL = 4096, 16
GAIN_BITS = 13  # gains up to 4 as 16-bit numbers; the strongest speckle reaches 3.6


@corruption(level="frame", scale=(0.08, 0.12, 0.18, 0.26, 0.38), cites="hendrycks2019")
def gaussian_noise(frame: Frame, sigma: float, at: FrameContext) -> Frame:
    """Zero-mean Gaussian noise of standard deviation `sigma`, as a share of full range."""
    return _noisy(_add, frame, at, _gaussian_table(sigma))


@corruption(level="frame", scale=(60, 25, 12, 5, 3), cites="hendrycks2019")
def shot_noise(frame: Frame, photons: float, at: FrameContext) -> Frame:
    """Poisson noise of a sensor that counts `photons` in white."""
    return _noisy(_look_up, frame, at, _shot_table(photons))


@corruption(level="frame", scale=(0.15, 0.2, 0.35, 0.45, 0.6), cites="hendrycks2019")
def speckle_noise(frame: Frame, sigma: float, at: FrameContext) -> Frame:
    """Gaussian noise of standard deviation `sigma` times the pixel itself."""
    return _noisy(_scale, frame, at, _speckle_table(sigma))


@corruption(level="frame", scale=(0.03, 0.06, 0.09, 0.17, 0.27), cites="hendrycks2019")
def impulse_noise(frame: Frame, share: float, at: FrameContext) -> Frame:
    """Salt and pepper: a `share` of all values becomes 0 or 255, with equal chance."""
    half = round(share * 32768)
    return _noisy(_salt_and_pepper, frame, at, np.uint16(half), np.uint16(2 * half))


def _noisy(draw_noise: Callable[..., None], frame: Frame, at: FrameContext, *settings: Any) -> Frame:
    out = at.canvas(frame)
    draw_noise(rows_of(frame), rows_of(out), *settings, np.uint64(at.key()))
    return out


# Both tables are symmetric about their middle, so the upper half will do, and stays in a faster cache.


@lru_cache(16)
def _gaussian_table(sigma: float) -> Table:
    # More than 255 either way gives black or white as 255 does. Below the middle, rounding down makes n of it -n - 1.
    return np.minimum(np.floor(255 * sigma * upper_quantiles()), 255).astype(np.uint8)


@lru_cache(16)
def _speckle_table(sigma: float) -> Table:
    return (np.round((1 + sigma * upper_quantiles()) * (1 << GAIN_BITS)) - (1 << GAIN_BITS)).astype(np.int16)


@lru_cache(8)
def _shot_table(photons: float) -> Table:
    low = (np.arange(TAIL) + 0.5) / (SLICES * TAIL)
    share = np.concatenate([(np.arange(SLICES) + 0.5) / SLICES, low, 1 - low[::-1]])
    counts = np.stack([_poisson_quantile(value / 255 * photons, share) for value in range(256)])
    return np.clip(counts / photons * 255, 0, 255).astype(np.uint8)


def _poisson_quantile(rate: float, share: Table) -> Table:
    if rate == 0:
        return np.zeros(len(share))
    count = np.arange(int(rate + 12 * rate**0.5 + 24))
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, len(count))))])
    cumulative = np.cumsum(np.exp(count * np.log(rate) - rate - log_factorial))
    return np.searchsorted(cumulative, share).astype(np.float64)


# Kernels work on whole rows; a random word serves four values. What needs no table is done in a loop of its own that
# carries no state, so the compiler does many values at once.


@kernel
def _add(rows: Frame, out: Frame, noise: Table, key: np.uint64) -> None:
    height, width = rows.shape
    words = np.empty((2, (width + 3) // 4), np.uint64)
    chances = words.view(np.uint16)
    added = np.empty(width, np.uint8)
    for y in range(height):
        if y % 2 == 0:
            draw_two(words, key, y)
        chance = chances[y % 2]
        pick_folded(added, chance, noise)
        clean, noisy = rows[y], out[y]
        for x in range(width):
            turned = np.int16(0) if chance[x] >= np.uint16(0x8000) else np.int16(-1)
            value = np.int16(np.int16(clean[x]) + (np.int16(added[x]) ^ turned))
            noisy[x] = np.uint8(min(max(value, np.int16(0)), np.int16(255)))


@kernel
def _scale(rows: Frame, out: Frame, gains: Table, key: np.uint64) -> None:
    height, width = rows.shape
    words = np.empty((2, (width + 3) // 4), np.uint64)
    chances = words.view(np.uint16)
    gain = np.empty(width, np.int16)
    for y in range(height):
        if y % 2 == 0:
            draw_two(words, key, y)
        chance = chances[y % 2]
        pick_folded(gain, chance, gains)
        clean, noisy = rows[y], out[y]
        for x in range(width):
            turned = np.int16(0) if chance[x] >= np.uint16(0x8000) else np.int16(-1)
            factor = np.int16((gain[x] ^ turned) - turned) + np.int16(1 << GAIN_BITS)
            value = np.int32(np.int32(np.int32(clean[x]) * np.int32(factor)) >> np.int32(GAIN_BITS))
            noisy[x] = np.uint8(min(max(value, np.int32(0)), np.int32(255)))


@kernel
def _look_up(rows: Frame, out: Frame, table: Table, key: np.uint64) -> None:
    height, width = rows.shape
    fours = width // 4 * 4
    words = np.empty((width + 3) // 4, np.uint64)
    chance = words.view(np.uint16)
    low = np.uint64(SLICES - 1)
    for y in range(height):
        clean, noisy = rows[y], out[y]
        a, b = start(key, y)
        # Written out: as an inner loop, the compiler turns it into slow gathers.
        for x in range(0, fours, 4):
            word = a + b
            a, b = step(a, b)
            words[x >> 2] = word
            noisy[x] = table[clean[x], (word >> np.uint64(4)) & low]
            noisy[x + 1] = table[clean[x + 1], (word >> np.uint64(20)) & low]
            noisy[x + 2] = table[clean[x + 2], (word >> np.uint64(36)) & low]
            noisy[x + 3] = table[clean[x + 3], word >> np.uint64(52)]
        if fours < width:
            words[fours >> 2] = a + b
            for x in range(fours, width):
                noisy[x] = table[clean[x], chance[x] >> np.uint16(4)]
        # One value in 2,048 lies in the first or last slice. Looking for them afterwards keeps the loop above free of
        # branches, and most rows have none.
        rare = np.int64(0)
        for x in range(width):
            rare += np.int64(np.uint16(chance[x] + np.uint16(TAIL)) < np.uint16(2 * TAIL))
        if rare:
            for x in range(width):
                if chance[x] < TAIL:
                    noisy[x] = table[clean[x], SLICES + chance[x]]
                elif chance[x] >= 65536 - TAIL:
                    noisy[x] = table[clean[x], SLICES + TAIL + (chance[x] & (TAIL - 1))]


@kernel
def _salt_and_pepper(rows: Frame, out: Frame, salt: np.uint16, either: np.uint16, key: np.uint64) -> None:
    height, width = rows.shape
    words = np.empty((2, (width + 3) // 4), np.uint64)
    chances = words.view(np.uint16)
    for y in range(height):
        if y % 2 == 0:
            draw_two(words, key, y)
        chance = chances[y % 2]
        clean, noisy = rows[y], out[y]
        for x in range(width):
            # As masks: a choice between the pixel and a constant is not made for many values at once.
            keep_mask = np.uint8(0) if chance[x] < either else np.uint8(255)
            white = np.uint8(255) if chance[x] < salt else np.uint8(0)
            noisy[x] = (clean[x] & keep_mask) | white
