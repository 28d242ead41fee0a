"""Digital damage on a GPU; see `jostle.corruptions.digital`."""

from __future__ import annotations

import torch
from torch import Tensor

from jostle.core.triton_support import has_triton, strips
from jostle.corruptions import digital as own
from jostle.corruptions.gpu.contexts import FrameContexts
from jostle.corruptions.gpu.device_tables import device_table

if has_triton():
    from jostle.corruptions.gpu.filter_program import coarse


def pixelate(frames: Tensor, share: float, at: FrameContexts) -> Tensor:
    """Average cells, rounded after each direction, across first; each pixel computes the cell it shows."""
    height, width = frames.shape[1:3]
    small = max(int(height * share), 1), max(int(width * share), 1)
    columns, rows = own._cells(width, small[1]), own._cells(height, small[0])
    tables = [device_table(table, frames.device) for table in (*rows, *columns)]
    most = [int((stop - first).max()) for first, stop, _ in (rows, columns)]
    out = torch.empty_like(frames)
    grid, ways = strips(len(frames) * height, width * 3)
    coarse[grid](frames, out, *tables, height, width * 3, *most, **ways)
    return out
