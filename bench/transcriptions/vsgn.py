"""VSGN's operators as they are defined: an edge at a time, the sides of every box cut out, a video after another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import torch
from torch import Tensor, nn

from jostle.models.detection import vsgn
from jostle.models.detection.blocks import boundaries
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.blocks.vsgn import EdgeMax, Stitching


@contextmanager
def edge_by_edge() -> Iterator[None]:
    """VSGN computes with what stands below."""
    with (
        mock.patch.object(EdgeMax, "forward", edge_max),
        mock.patch("jostle.models.detection.blocks.vsgn.nearest", nearest),
        mock.patch.object(boundaries, "_at_three", at_three),
        mock.patch.object(vsgn, "match", match),
    ):
        yield


def edge_max(self: EdgeMax, x: Tensor, neighbours: Tensor) -> Tensor:
    """(B, C, L): both ends of every edge side by side through the layer, then the greatest of each step."""
    made = []
    for steps, joined in zip(x, neighbours, strict=True):
        theirs = steps[:, joined]  # (C, L, k)
        mine = steps[:, :, None].expand_as(theirs)
        edges = torch.cat([theirs, mine]).permute(1, 2, 0)  # (L, k, 2C)
        made.append(self.mlp(edges).max(1).values.T)
    return torch.stack(made)


@torch.no_grad()
def nearest(x: Tensor, count: int, stitching: Stitching) -> Tensor:
    """(B, L, count): distances of all pairs of steps; of a stitched video the farther half is chosen once more."""
    made = []
    for i, steps in enumerate(x.float()):
        squares = steps.square().sum(0)
        apart = squares[:, None] + squares[None] - 2 * (steps.T @ steps)
        found = apart.topk(count, largest=False).indices
        if stitching.stitched[i]:
            length, kept = len(apart), found[:, : count // 2]
            edge = int(stitching.begin[i]) * length // stitching.length
            masked = apart.clone()
            masked[edge:, edge:] = apart.max() + 1
            masked.scatter_(-1, kept, torch.inf)
            found = torch.cat([kept, masked.argsort(dim=-1, stable=True)[:, : count - count // 2]], -1)
        made.append(found)
    return torch.stack(made)


def at_three(layers: nn.Sequential, x: Tensor, place: Tensor) -> Tensor:
    """(B, N): the three steps of every box cut out of the sequence, and a convolution over each of these."""
    made = [layers(steps[:, three].permute(1, 0, 2))[:, 0, 0] for steps, three in zip(x, place, strict=True)]
    return torch.stack(made)


@torch.no_grad()
def match(boxes: Tensor, actions: Actions, *, threshold: float, reproduce_bugs: bool = False) -> tuple[Tensor, Tensor]:
    """(B, N) which boxes answer for an action and (B, N) for which, video after video and action after action."""
    yes, which = [], []
    for rows, segments, present in zip(boxes, actions.segments, actions.present, strict=True):
        overlap = torch.full((len(rows), len(segments)), -1.0, device=rows.device)
        for j, (first, last) in enumerate(segments.tolist()):
            if present[j]:
                inter = (rows[:, 1].clamp(max=last) - rows[:, 0].clamp(min=first)).clamp(min=0)
                overlap[:, j] = inter / ((rows[:, 1] - rows[:, 0] + 1) + (last - first) - inter)
        best, action = overlap.max(-1)
        chosen = best >= threshold
        for j in range(len(segments)):
            most = overlap[:, j].max()
            if present[j] and (reproduce_bugs or most > 0):
                chosen = chosen | (overlap[:, j] == most)
        yes.append(chosen)
        which.append(action)
    return torch.stack(yes), torch.stack(which)
