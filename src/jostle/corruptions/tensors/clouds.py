"""Plasma clouds of many frames at once; see `jostle.corruptions.kernels.textures`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from jostle.corruptions.tensors.streams import chances


def clouds(side: int, decay: float, keys: Sequence[int], device: torch.device) -> Tensor:
    """(N, side, side) clouds in 0..1 by diamond and square on tori."""
    known = torch.zeros((len(keys), 1, 1), device=device)
    size, row, deviation = side, 0, np.float32(100)
    while size >= 2:
        count = side // size
        spread = np.float32(deviation * deviation)
        unit, away = float(np.float32(spread * np.float32(2.0**-15))), float(spread)
        drawn = chances(keys, range(row, row + 3 * count), count, device).float() * unit - away
        below, right = known.roll(-1, 1), known.roll(-1, 2)
        middle = _mean(known, below, right, below.roll(-1, 2)) + drawn[:, :count]
        across = _mean(middle.roll(1, 1), middle, known, right) + drawn[:, count::2]
        down = _mean(known, below, middle.roll(1, 2), middle) + drawn[:, count + 1 :: 2]
        even = torch.stack([known, across], 3).flatten(2)
        odd = torch.stack([down, middle], 3).flatten(2)
        known = torch.stack([even, odd], 2).flatten(1, 2)
        row += 3 * count
        size //= 2
        deviation = np.float32(deviation / np.float32(decay))
    low, high = known.amin((1, 2), keepdim=True), known.amax((1, 2), keepdim=True)
    return (known - low) / (high - low).clamp_(min=1e-6)


def _mean(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    """Of four, in this order."""
    return ((a + b) + (c + d)) * 0.25
