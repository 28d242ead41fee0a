"""Parts of VSGN: graph convolutions over time with edges between similar steps, and anchors with their boxes.

Zhao, Thabet, Ghanem: "Video Self-Stitching Graph Network for Temporal Action Localization", ICCV 2021. A box counts its
last step: it is end - start + 1 long.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.blocks.pyramid import Points
from jostle.models.ordering import lowest


class EdgeMax(nn.Module):
    """Edge convolution: channelwise maximum over the edges of each step."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.mlp = nn.Linear(2 * dim, dim)

    def forward(self, x: Tensor, neighbours: Tensor) -> Tensor:
        """Return (B, C, L) from the steps (B, C, L) and the numbers (B, L, k) of those that each is joined to."""
        batch, dim, length = x.shape
        rows = x.transpose(1, 2)  # (B, L, C)
        # A linear layer of both ends is a sum of two: each is computed once a step, not once an edge.
        theirs, mine = self.mlp.weight[:, :dim], self.mlp.weight[:, dim:]
        edges = F.linear(rows, theirs)
        place = neighbours.flatten(1)[..., None].expand(-1, -1, dim)
        edges = edges.gather(1, place).view(batch, length, -1, dim).amax(2)
        return (edges + F.linear(rows, mine, self.mlp.bias)).transpose(1, 2)


