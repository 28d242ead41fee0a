"""Action boundaries: curves over time, and refinement of box ends by nearby features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.models.detection.blocks.assignment import Actions

REACH = 1.5  # steps before and after an end that its curve is raised for
AROUND = 8  # the sides of an end lie this share of the box's length away from it


class BoundaryCurve(nn.Sequential):
    """Per-step probability from the finest level."""

    def __init__(self, dim: int) -> None:
        super().__init__(nn.Conv1d(dim, dim, 3, padding=1), nn.ReLU(), nn.Conv1d(dim, 1, 1), nn.Sigmoid())

    def over(self, x: Tensor, length: int) -> Tensor:
        """Return (B, length) from (B, C, L)."""
        return F.interpolate(self(x).float(), length, mode="linear", align_corners=True)[:, 0]


class EndShift(nn.Module):
    """Boundary offset, predicted from the steps before, at and after an end."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.start_conv = nn.Sequential(nn.Conv1d(dim, dim, 3), nn.ReLU(), nn.Conv1d(dim, 1, 1))
        self.end_conv = nn.Sequential(nn.Conv1d(dim, dim, 3), nn.ReLU(), nn.Conv1d(dim, 1, 1))

    def forward(self, x: Tensor, boxes: Tensor, length: int) -> Tensor:
        """Return (B, N, 2) the boxes with their ends moved.

        Args:
            x: (B, C, L) the finest level.
            length: steps of the window, on whose grid the boxes are.
        """
        inside = boxes.detach().clamp(0, length - 1)
        side = (inside[..., 1] - inside[..., 0] + 1) / AROUND
        moved = []
        for i, layers in enumerate((self.start_conv, self.end_conv)):
            at = inside[..., i, None] + side[..., None] * torch.arange(-1, 2, device=x.device)  # (B, N, 3)
            place = (at * (x.shape[-1] / length)).trunc().long().clamp(0, x.shape[-1] - 1)
            moved.append(boxes[..., i] + _at_three(layers, x, place))
        return torch.stack(moved, -1)


def _at_three(layers: nn.Sequential, x: Tensor, place: Tensor) -> Tensor:
    """Return (B, N) what the layers say of three steps (B, N, 3) side by side.

    There are far fewer steps than boxes: each tap of the convolution is computed once per step, then looked up.
    """
    first, _, last = layers
    assert isinstance(first, nn.Conv1d)
    hidden = torch.zeros((), device=x.device)
    for tap in range(3):
        rows = F.conv1d(x, first.weight[..., tap, None]).transpose(1, 2)  # (B, L, C)
        hidden = hidden + rows.gather(1, place[..., tap, None].expand(-1, -1, rows.shape[-1]))
    assert first.bias is not None
    output: Tensor = last(F.relu(hidden + first.bias).transpose(1, 2))[:, 0]
    return output.float()


def curve_targets(actions: Actions, length: int) -> Tensor:
    """Return (B, 3, length) 1 where an action goes on, where one starts, and where one ends."""
    steps = torch.arange(length, device=actions.segments.device)
    start, end = (actions.segments[..., i, None] for i in (0, 1))  # (B, M, 1)
    present = actions.present[..., None]
    during = (steps >= start.round()) & (steps <= end.round())
    # A step is raised if more than half of it, from i to i + 1, lies within reach of the end.
    near = [((steps + 1).minimum(at + REACH) - steps.maximum(at - REACH)).clamp(min=0) > 0.5 for at in (start, end)]
    return torch.stack([(x & present).any(1) for x in (during, *near)], 1).float()


def heights(curve: Tensor, at: Tensor) -> Tensor:
    """Return (B, N) the curve (B, T) at places between its steps: the mean of both neighbours."""
    low, high = at.floor().long(), at.ceil().long()
    return (curve.gather(1, low) + curve.gather(1, high)) / 2


