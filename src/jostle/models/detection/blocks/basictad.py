"""Parts of BasicTAD: pyramid levels, targets of points and anchors, heads and losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.models.detection.blocks.assignment import Actions, centre_distance_iou, focal
from jostle.models.detection.blocks.convolution import (
    DeformableConv,
    HalvingConv,
    LearnedScaleVector,
    batch_normed,
    group_normed,
)


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
        self.lateral_convs = nn.ModuleList(batch_normed(width, dim, 1, relu=False) for width in widths)
        self.fpn_convs = nn.ModuleList(batch_normed(dim, dim, 3, relu=False) for _ in widths)

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
    """Targets of the points of a batch."""

    labels: Tensor  # (B, N) class numbers; -1 for background, -2 for points that are passed over
    offsets: Tensor  # (B, N, 2) distances to start and end in strides; meaningful at positives
    action: Tensor  # (B, N) the row of the action that they lead to; likewise

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


OCTAVE = 2.0  # strides that the shortest anchor of a step is long; the longest falls just short of twice that
AT_A_STEP = 5
POSITIVE, NEGATIVE = 0.6, 0.4  # IoU from which an anchor answers for an action, and below which for none


def make_anchors(sizes: Sequence[int], finest: int) -> Tensor:
    """Return the (N, 2) start and end of every anchor in frames, by level, step and length.

    Args:
        sizes: steps of each level; neighbours are `finest`, twice as many, ... frames apart.

    >>> make_anchors([2], 1)[[0, 5]].tolist()
    [[-1.0, 1.0], [0.0, 2.0]]
    """
    half = OCTAVE / 2 * 2 ** (torch.arange(AT_A_STEP, dtype=torch.float64) / AT_A_STEP)
    anchors = []
    for level, size in enumerate(sizes):
        stride = finest * 2**level
        centre = torch.arange(size, dtype=torch.float64)[:, None] * stride
        anchors.append(torch.stack([centre - half * stride, centre + half * stride], -1).reshape(-1, 2))
    return torch.cat(anchors).float()


def decode_segments(codes: Tensor, anchors: Tensor) -> Tensor:
    """Decode (..., N, 2) segments from codes (shift in anchor lengths, log growth)."""
    length = anchors[:, 1] - anchors[:, 0]
    centre = (anchors[:, 0] + anchors[:, 1]) / 2 + codes[..., 0] * length
    half = length * codes[..., 1].exp() / 2
    return torch.stack([centre - half, centre + half], -1)


def overlaps(anchors: Tensor, actions: Actions) -> Tensor:
    """Return (B, N, M) IoU of anchors and actions; -1 for absent actions."""
    start, end = (anchors[:, i, None] for i in (0, 1))
    first, last = (actions.segments[:, None, :, i] for i in (0, 1))
    inter = (torch.minimum(end, last) - torch.maximum(start, first)).clamp(min=0)
    union = (end - start) + (last - first) - inter
    return (inter / union.clamp(min=1e-6)).masked_fill(~actions.present[:, None], -1.0)


@torch.no_grad()
def match_anchors(anchors: Tensor, actions: Actions) -> tuple[Tensor, Tensor]:
    """Return (B, N) the index of each anchor's action, -1 for none, and (B, N) whether it is ignored.

    An anchor answers for the action that it overlaps most, by `POSITIVE` at least. Then each action in its turn takes
    the anchors that overlap it most of all, by however little.
    """
    iou = overlaps(anchors, actions)
    best, action = iou.max(-1)
    number = torch.where(best >= POSITIVE, action, -1)
    ignored = (best >= NEGATIVE) & (best < POSITIVE)
    most = iou.amax(1, keepdim=True)  # (B, 1, M) of each action
    chosen = (iou == most) & (most > 0)
    later = torch.arange(iou.shape[-1], device=iou.device).expand_as(iou).masked_fill(~chosen, -1).amax(-1)
    claimed = later >= 0
    return torch.where(claimed, later, number), ignored & ~claimed


LAYERS = 4  # of a tower
PRIOR = 0.01  # probability with which every class starts
SPREAD = 0.01  # of the weights that a head starts with


class AnchorTowers(nn.Module):
    """Head that predicts class logits and a code for every anchor; all levels share towers and norms."""

    def __init__(self, inputs: int, dim: int, classes: int, levels: int) -> None:
        super().__init__()
        widths = [inputs, *([dim] * (LAYERS - 1))]
        self.classes = classes
        self.cls_convs = nn.Sequential(*(batch_normed(width, dim, 3, relu=True) for width in widths))
        self.reg_convs = nn.Sequential(*(batch_normed(width, dim, 3, relu=True) for width in widths))
        self.retina_cls = nn.Conv1d(dim, AT_A_STEP * classes, 3, padding=1)
        self.retina_reg = nn.Conv1d(dim, AT_A_STEP * 2, 3, padding=1)
        _start(self, self.retina_cls)

    def forward(self, pyramid: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return (B, N, classes) logits and (B, N, 2) codes, step by step within a level."""
        logits, codes = [], []
        for x in pyramid:
            logits.append(self.retina_cls(self.cls_convs(x)))
            codes.append(self.retina_reg(self.reg_convs(x)))
        return _by_row(logits, self.classes), _by_row(codes, 2)


