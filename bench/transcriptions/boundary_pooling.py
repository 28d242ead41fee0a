"""AFSD's boundary max pooling by its definition, one region after another."""

from __future__ import annotations

import torch
from torch import Tensor


def boundary_max_pool(x: Tensor, regions: Tensor) -> Tensor:
    """Pool (B, C, T) features in (B, M, 4) regions to (B, C, M), differentiably."""
    half, last = x.shape[1] // 2, x.shape[2] - 1
    videos = []
    for video, rows in zip(x, regions.trunc().long().clamp(0, last).tolist(), strict=True):
        columns = []
        for a, b, c, d in rows:
            around_start = video[:half, a : max(a, b) + 1].max(-1).values
            around_end = video[half:, c : max(c, d) + 1].max(-1).values
            columns.append(torch.cat([around_start, around_end]))
        videos.append(torch.stack(columns, -1))
    return torch.stack(videos)
