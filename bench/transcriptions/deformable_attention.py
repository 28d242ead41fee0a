"""E2E-TAD's deformable attention as it is defined: video after video, head after head, point after point."""

from __future__ import annotations

import torch
from torch import Tensor


def attended(value: Tensor, place: Tensor, weight: Tensor) -> Tensor:
    """(B, heads, Q, d) from values (B, heads, T, d), places and weights (B, heads, Q, points).

    Between two steps their linear mixture is seen, outside of the sequence nothing. Torch finds the gradient.
    """
    steps = value.shape[2]
    videos = []
    for rows, places, weights in zip(value, place, weight, strict=True):
        heads = []
        for head in range(len(rows)):
            made = torch.zeros_like(rows[head, :1])
            for point in range(places.shape[-1]):
                at, share = places[head, :, point], weights[head, :, point]
                before = at.detach().floor()
                for step, near in ((before, before + 1 - at), (before + 1, at - before)):
                    inside = (step >= 0) & (step < steps)
                    seen = rows[head][step.clamp(0, steps - 1).long()]
                    made = made + seen * (share * near * inside)[:, None]
            heads.append(made)
        videos.append(torch.stack(heads))
    return torch.stack(videos)