def boundary_max_pool(x: Tensor, regions: Tensor, *, reproduce_bugs: bool = False) -> Tensor:
    """Return (B, C, M) the maxima; the first half of the channels looks around starts, the second around ends.

    Args:
        x: (B, C, T).
        regions: (B, M, 4) first and last step around the start, and around the end; cut towards zero, and to the
            sequence. A region that ends before it begins is its first step.
        reproduce_bugs: the gradient as the released program computes it, which takes the number of regions for the
            length of a row: right only where they are equal.
    """
    if not (torch.is_grad_enabled() and x.requires_grad):  # then nobody asks where the maxima stand
        return _maxima(x, regions.trunc().long(), indices=False)[0]
    return _BoundaryMax.apply(x, regions, reproduce_bugs)  # type: ignore[no-any-return, no-untyped-call]


def pool_levels(x: Tensor, levels: Sequence[Tensor], *, reproduce_bugs: bool = False) -> list[Tensor]:
    """Pool the regions (B, M_l, 4) of each level from one table."""
    if reproduce_bugs:  # the fault depends on how many regions there are at a time
        return [boundary_max_pool(x, regions, reproduce_bugs=True) for regions in levels]
    pooled = boundary_max_pool(x, torch.cat(list(levels), 1))
    return list(torch.split(pooled, [regions.shape[1] for regions in levels], -1))


class _BoundaryMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, regions: Tensor, reproduce_bugs: bool) -> Tensor:
        bounds = regions.trunc().long()
        ctx.shape = x.shape
        if reproduce_bugs:
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
        spread = gradient.new_zeros(batch * channels * length)
        rows = spread[: batch * channels * ctx.row].view(batch, channels, ctx.row)
        rows.scatter_add_(-1, index, gradient.contiguous())
        return spread.view(ctx.shape), None, None


def _maxima(x: Tensor, bounds: Tensor, *, indices: bool) -> tuple[Tensor, Tensor | None]:
    """Return (B, C, M) the greatest values, and with `indices` the first index of each."""
    length, half = x.shape[-1], x.shape[1] // 2
    first, last = bounds.clamp(0, length - 1).view(*bounds.shape[:2], 2, 2).unbind(-1)  # (B, M, 2)
    last = torch.maximum(first, last)
    level = (last - first + 1).float().log2().floor().long()  # of the widest stretch that fits
    tables, places = _tables(x, int(level.max()) if level.numel() else 0, indices=indices)
    lookups = torch.cat([level * length + first, level * length + last - 2**level + 1], 1)  # (B, 2 M, 2)
    a, b = _columns(tables, lookups, half)
    if places is None:
        return torch.maximum(a, b), None
    here, there = _columns(places, lookups, half)
    return torch.maximum(a, b), torch.where(a >= b, here, there).long()


def _columns(tables: Tensor, lookups: Tensor, half: int) -> tuple[Tensor, Tensor]:
    """Gather (B, C, M) table columns twice: half of the channels at starts, half at ends."""
    rows = [
        torch.cat([table[:half].index_select(-1, at[:, 0]), table[half:].index_select(-1, at[:, 1])])
        for table, at in zip(tables, lookups, strict=True)
    ]
    left, right = torch.stack(rows).chunk(2, -1)
    return left, right


def _tables(x: Tensor, levels: int, *, indices: bool) -> tuple[Tensor, Tensor | None]:
    """Return (B, C, (levels + 1) T) the greatest of 1, 2, 4, ... steps from each step on, one table after the other."""
    values, width = [x], 1
    places = [torch.arange(x.shape[-1], device=x.device, dtype=torch.int32).expand(x.shape)] if indices else []
    for _ in range(levels):
        last = values[-1]
        near, far = last[..., :-width], last[..., width:]
        # What would reach past the end is never lookups up.
        values.append(torch.cat([torch.maximum(near, far), last[..., -width:]], -1))
        if indices:
            place = places[-1]
            chosen = torch.where(near >= far, place[..., :-width], place[..., width:])
            places.append(torch.cat([chosen, place[..., -width:]], -1))
        width *= 2
    return torch.cat(values, -1), torch.cat(places, -1) if indices else None
