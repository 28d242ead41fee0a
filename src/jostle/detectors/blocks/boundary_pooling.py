"""Boundary max pooling: of each segment the greatest value around its start, and the greatest around its end.

Lin, Xu, Luo, et al.: "Learning Salient Boundary Feature for Anchor-free Temporal Action Localization", CVPR 2021. The
greatest value of any stretch is that of two stretches of one power of two, which overlap: so all regions are looked up
in a few tables, however long they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def boundary_max_pool(x: Tensor, regions: Tensor, *, released_faults: bool = False) -> Tensor:
    """(B, C, M) the maxima; the first half of the channels looks around starts, the second around ends.

    Args:
        x: (B, C, T).
        regions: (B, M, 4) first and last step around the start, and around the end; cut towards zero, and to the
            sequence. A region that ends before it begins is its first step.
        released_faults: the gradient as the released program computes it, which takes the number of regions for the
            length of a row: right only where they are equal.
    """
    if not (torch.is_grad_enabled() and x.requires_grad):  # then nobody asks where the maxima stand
        return _maxima(x, regions.trunc().long(), indices=False)[0]
    return _BoundaryMax.apply(x, regions, released_faults)  # type: ignore[no-any-return, no-untyped-call]


def pool_levels(x: Tensor, levels: Sequence[Tensor], *, released_faults: bool = False) -> list[Tensor]:
    """What is pooled for the regions (B, M_l, 4) of each level, from one table."""
    if released_faults:  # the fault depends on how many regions there are at a time
        return [boundary_max_pool(x, regions, released_faults=True) for regions in levels]
    pooled = boundary_max_pool(x, torch.cat(list(levels), 1))
    return list(torch.split(pooled, [regions.shape[1] for regions in levels], -1))


class _BoundaryMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, regions: Tensor, released_faults: bool) -> Tensor:
        bounds = regions.trunc().long()
        ctx.shape = x.shape
        if released_faults:
            batch, channels, _ = x.shape
            count = regions.shape[1]
            misread = x.flatten()[: batch * channels * count].view(batch, channels, count)
            _, index = _maxima(misread, bounds, indices=True)
            ctx.save_for_backward(index)
            ctx.row = count
            return _maxima(x, bounds, indices=False)[0]
        values, index = _maxima(x, bounds, indices=True)
        ctx.save_for_backward(index)
        ctx.row = x.shape[-1]
        return values

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (index,) = ctx.saved_tensors
        gradient = gradients[0]
        batch, channels, length = ctx.shape
        made = gradient.new_zeros(batch * channels * length)
        rows = made[: batch * channels * ctx.row].view(batch, channels, ctx.row)
        rows.scatter_add_(-1, index, gradient.contiguous())
        return made.view(ctx.shape), None, None


def _maxima(x: Tensor, bounds: Tensor, *, indices: bool) -> tuple[Tensor, Tensor | None]:
    """(B, C, M) the greatest values, and where each first stands if `indices` are asked for."""
    length, half = x.shape[-1], x.shape[1] // 2
    first, last = bounds.clamp(0, length - 1).view(*bounds.shape[:2], 2, 2).unbind(-1)  # (B, M, 2)
    last = torch.maximum(first, last)
    level = (last - first + 1).float().log2().floor().long()  # of the widest stretch that fits
    tables, places = _tables(x, int(level.max()) if level.numel() else 0, indices=indices)
    looked = torch.cat([level * length + first, level * length + last - 2**level + 1], 1)  # (B, 2 M, 2)
    a, b = _columns(tables, looked, half)
    if places is None:
        return torch.maximum(a, b), None
    here, there = _columns(places, looked, half)
    return torch.maximum(a, b), torch.where(a >= b, here, there).long()


def _columns(tables: Tensor, looked: Tensor, half: int) -> tuple[Tensor, Tensor]:
    """Two times (B, C, M) columns of the tables: the first half of the channels looks at starts, the other at ends."""
    rows = [
        torch.cat([table[:half].index_select(-1, at[:, 0]), table[half:].index_select(-1, at[:, 1])])
        for table, at in zip(tables, looked, strict=True)
    ]
    left, right = torch.stack(rows).chunk(2, -1)
    return left, right


def _tables(x: Tensor, levels: int, *, indices: bool) -> tuple[Tensor, Tensor | None]:
    """(B, C, (levels + 1) T) the greatest of 1, 2, 4, ... steps from each step on, one table after the other."""
    values, width = [x], 1
    places = [torch.arange(x.shape[-1], device=x.device, dtype=torch.int32).expand(x.shape)] if indices else []
    for _ in range(levels):
        last = values[-1]
        near, far = last[..., :-width], last[..., width:]
        # What would reach past the end is never looked up.
        values.append(torch.cat([torch.maximum(near, far), last[..., -width:]], -1))
        if indices:
            place = places[-1]
            chosen = torch.where(near >= far, place[..., :-width], place[..., width:])
            places.append(torch.cat([chosen, place[..., -width:]], -1))
        width *= 2
    return torch.cat(values, -1), torch.cat(places, -1) if indices else None
