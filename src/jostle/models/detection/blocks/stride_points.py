"""Pyramid levels from the maps of a trunk, and the targets of their points (BasicTAD)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.blocks.convolution import BatchNormedConv, HalvingConv


class Halvings(nn.Module):
    """Pyramid by repeated halving in time, each level averaged over space."""

    def __init__(self, inputs: int, dim: int, levels: int) -> None:
        super().__init__()
        self.count = levels - 1
        for number in range(1, levels):
            # One block a layer, counted: that is how the public tensors are called.
            self.add_module(f"layer{number}", nn.Sequential(HalvingConv(inputs if number == 1 else dim, dim)))

    def forward(self, maps: Tensor) -> list[Tensor]:
        """Return (B, C, t) of each level."""
        levels = [maps]
        for number in range(1, self.count + 1):
            levels.append(self.get_submodule(f"layer{number}")(levels[-1]))
        return [x.mean((-2, -1)) for x in levels]


class TopDown(nn.Module):
    """Feature pyramid network over time (Lin et al., 2017)."""

    def __init__(self, widths: list[int], dim: int) -> None:
        super().__init__()
        self.lateral_convs = nn.ModuleList(BatchNormedConv(width, dim, 1, relu=False) for width in widths)
        self.fpn_convs = nn.ModuleList(BatchNormedConv(dim, dim, 3, relu=False) for _ in widths)

    def forward(self, levels: list[Tensor]) -> list[Tensor]:
        """Return (B, dim, t) of each level."""
        outputs = [conv(x) for conv, x in zip(self.lateral_convs, levels, strict=True)]
        for level in range(len(outputs) - 1, 0, -1):
            outputs[level - 1] = outputs[level - 1] + F.interpolate(outputs[level], size=outputs[level - 1].shape[-1])
        return [conv(x) for conv, x in zip(self.fpn_convs, outputs, strict=True)]


def max_pooled(maps: Tensor, levels: int) -> list[Tensor]:
    """Return (B, C, t) of each level: the mean over places, and maxima of neighbours after it."""
    result = [maps.mean((-2, -1))]
    for _ in range(levels - 1):
        result.append(F.max_pool1d(result[-1], 3, 2, 1))
    return result


# Distances to the far end that a level answers for, in strides: of the finest, of those between, of the coarsest.
FINEST, BETWEEN, COARSEST = (-1.0, 5.0), (2.5, 5.0), (2.5, torch.inf)
BACKGROUND, IGNORED = -1, -2


@dataclass(frozen=True)
class PointAnswers:
    """Targets of the points of a batch.

    Attributes:
        labels: (B, N) class numbers; -1 for background, -2 for points that are passed over.
        offsets: (B, N, 2) distances to start and end in strides; meaningful at positives.
        action: (B, N) the row of the action that they lead to; likewise.
    """

    labels: Tensor
    offsets: Tensor
    action: Tensor

    @property
    def positive(self) -> Tensor:
        """Mask (B, N) of points with an action."""
        return self.labels >= 0

    @property
    def ignored(self) -> Tensor:
        """Mask (B, N) of points that are excluded from the loss."""
        return self.labels == IGNORED


def level_ranges(level: Tensor, levels: int) -> tuple[Tensor, Tensor]:
    """Return (N,) least and greatest distance that points of these levels answer for, in strides."""
    ranges = torch.tensor([FINEST, *([BETWEEN] * (levels - 2)), COARSEST], device=level.device)
    return ranges[level, 0], ranges[level, 1]


@torch.no_grad()
def point_answers(
    position: Tensor,
    stride: Tensor,
    ranges: tuple[Tensor, Tensor],
    actions: Actions,
    *,
    edges: bool,
    implied: tuple[int, int] | None = None,
    reproduce_bugs: bool = False,
) -> PointAnswers:
    """Assign each point the shortest action whose far end is in its range; ambiguous points are ignored.

    Args:
        position: (N,) of the points, in frames.
        stride: (N,) frames a step of their level.
        edges: whether a point on an action's edge lies inside it.
        implied: a class, and one that its actions are annotated as besides: a point inside both is of the first.
        reproduce_bugs: as the released program, whose label is of the shortest action of any range, which need not be
            the one that distances lead to.
    """
    start, end = (actions.segments[:, None, :, i] / stride[:, None] for i in (0, 1))
    at = (position / stride)[:, None]
    distance = torch.stack([at - start, end - at], -1)  # (B, N, M, 2)
    least, far = distance.amin(-1), distance.amax(-1)
    inside = ((least >= 0) if edges else (least > 0)) & actions.present[:, None]
    low, high = (limit[:, None] for limit in ranges)
    mine = inside & (far >= low) & (far <= high)
    length = actions.segments[..., 1] - actions.segments[..., 0]
    nearest = torch.where(mine, length[:, None], torch.inf).argmin(-1, keepdim=True)  # the first of equals
    shortest = torch.where(inside, length[:, None], torch.inf).argmin(-1, keepdim=True)
    offsets = distance.gather(2, nearest[..., None].expand(-1, -1, -1, 2))[:, :, 0]
    classes = actions.labels[:, None].expand_as(inside)
    labels = classes.gather(-1, shortest if reproduce_bugs else nearest)[..., 0]
    if implied is not None:
        first, second = ((inside & (classes == number)).any(-1) for number in implied)
        labels = torch.where(first & second, implied[0], labels)
    assigned = mine.any(-1)
    labels = torch.where(assigned, labels, torch.where(inside.any(-1), IGNORED, BACKGROUND))
    return PointAnswers(labels, offsets, nearest[..., 0])


def without_implied(actions: Actions, implied: tuple[int, int]) -> Actions:
    """Drop actions of the implied class that accompany one of the other class with the same ends."""
    same = (actions.segments[:, 1:] == actions.segments[:, :-1]).all(-1)
    same = same & actions.present[:, 1:] & actions.present[:, :-1]
    before, after = actions.labels[:, :-1], actions.labels[:, 1:]
    present = actions.present.clone()
    present[:, 1:] &= ~(same & (before == implied[0]) & (after == implied[1]))
    present[:, :-1] &= ~(same & (before == implied[1]) & (after == implied[0]))
    return Actions(actions.segments, actions.labels, present)
