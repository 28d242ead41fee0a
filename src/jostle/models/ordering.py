"""The order of equals: of equal values the one with the lowest index comes first, on every processor.

`topk` of torch leaves it to the device, and a stable sort of everything takes four times as long.
"""

from __future__ import annotations

import torch
from torch import Tensor


def lowest(values: Tensor, count: int) -> Tensor:
    """Return the indices (..., count) of the lowest values (..., N) float32 in rising order; the first of equals first.

    >>> lowest(torch.tensor([2.0, 0.0, 1.0, -0.0, 1.0]), 3).tolist()
    [1, 3, 2]
    """
    near = values.topk(min(count + 1, values.shape[-1]), largest=False)
    indices = near.indices[..., :count]
    tied = (near.values[..., 1:] == near.values[..., :-1]).any(-1)
    if tied.any():
        indices[tied] = _lowest_by_key(values[tied], count)
    return indices


def _lowest_by_key(values: Tensor, count: int) -> Tensor:
    """Return what `lowest` does, by whole numbers of which no two are equal."""
    bits = (values + 0.0).contiguous().view(torch.int32)  # without -0, which equals 0
    rising = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits).long()
    keys = (rising << 32) | torch.arange(values.shape[-1], device=values.device)
    return keys.topk(count, largest=False).values & 0xFFFFFFFF


def highest(values: Tensor, count: int) -> Tensor:
    """Return the indices (..., count) of the highest values (..., N) float32, falling; the first of equals first.

    >>> highest(torch.tensor([2.0, 0.0, 1.0, 1.0]), 3).tolist()
    [0, 2, 3]
    """
    return lowest(-values, count)
