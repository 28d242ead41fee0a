"""VSGN's operators by their definitions: one video after another, with all edges and sides of boxes materialised."""

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
def plain_vsgn() -> Iterator[None]:
    """Replace the operators of VSGN by those of this module."""
    with (
        mock.patch.object(EdgeMax, "forward", edge_max),
        mock.patch("jostle.models.detection.blocks.vsgn.nearest", nearest),
        mock.patch.object(boundaries, "_at_three", at_three),
        mock.patch.object(vsgn, "match", match),
    ):
        yield


def edge_max(self: EdgeMax, x: Tensor, neighbours: Tensor) -> Tensor:
    """Return the (B, C, L) maximum over the edges of each step, of the layer's output for both ends of an edge."""
    videos = []
    for steps, indices in zip(x, neighbours, strict=True):
        theirs = steps[:, indices]  # (C, L, k)
        own = steps[:, :, None].expand_as(theirs)
        edges = torch.cat([theirs, own]).permute(1, 2, 0)  # (L, k, 2C)
        videos.append(self.mlp(edges).max(1).values.T)
    return torch.stack(videos)


@torch.no_grad()
def nearest(x: Tensor, count: int, stitching: Stitching) -> Tensor:
    """Return the (B, L, count) nearest steps of each step, by the distances of all pairs.

    In a stitched video the farther half is selected again, from pairs that are not both in its second part.
    """
    videos = []
    for i, steps in enumerate(x.float()):
        squares = steps.square().sum(0)
        distances = squares[:, None] + squares[None] - 2 * (steps.T @ steps)
        indices = distances.topk(count, largest=False).indices
        if stitching.stitched[i]:
            length, near = len(distances), indices[:, : count // 2]
            edge = int(stitching.begin[i]) * length // stitching.length
            masked = distances.clone()
            masked[edge:, edge:] = distances.max() + 1
            masked.scatter_(-1, near, torch.inf)
            indices = torch.cat([near, masked.argsort(dim=-1, stable=True)[:, : count - count // 2]], -1)
        videos.append(indices)
    return torch.stack(videos)


def at_three(layers: nn.Sequential, x: Tensor, place: Tensor) -> Tensor:
    """Return the (B, N) output of a convolution over copies of the three steps of every box."""
    outputs = [layers(steps[:, three].permute(1, 0, 2))[:, 0, 0] for steps, three in zip(x, place, strict=True)]
    return torch.stack(outputs)


@torch.no_grad()
def match(boxes: Tensor, actions: Actions, *, threshold: float, reproduce_bugs: bool = False) -> tuple[Tensor, Tensor]:
    """Return (B, N) whether a box is positive and (B, N) its action, one video and action after another."""
    positive, matched = [], []
    for rows, segments, present in zip(boxes, actions.segments, actions.present, strict=True):
        overlap = torch.full((len(rows), len(segments)), -1.0, device=rows.device)
        for j, (first, last) in enumerate(segments.tolist()):
            if present[j]:
                inter = (rows[:, 1].clamp(max=last) - rows[:, 0].clamp(min=first)).clamp(min=0)
                overlap[:, j] = inter / ((rows[:, 1] - rows[:, 0] + 1) + (last - first) - inter)
        best, action = overlap.max(-1)
        is_positive = best >= threshold
        for j in range(len(segments)):
            most = overlap[:, j].max()
            if present[j] and (reproduce_bugs or most > 0):
                is_positive = is_positive | (overlap[:, j] == most)
        positive.append(is_positive)
        matched.append(action)
    return torch.stack(positive), torch.stack(matched)
