"""RoI align over time: a segment pooled into a fixed number of equal parts."""

from __future__ import annotations

import torch
from torch import Tensor

from jostle.models.detection.blocks.deformable_transformer import mixtures


def roi_align(x: Tensor, regions: Tensor, parts: int) -> Tensor:
    """Return (B, R, C, parts) the mean of what is seen in each part of the regions.

    A part is sampled at as many positions as it has begun steps. Place t is step t itself, not what lies before it, as
    E2E-TAD's kernel has it; behind the end of the sequence nothing is seen.

    Args:
        x: (B, T, C).
        regions: (B, R, 2) start and end in steps, from 0; shorter ones are taken to be a step long.

    >>> roi_align(torch.arange(8.0).view(1, 8, 1), torch.tensor([[[0.0, 4.0]]]), 2).tolist()
    [[[[1.0, 3.0]]]]
    """
    steps = x.shape[1]
    start, end = regions.unbind(-1)
    size = (end - start).clamp(min=1.0) / parts
    count = size.ceil()
    place = torch.arange(int(count.max()) if count.numel() else 0, device=x.device)
    within = place < count[..., None]
    inside = (place + 0.5) / count[..., None]
    part = torch.arange(parts, device=x.device)
    at = start[..., None, None] + (part[:, None] + inside[..., None, :]) * size[..., None, None]  # (B, R, parts, n)
    weights = (within[..., None, :] & (at <= steps)).to(at.dtype) / count[..., None, None]
    pooled = mixtures(at.clamp(max=steps - 1), weights, steps).flatten(1, 2) @ x  # (B, R * parts, C)
    return torch.unflatten(pooled, 1, (-1, parts)).transpose(2, 3)
