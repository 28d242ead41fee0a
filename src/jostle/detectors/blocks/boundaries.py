"""Where actions begin and end: a curve over time, and ends of boxes moved by what is seen around them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.detectors.blocks.assignment import Actions

REACH = 1.5  # steps before and after an end that its curve is raised for
AROUND = 8  # the sides of an end lie this share of the box's length away from it


class Curve(nn.Sequential):
    """A probability for every step, from the finest level."""

    def __init__(self, dim: int) -> None:
        super().__init__(nn.Conv1d(dim, dim, 3, padding=1), nn.ReLU(), nn.Conv1d(dim, 1, 1), nn.Sigmoid())

    def over(self, x: Tensor, length: int) -> Tensor:
        """(B, length) from (B, C, L)."""
        return F.interpolate(self(x).float(), length, mode="linear", align_corners=True)[:, 0]


class EndShift(nn.Module):
    """How far to move an end, from the steps a little before it, at it, and a little after it."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.start_conv = nn.Sequential(nn.Conv1d(dim, dim, 3), nn.ReLU(), nn.Conv1d(dim, 1, 1))
        self.end_conv = nn.Sequential(nn.Conv1d(dim, dim, 3), nn.ReLU(), nn.Conv1d(dim, 1, 1))

    def forward(self, x: Tensor, boxes: Tensor, length: int) -> Tensor:
        """(B, N, 2) the boxes with their ends moved.

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
    """(B, N) what the layers say of three steps (B, N, 3) side by side.

    There are far fewer steps than boxes: each tap of the convolution is computed once a step, and looked up.
    """
    first, _, last = layers
    assert isinstance(first, nn.Conv1d)
    told = torch.zeros((), device=x.device)
    for tap in range(3):
        rows = F.conv1d(x, first.weight[..., tap, None]).transpose(1, 2)  # (B, L, C)
        told = told + rows.gather(1, place[..., tap, None].expand(-1, -1, rows.shape[-1]))
    assert first.bias is not None
    made: Tensor = last(F.relu(told + first.bias).transpose(1, 2))[:, 0]
    return made.float()


def curve_targets(actions: Actions, length: int) -> Tensor:
    """(B, 3, length) 1 where an action goes on, where one starts, and where one ends."""
    steps = torch.arange(length, device=actions.segments.device)
    start, end = (actions.segments[..., i, None] for i in (0, 1))  # (B, M, 1)
    present = actions.present[..., None]
    during = (steps >= start.round()) & (steps <= end.round())
    # A step is raised if more than half of it, from i to i + 1, lies within reach of the end.
    near = [((steps + 1).minimum(at + REACH) - steps.maximum(at - REACH)).clamp(min=0) > 0.5 for at in (start, end)]
    return torch.stack([(x & present).any(1) for x in (during, *near)], 1).float()


def heights(curve: Tensor, at: Tensor) -> Tensor:
    """(B, N) the curve (B, T) at places between its steps: the mean of both neighbours."""
    low, high = at.floor().long(), at.ceil().long()
    return (curve.gather(1, low) + curve.gather(1, high)) / 2