class GraphBlock(nn.Module):
    """Sum of a temporal and a graph convolution, followed by halving in time.

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
    """Return (B, L, count) the steps that are most like each step (B, C, L), itself among them.

    Of equally near ones the first are taken. In a stitched video half of them are the nearest of all, and of the others
    none joins two steps of the copy: so scales meet.
    """
    wide = x.float()
    squares = wide.square().sum(1)
    apart = squares[:, :, None] + squares[:, None] - 2 * (wide.transpose(1, 2) @ wide)  # (B, L, L)
    neighbours = lowest(apart, count)
    rows = stitching.stitched.nonzero()[:, 0]
    if not len(rows):
        return neighbours
    apart, length = apart[rows], x.shape[-1]
    most = apart.amax((1, 2), keepdim=True) + 1
    # The place on this level is rounded down, as if in whole numbers.
    edge = stitching.begin[rows] * length // stitching.length
    copied = torch.arange(length, device=x.device) >= edge[:, None]  # (stitched, L)
    apart = torch.where(copied[:, :, None] & copied[:, None], most, apart)
    half = neighbours[rows, :, : count // 2]
    apart = apart.scatter(-1, half, torch.inf)
    # A copy may be alone with too few steps of its video: then equals are left.
    others = lowest(apart, count - count // 2)
    neighbours[rows] = torch.cat([half, others], -1)
    return neighbours


SHORT = 0.4  # videos up to this share of a window are stitched


@dataclass(frozen=True)
class Stitching:
    """Layout of windows of `length` steps: the video, and for short ones a stretched copy after a gap."""

    length: int  # steps of the window
    gap: int  # empty steps between video and copy
    rows: Tensor  # (B,) steps of each video
    stitched: Tensor  # (B,) which videos have a copy

    @classmethod
    def of(cls, rows: Tensor, length: int, gap: int, *, on: bool) -> Stitching:
        """Return the layout for videos with these numbers of rows; without `on` none has a copy."""
        return cls(length, gap, rows, (rows <= SHORT * length) & on)

    @property
    def begin(self) -> Tensor:
        """First step of each copy, (B,)."""
        return self.rows + self.gap

    @property
    def stretch(self) -> Tensor:
        """Number of steps of each copy, (B,)."""
        return self.length - self.begin

    def fill(self, features: Tensor) -> Tensor:
        """Return (B, C, length) the window, from features (B, C, T) with zeros after each video."""
        window = F.pad(features, (0, self.length - features.shape[-1]))
        if not self.stitched.any():
            return window
        window = window.clone()
        for i in self.stitched.nonzero()[:, 0].tolist():
            rows, begin = int(self.rows[i]), int(self.begin[i])
            copy = F.interpolate(features[i : i + 1, :, :rows], self.length - begin, mode="linear", align_corners=True)
            window[i, :, begin:] = copy[0]
        return window

    def place(self, actions: Actions) -> Actions:
        """Return the actions, and those of the copies, rounded to whole steps as in the original."""
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
        """Map (B, N, 2) boxes of the window to rows of the video; later ones belong to the copy."""
        rows, stretch, begin = (x[:, None, None].to(boxes) for x in (self.rows, self.stretch, self.begin))
        copied = (boxes[..., :1] >= rows) & self.stitched[:, None, None]
        boxes = torch.where(copied, (boxes - begin) / stretch * rows, boxes)
        return boxes.clamp(min=0).minimum(rows - 1)


CENTRE_UNIT, LENGTH_UNIT = 10.0, 5.0  # codes are so many times finer than lengths of the anchor, and than its logarithm
MOST_LOG = math.log(62.5)  # an anchor grows by no more than this


def make_anchors(sizes: Sequence[int], scales: Sequence[float], finest: int) -> Tensor:
    """Return (N, 2) start and end of every anchor, level after level, the finest first; place by place within a level.

    Args:
        sizes: places of each level; neighbours are `finest`, twice as many, ... steps apart.
        scales: lengths of the anchors at a place, in strides of its level.

    >>> make_anchors([2], [1, 1.5], 4).tolist()
    [[0.5, 3.5], [-0.5, 4.5], [4.5, 7.5], [3.5, 8.5]]
    """
    anchors = []
    for level, size in enumerate(sizes):
        stride = finest * 2**level
        for place, scale in itertools.product(range(size), scales):
            centre, half = place * stride + stride / 2, (stride * scale - 1) / 2
            anchors.append((centre - half, centre + half))
    return torch.tensor(anchors)


def anchor_points(sizes: Sequence[int], scales: Sequence[float], finest: int, device: torch.device) -> Points:
    """Return the centres of the anchors, in the order of `make_anchors`."""
    level = torch.cat([torch.full((size * len(scales),), i, device=device) for i, size in enumerate(sizes)])
    stride = finest * (2**level).float()
    place = torch.cat([torch.arange(size, device=device).repeat_interleave(len(scales)) for size in sizes])
    nothing = torch.zeros_like(stride)
    return Points(
        tuple(size * len(scales) for size in sizes), (place + 0.5) * stride, stride, nothing, nothing + torch.inf, level
    )


def decode_boxes(codes: Tensor, anchors: Tensor) -> Tensor:
    """Return (..., N, 2) boxes from codes (shift of the centre, growth) beside the anchors."""
    length = anchors[:, 1] - anchors[:, 0] + 1
    centre = (anchors[:, 0] + anchors[:, 1]) / 2 + codes[..., 0] / CENTRE_UNIT * length
    half = (length * (codes[..., 1] / LENGTH_UNIT).clamp(max=MOST_LOG).exp() - 1) / 2
    return torch.stack([centre - half, centre + half], -1)


GROUPS = 32  # of the norms in the towers
LAYERS = 4  # of a tower


class AnchorHead(nn.Module):
    """Head that predicts class logits and a box for every anchor; all levels share its towers."""

    def __init__(self, dim: int, anchors: int, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs

        def tower() -> nn.Sequential:
            layers = ([nn.Conv1d(dim, dim, 3, padding=1), nn.GroupNorm(GROUPS, dim), nn.ReLU()] for _ in range(LAYERS))
            return nn.Sequential(*(part for layer in layers for part in layer))

        self.cls_tower = tower()
        self.bbox_tower = tower()
        self.cls_logits = nn.Conv1d(dim, anchors * outputs, 3, padding=1)
        self.bbox_pred = nn.Conv1d(dim, anchors * 2, 3, padding=1)

    def forward(self, pyramid: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return (B, N, outputs) logits and (B, N, 2) codes, place by place within a level."""
        logits = [self.cls_logits(self.cls_tower(x)) for x in pyramid]
        codes = [self.bbox_pred(self.bbox_tower(x)) for x in pyramid]
        return _by_anchor(logits, self.outputs), _by_anchor(codes, 2)


def _by_anchor(levels: list[Tensor], width: int) -> Tensor:
    return torch.cat([x.transpose(1, 2).reshape(len(x), -1, width) for x in levels], 1).float()
