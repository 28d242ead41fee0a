"""E2E-TAD's deformable attention by its definition, one video, head and point after another."""

from __future__ import annotations

import torch
from torch import Tensor


def attend(value: Tensor, position: Tensor, weight: Tensor) -> Tensor:
    """Return (B, heads, Q, d) weighted sums of (B, heads, T, d) values, differentiably.

    Values between two steps are interpolated linearly; outside the sequence they are zero.

    Args:
        position, weight: (B, heads, Q, points).
    """
    steps = value.shape[2]
    videos = []
    for rows, positions, weights in zip(value, position, weight, strict=True):
        heads = []
        for head in range(len(rows)):
            total = torch.zeros_like(rows[head, :1])
            for point in range(positions.shape[-1]):
                x, point_weight = positions[head, :, point], weights[head, :, point]
                before = x.detach().floor()
                for step, proximity in ((before, before + 1 - x), (before + 1, x - before)):
                    inside = (step >= 0) & (step < steps)
                    sample = rows[head][step.clamp(0, steps - 1).long()]
                    total = total + sample * (point_weight * proximity * inside)[:, None]
            heads.append(total)
        videos.append(torch.stack(heads))
    return torch.stack(videos)
