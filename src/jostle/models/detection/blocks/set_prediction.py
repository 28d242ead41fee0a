"""One-to-one assignment of actions to queries (Hungarian matching), and its losses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.blocks.losses import focal

COSTS = (6.0, 5.0, 2.0)  # of the class, of centre and width, of the overlap
ALPHA, TINY = 0.25, 1e-8


def ends(segments: Tensor) -> Tensor:
    """Return (..., 2) start and end, from centre and width."""
    centre, width = segments.unbind(-1)
    return torch.stack([centre - 0.5 * width, centre + 0.5 * width], -1)


def centred(segments: Tensor) -> Tensor:
    """Return (..., 2) centre and width, from start and end."""
    start, end = segments.unbind(-1)
    return torch.stack([(start + end) / 2, end - start], -1)


def overlap(segments: Tensor, others: Tensor) -> Tensor:
    """Return (...) IoU of segments (..., 2), given by start and end; 0 where neither has a length."""
    inter = torch.minimum(segments[..., 1], others[..., 1]) - torch.maximum(segments[..., 0], others[..., 0])
    inter = inter.clamp(min=0)
    union = (segments[..., 1] - segments[..., 0]) + (others[..., 1] - others[..., 0]) - inter
    return inter / union.clamp(min=TINY)


def costs(logits: Tensor, segments: Tensor, actions: Actions) -> Tensor:
    """Return (B, L, Q, M) of letting a query of a layer answer for an action.

    Args:
        logits: (B, L, Q, K).
        segments: (B, L, Q, 2) centre and width.
        actions: start and end, as shares of the clip.
    """
    likely = logits.sigmoid()
    right = ALPHA * (1 - likely).square() * -(likely + TINY).log()
    wrong = (1 - ALPHA) * likely.square() * -(1 - likely + TINY).log()
    label = actions.labels[:, None, None].expand(*logits.shape[:3], -1)
    goal = actions.segments[:, None, None]  # (B, 1, 1, M, 2)
    apart = (segments[..., None, :] - centred(goal)).abs().sum(-1)
    named, placed, covered = COSTS
    of_class = (right - wrong).gather(-1, label)
    return named * of_class + placed * apart - covered * overlap(ends(segments)[..., None, :], goal)


@torch.no_grad()
def assign_queries(logits: Tensor, segments: Tensor, actions: Actions) -> Tensor:
    """Return (B, L, Q) the action of its video that each query of each layer answers for, -1 for none."""
    from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped, unused-ignore]  # takes a while

    # One copy for all; a network that has lost its numbers says so by its loss, not here.
    every = np.nan_to_num(costs(logits, segments, actions).double().cpu().numpy(), nan=1e9, posinf=1e9, neginf=-1e9)
    number = np.full(every.shape[:3], -1, np.int64)
    for video, present in enumerate(actions.present.cpu().numpy()):
        (column,) = present.nonzero()
        for layer in range(every.shape[1]):
            query, action = linear_sum_assignment(every[video, layer][:, column])
            number[video, layer, query] = column[action]
    return torch.from_numpy(number).to(logits.device)


Counted = Callable[[Tensor], Tensor]  # a number of this batch, over all processes that share it


def layer_losses(
    logits: Tensor, segments: Tensor, number: Tensor, actions: Actions, counted: Counted
) -> tuple[Tensor, Tensor, Tensor]:
    """Return (L,) of classes, of centres and widths, and of overlaps, each over the number of actions in the batch.

    Args:
        logits: (B, L, Q, K).
        segments: (B, L, Q, 2) centre and width.
        number: (B, L, Q) the action that a query answers for, -1 for none.
        actions: start and end, as shares of the clip.
    """
    share = counted(actions.present.sum()).clamp(min=1)
    positive, of = number >= 0, number.clamp(min=0).flatten(1)
    labels = actions.labels.gather(1, of).view_as(number)
    goal = actions.segments.gather(1, of[..., None].expand(-1, -1, 2)).view_as(segments)
    targets = F.one_hot(labels, logits.shape[-1]) * positive[..., None].to(logits.dtype)
    apart = (segments - centred(goal)).abs().sum(-1)
    missed = 1 - overlap(ends(segments), goal)
    each = (focal(logits, targets).sum(-1), torch.where(positive, apart, 0.0), torch.where(positive, missed, 0.0))
    classes, places, overlaps = (loss.sum((0, 2)) / share for loss in each)
    return classes, places, overlaps


def actionness_loss(
    actionness: Tensor, segments: Tensor, actions: Actions, counted: Counted, *, reproduce_bugs: bool
) -> Tensor:
    """Compute the mean absolute error of actionness and greatest overlap with an action.

    Args:
        actionness: (B, Q) probabilities.
        segments: (B, Q, 2) centre and width.
        reproduce_bugs: the greatest overlap with an action of any video of the batch, as the released program has it.
    """
    others, present = actions.segments, actions.present  # (B, M, 2), (B, M)
    if reproduce_bugs:
        others, present = others.flatten(0, 1)[None], present.flatten()[None]
    covered = overlap(ends(segments.detach())[:, :, None], others[:, None])  # (B, Q, M)
    goal = torch.where(present[:, None], covered, 0.0).amax(-1)
    return (actionness - goal).abs().sum() / counted(torch.tensor(goal.numel(), device=goal.device))
