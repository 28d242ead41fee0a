"""The Temporal-Robust Consistency loss of detectors of frames: on their own points, anchors or queries.

Both forms are those of `jostle.training.consistency`, with what such a detector says in place of offsets at points.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from jostle.detectors.blocks.assignment import Actions
from jostle.detectors.frame_detector import FrameDetector
from jostle.training.consistency import divergence, overlaps, ranks_apart
from jostle.training.consistency_config import ConsistencyConfig


def clip_consistency(
    detector: FrameDetector[Any], clean: Any, corrupted: Any, actions: Actions, config: ConsistencyConfig
) -> Tensor:
    """The unweighted term for clips that the detector saw twice.

    Who answers for an action is settled by the clean answers, as queries are matched anew in each.
    """
    sides = [detector.said(outputs).float() for outputs in (clean, corrupted)]
    if config.form == "paper":
        one, other = (_nearest_overlaps(said, actions, config.nearest) for said in sides)
        return ranks_apart(one, other, config)
    with torch.no_grad():
        positive, action = detector.answering(clean, actions)
    truth = actions.segments.gather(1, action[..., None].expand(-1, -1, 2))[positive]
    p, q = (1 - overlaps(said[positive], truth) for said in sides)
    return divergence(p, q, config.divergence, epsilon=config.epsilon)


def _nearest_overlaps(said: Tensor, actions: Actions, nearest: int) -> Tensor:
    """(actions, K) tIoU of each action with the segments whose centres lie nearest to its own."""
    video, number = actions.present.nonzero(as_tuple=True)
    truth = actions.segments[video, number][:, None]
    found = said[video]  # (actions, N, 2)
    with torch.no_grad():  # which are nearest is a choice; gradients go through the chosen ones only
        near = (found.mean(-1) - truth.mean(-1)).abs().topk(min(nearest, found.shape[1]), largest=False).indices
    return overlaps(found.gather(1, near[..., None].expand(-1, -1, 2)), truth)
