"""AFSD's boundary max pooling as it is defined: region after region."""

from __future__ import annotations

import torch
from torch import Tensor


def boundary_max_pool(x: Tensor, regions: Tensor) -> Tensor:
    """(B, C, M) from (B, C, T) and regions (B, M, 4); torch finds the gradient."""
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
