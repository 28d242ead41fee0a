"""The losses of queries that answer for actions one for one."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from jostle.detectors.blocks.assignment import Actions
from jostle.detectors.blocks.losses import focal
from jostle.detectors.blocks.one_to_one import centred, ends, overlap

Counted = Callable[[Tensor], Tensor]  # a number of this batch, over all processes that share it


def layer_losses(
    logits: Tensor, segments: Tensor, number: Tensor, actions: Actions, counted: Counted
) -> tuple[Tensor, Tensor, Tensor]:
    """(L,) of classes, of centres and widths, and of overlaps, each over the number of actions in the batch.

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
    wanted = F.one_hot(labels, logits.shape[-1]) * positive[..., None].to(logits.dtype)
    apart = (segments - centred(goal)).abs().sum(-1)
    missed = 1 - overlap(ends(segments), goal)
    each = (focal(logits, wanted).sum(-1), torch.where(positive, apart, 0.0), torch.where(positive, missed, 0.0))
    classes, places, overlaps = (loss.sum((0, 2)) / share for loss in each)
    return classes, places, overlaps


def actionness_loss(
    actionness: Tensor, segments: Tensor, actions: Actions, counted: Counted, *, released_faults: bool
) -> Tensor:
    """How far from the greatest overlap with an action, in the mean over all queries.

    Args:
        actionness: (B, Q) probabilities.
        segments: (B, Q, 2) centre and width.
        released_faults: the greatest overlap with an action of any video of the batch, as the released program has it.
    """
    others, present = actions.segments, actions.present  # (B, M, 2), (B, M)
    if released_faults:
        others, present = others.flatten(0, 1)[None], present.flatten()[None]
    covered = overlap(ends(segments.detach())[:, :, None], others[:, None])  # (B, Q, M)
    goal = torch.where(present[:, None], covered, 0.0).amax(-1)
    return (actionness - goal).abs().sum() / counted(torch.tensor(goal.numel(), device=goal.device))
