"""Plasma clouds of many frames at once; see `jostle.corruptions.kernels.textures`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from jostle.core.triton import EXACT, has_triton
from jostle.corruptions.gpu.streams import chances, words_of

if has_triton():
    from jostle.corruptions.gpu.weather_program import halve

POINTS = 256  # of a cloud, for one program


def clouds(side: int, decay: float, keys: Tensor) -> Tensor:
    """Return (N, side, side) clouds in 0..1 by diamond-square on tori."""
    known = torch.zeros((len(keys), 1, 1), device=keys.device)
    for size, row, deviation in _steps(side, decay):
        count = side // size
        unit, away = _spread(deviation)
        drawn = chances(keys, range(row, row + 3 * count), count).float() * unit - away
        below, right = known.roll(-1, 1), known.roll(-1, 2)
        middle = _mean(known, below, right, below.roll(-1, 2)) + drawn[:, :count]
        across = _mean(middle.roll(1, 1), middle, known, right) + drawn[:, count::2]
        down = _mean(known, below, middle.roll(1, 2), middle) + drawn[:, count + 1 :: 2]
        even = torch.stack([known, across], 3).flatten(2)
        odd = torch.stack([down, middle], 3).flatten(2)
        known = torch.stack([even, odd], 2).flatten(1, 2)
    low, high = known.amin((1, 2), keepdim=True), known.amax((1, 2), keepdim=True)
    return (known - low) / (high - low).clamp_(min=1e-6)


def raw_clouds(side: int, decay: float, keys: Tensor) -> Tensor:
    """Return clouds by Triton programs, before they are scaled to 0..1."""
    rows = 3 * (side - 1)
    words = words_of(keys, range(rows), side // 2)
    known = torch.zeros((len(keys), 1, 1), device=keys.device)
    for size, row, deviation in _steps(side, decay):
        count = side // size
        unit, away = _spread(deviation)
        finer = torch.empty((len(keys), 2 * count, 2 * count), device=keys.device)
        grid = (len(keys), -(-count * count // POINTS))
        halve[grid](known, finer, words, words.shape[1], rows, row, count, unit, away, SIZE=POINTS, **EXACT)
        known = finer
    return known


def _steps(side: int, decay: float) -> Iterator[tuple[int, int, np.float32]]:
    """Yield the distance of known points, the first stream to draw from, and the deviation."""
    size, row, deviation = side, 0, np.float32(100)
    while size >= 2:
        yield size, row, deviation
        row += 3 * (side // size)
        size //= 2
        deviation = np.float32(deviation / np.float32(decay))


def _spread(deviation: np.float32) -> tuple[float, float]:
    """Return the factor of 16 random bits, and what is subtracted."""
    spread = np.float32(deviation * deviation)
    return float(np.float32(spread * np.float32(2.0**-15))), float(spread)


def _mean(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    """Return the mean of four, added in this order."""
    return ((a + b) + (c + d)) * 0.25
