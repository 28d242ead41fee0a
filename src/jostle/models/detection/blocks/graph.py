"""Steps of a sequence as the nodes of a graph whose edges join those that are alike, near or far.

Zhao, Thabet, Ghanem: "Video Self-Stitching Graph Network for Temporal Action Localization", ICCV 2021.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.models.detection.blocks.assignment import Actions


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


SHORT = 0.4  # videos up to this share of a window are stitched


@dataclass(frozen=True)
class Stitching:
    """What stands where in a window of `length` steps: the video, and of short ones after a gap a stretched copy.

    Attributes:
        length: steps of the window.
        gap: empty steps between video and copy.
        rows: (B,) steps of each video.
        stitched: (B,) which videos have a copy.
    """

    length: int
    gap: int
    rows: Tensor
    stitched: Tensor

    @classmethod
    def of(cls, rows: Tensor, length: int, gap: int, *, on: bool) -> Stitching:
        """Of videos of so many rows; without `on` none has a copy."""
        return cls(length, gap, rows, (rows <= SHORT * length) & on)

    @property
    def begin(self) -> Tensor:
        """(B,) where the copy begins."""
        return self.rows + self.gap

    @property
    def stretch(self) -> Tensor:
        """(B,) steps of the copy."""
        return self.length - self.begin

    def fill(self, features: Tensor) -> Tensor:
        """(B, C, length) the window, from features (B, C, T) with zeros after each video."""
        made = F.pad(features, (0, self.length - features.shape[-1]))
        if not self.stitched.any():
            return made
        made = made.clone()
        for i in self.stitched.nonzero()[:, 0].tolist():
            rows, begin = int(self.rows[i]), int(self.begin[i])
            copy = F.interpolate(features[i : i + 1, :, :rows], self.length - begin, mode="linear", align_corners=True)
            made[i, :, begin:] = copy[0]
        return made

    def place(self, actions: Actions) -> Actions:
        """The actions, and those of the copies, rounded to whole steps as in the original."""
        whole = replace(actions, segments=actions.segments.round())
        if not self.stitched.any():
            return whole
        rows, stretch, begin = (x[:, None, None] for x in (self.rows, self.stretch, self.begin))
        copies = (actions.segments / rows * stretch).round() + begin
        present = actions.present & self.stitched[:, None]
        return Actions(
            torch.cat([whole.segments, copies], 1),
            torch.cat([actions.labels, actions.labels], 1),
            torch.cat([actions.present, present], 1),
        )

    def back(self, boxes: Tensor) -> Tensor:
        """(B, N, 2) boxes of the window on the rows of the video, inside it; what begins after it is the copy's."""
        rows, stretch, begin = (x[:, None, None].to(boxes) for x in (self.rows, self.stretch, self.begin))
        copied = (boxes[..., :1] >= rows) & self.stitched[:, None, None]
        boxes = torch.where(copied, (boxes - begin) / stretch * rows, boxes)
        return boxes.clamp(min=0).minimum(rows - 1)
