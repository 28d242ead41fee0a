"""Digital damage on tensors; see `jostle.corruptions.digital`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from jostle.corrupting.scene import Moment
from jostle.corruptions import digital as own
from jostle.corruptions.tensors.holding import held


def pixelate(frames: Tensor, share: float, at: Sequence[Moment]) -> Tensor:
    """Means of cells, rounded after each direction, across first; then each pixel shows its cell."""
    height, width = frames.shape[1:3]
    small = max(int(height * share), 1), max(int(width * share), 1)
    columns, rows = own._cells(width, small[1]), own._cells(height, small[0])
    squeezed = _means(frames, 2, *columns[:2])
    cells = _means(squeezed, 1, *rows[:2])
    return cells[:, held(rows[2], frames.device)][:, :, held(columns[2], frames.device)]


def _means(frames: Tensor, along: int, first: Any, stop: Any) -> Tensor:
    """Of stretches along an axis, rounded to whole levels, halves upwards."""
    lo, hi = held(first, frames.device), held(stop, frames.device)
    shape = [*frames.shape]
    shape[along] += 1
    sums = torch.zeros(shape, dtype=torch.int32, device=frames.device)
    torch.cumsum(frames, along, dtype=torch.int32, out=sums.narrow(along, 1, frames.shape[along]))
    total = sums.index_select(along, hi) - sums.index_select(along, lo)
    count = (hi - lo).to(torch.int32).view([-1 if axis == along else 1 for axis in range(4)])
    return ((2 * total + count) // (2 * count)).to(torch.uint8)