class NormedPointTowers(nn.Module):
    """Head that predicts class logits and distances in strides for every point."""

    def __init__(self, inputs: int, dim: int, classes: int, levels: int) -> None:
        super().__init__()
        widths = [inputs, *([dim] * (LAYERS - 1))]
        self.scales = nn.ModuleList(LearnedScaleVector() for _ in range(levels))
        self.cls_convs = nn.Sequential(*(group_normed(width, dim) for width in widths))
        self.reg_convs = nn.Sequential(*(group_normed(width, dim) for width in widths))
        self.fcos_cls = nn.Conv1d(dim, classes, 3, padding=1)
        self.fcos_reg = nn.Conv1d(dim, 2, 3, padding=1)
        _start(self, self.fcos_cls)

    def forward(self, pyramid: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return (B, N, classes) logits and (B, N, 2) distances."""
        logits = [self.fcos_cls(self.cls_convs(x)) for x in pyramid]
        offsets = [scale(self.fcos_reg(self.reg_convs(x))) for scale, x in zip(self.scales, pyramid, strict=True)]
        return _by_row(logits, self.fcos_cls.out_channels), _by_row(offsets, 2).exp()


class DeformablePointTowers(nn.Module):
    """Head that predicts logits, background first, and distances in strides, without norms."""

    def __init__(self, inputs: int, dim: int, classes: int, levels: int) -> None:
        super().__init__()

        def tower() -> nn.Sequential:
            widths = [inputs, *([dim] * (LAYERS - 2))]
            layers = [(nn.Conv1d(width, dim, 3, padding=1), nn.ReLU(inplace=True)) for width in widths]
            return nn.Sequential(*(part for layer in layers for part in layer), DeformableConv(dim, dim), nn.ReLU())

        self.cls_convs = tower()
        self.reg_convs = tower()
        self.cls = nn.Conv1d(dim, classes + 1, 3, padding=1)
        self.reg = nn.Conv1d(dim, 2, 3, padding=1)
        self.scales = nn.ModuleList(LearnedScaleVector() for _ in range(levels))

    def forward(self, pyramid: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return (B, N, 1 + classes) logits and (B, N, 2) distances."""
        logits = [self.cls(self.cls_convs(x)) for x in pyramid]
        offsets = [scale(self.reg(self.reg_convs(x))) for scale, x in zip(self.scales, pyramid, strict=True)]
        return _by_row(logits, self.cls.out_channels), _by_row(offsets, 2).exp()


def _by_row(levels: list[Tensor], width: int) -> Tensor:
    """Return (B, N, width) from (B, rows * width, t) of each level."""
    return torch.cat([x.transpose(1, 2).reshape(len(x), -1, width) for x in levels], 1).float()


def _start(head: nn.Module, classes: nn.Conv1d) -> None:
    """Initialise with small weights, no bias, and a low prior for every class."""
    for module in head.modules():
        if isinstance(module, nn.Conv1d):
            nn.init.normal_(module.weight, std=SPREAD)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    assert classes.bias is not None
    nn.init.constant_(classes.bias, -math.log((1 - PRIOR) / PRIOR))


WEIGHT = 0.75  # of every class with softmax, background too
LIKELIER = 1e-6  # added to probabilities there

Counted = Callable[[Tensor], Tensor]  # a number of this batch, over all processes that share it


def anchor_losses(
    logits: Tensor, codes: Tensor, anchors: Tensor, actions: Actions, counted: Counted
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute both losses over the number of positives (at least one per video), and that number."""
    number, ignored = match_anchors(anchors, actions)
    positive, of = number >= 0, number.clamp(min=0)
    share = counted(positive.sum(-1).clamp(min=1).sum())
    each = focal(logits, _one_hot(actions.labels.gather(-1, of), positive, logits.shape[-1])).sum(-1)
    goal = actions.segments.gather(1, of[..., None].expand(-1, -1, 2))
    apart = centre_distance_iou(decode_segments(codes, anchors)[positive], goal[positive])
    return torch.where(ignored, 0.0, each).sum() / share, apart.sum() / share, positive.sum()


def sigmoid_losses(logits: Tensor, offsets: Tensor, targets: PointAnswers, counted: Counted) -> tuple[Tensor, Tensor]:
    """Compute both losses over the number of positives in the batch."""
    positive = targets.positive
    share = counted(positive.sum()).clamp(min=1)
    each = focal(logits, _one_hot(targets.labels, positive, logits.shape[-1])).sum(-1)
    apart = centre_distance_iou(_around(offsets[positive]), _around(targets.offsets[positive]))
    return torch.where(targets.ignored, 0.0, each).sum() / share, apart.sum() / share


def softmax_losses(logits: Tensor, offsets: Tensor, targets: PointAnswers) -> tuple[Tensor, Tensor]:
    """Compute both losses as means per video, averaged; background is the first logit."""
    each = softmax_focal(logits, targets.labels + 1)
    positive = targets.positive
    apart = centre_distance_iou(_around(offsets[positive]), _around(targets.offsets[positive]), slack="cover")
    every = torch.zeros_like(each).masked_scatter(positive, apart)
    return _mean_within(each, ~targets.ignored).mean(), _mean_within(every, positive).mean()


def softmax_focal(logits: Tensor, labels: Tensor) -> Tensor:
    """Compute the elementwise softmax focal loss; class 0 and labels below it are background."""
    likely = (logits.softmax(-1) + LIKELIER).gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    return -WEIGHT * (1 - likely).square() * likely.log()


def _around(offsets: Tensor) -> Tensor:
    """Convert distances to start and end into segments around 0."""
    return torch.stack([-offsets[..., 0], offsets[..., 1]], -1)


def _one_hot(labels: Tensor, positive: Tensor, classes: int) -> Tensor:
    return F.one_hot(labels.clamp(min=0), classes) * positive[..., None].float()


def _mean_within(each: Tensor, within: Tensor) -> Tensor:
    """Return (B,) the mean over the points of a clip that count, 0 where none does."""
    return torch.where(within, each, 0.0).sum(-1) / within.sum(-1).clamp(min=1)
