"""Steps of a sequence as the nodes of a graph whose edges join those that are alike, near or far.

Zhao, Thabet, Ghanem: "Video Self-Stitching Graph Network for Temporal Action Localization", ICCV 2021.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.detectors.blocks.stitching import Stitching


class EdgeMax(nn.Module):
    """For each step the greatest answer of its edges, channel by channel; an edge sees both of its ends."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.mlp = nn.Linear(2 * dim, dim)

    def forward(self, x: Tensor, neighbours: Tensor) -> Tensor:
        """(B, C, L) from the steps (B, C, L) and the numbers (B, L, k) of those that each is joined to."""
        batch, dim, length = x.shape
        rows = x.transpose(1, 2)  # (B, L, C)
        # A linear layer of both ends is a sum of two: each is computed once a step, not once an edge.
        theirs, mine = self.mlp.weight[:, :dim], self.mlp.weight[:, dim:]
        told = F.linear(rows, theirs)
        place = neighbours.flatten(1)[..., None].expand(-1, -1, dim)
        told = told.gather(1, place).view(batch, length, -1, dim).amax(2)
        return (told + F.linear(rows, mine, self.mlp.bias)).transpose(1, 2)


class GraphBlock(nn.Module):
    """A convolution over neighbours in time and one over neighbours in the graph, added up; then half as many steps.

    Args:
        neighbours: how many steps each is joined to, itself among them.
    """

    def __init__(self, dim: int, neighbours: int) -> None:
        super().__init__()
        self.neighbours = neighbours
        self.tconv1 = nn.Conv1d(dim, dim, 3, padding=1)
        self.nconv1 = EdgeMax(dim)

    def forward(self, x: Tensor, stitching: Stitching) -> Tensor:
        edges = nearest(x, self.neighbours, stitching)
        return F.max_pool1d(F.relu(self.tconv1(x) + self.nconv1(x, edges)), 2)


@torch.no_grad()
def nearest(x: Tensor, count: int, stitching: Stitching) -> Tensor:
    """(B, L, count) the steps that are most like each step (B, C, L), itself among them.

    In a stitched video half of them are, and of the others none joins two steps of the copy: so scales meet.
    """
    wide = x.float()
    squares = wide.square().sum(1)
    apart = squares[:, :, None] + squares[:, None] - 2 * (wide.transpose(1, 2) @ wide)  # (B, L, L)
    found = apart.topk(count, largest=False).indices
    rows = stitching.stitched.nonzero()[:, 0]
    if not len(rows):
        return found
    apart, length = apart[rows], x.shape[-1]
    most = apart.amax((1, 2), keepdim=True) + 1
    # The place on this level is rounded down, as if in whole numbers.
    edge = stitching.begin[rows] * length // stitching.length
    copied = torch.arange(length, device=x.device) >= edge[:, None]  # (stitched, L)
    apart = torch.where(copied[:, :, None] & copied[:, None], most, apart)
    kept = found[rows, :, : count // 2]
    apart = apart.scatter(-1, kept, torch.inf)
    # A copy may be alone with too few steps of its video: then equals are left, of which the first are taken.
    others = apart.argsort(dim=-1, stable=True)[..., : count - count // 2]
    found[rows] = torch.cat([kept, others], -1)
    return found
