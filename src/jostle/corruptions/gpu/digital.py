"""Digital damage on tensors; see `jostle.corruptions.digital`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from jostle.core.triton import has_triton, runs_on, strips
from jostle.corruptions import digital as own
from jostle.corruptions.gpu.contexts import FrameContexts
from jostle.corruptions.gpu.device_tables import device_table

if has_triton():
    from jostle.corruptions.gpu.filter_program import coarse


def pixelate(frames: Tensor, share: float, at: FrameContexts) -> Tensor:
    """Average cells, rounded after each direction, across first; then each pixel shows its cell."""
    height, width = frames.shape[1:3]
    small = max(int(height * share), 1), max(int(width * share), 1)
    columns, rows = own._cells(width, small[1]), own._cells(height, small[0])
    if runs_on(frames):
        return _by_program(frames, rows, columns)
    squeezed = _means(frames, 2, *columns[:2])
    cells = _means(squeezed, 1, *rows[:2])
    return cells[:, device_table(rows[2], frames.device)][:, :, device_table(columns[2], frames.device)]


def _by_program(frames: Tensor, rows: tuple[Any, Any, Any], columns: tuple[Any, Any, Any]) -> Tensor:
    """Pixelate by a Triton program, in which each pixel computes the cell it shows."""
    height, values = frames.shape[1], frames.shape[2] * 3
    tables = [device_table(table, frames.device) for table in (*rows, *columns)]
    most = [int((stop - first).max()) for first, stop, _ in (rows, columns)]
    out = torch.empty_like(frames)
    grid, ways = strips(len(frames) * height, values)
    coarse[grid](frames, out, *tables, height, values, *most, **ways)
    return out


def _means(frames: Tensor, along: int, first: Any, stop: Any) -> Tensor:
    """Return the means of cells along an axis, rounded to whole levels, halves upwards."""
    lo, hi = device_table(first, frames.device), device_table(stop, frames.device)
    shape = [*frames.shape]
    shape[along] += 1
    sums = torch.zeros(shape, dtype=torch.int32, device=frames.device)
    torch.cumsum(frames, along, dtype=torch.int32, out=sums.narrow(along, 1, frames.shape[along]))
    total = sums.index_select(along, hi) - sums.index_select(along, lo)
    count = (hi - lo).to(torch.int32).view([-1 if axis == along else 1 for axis in range(4)])
    return ((2 * total + count) // (2 * count)).to(torch.uint8)
