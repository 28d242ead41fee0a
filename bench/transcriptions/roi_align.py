"""E2E-TAD's RoIAlign by its definition, one region and bin after another."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def roi_align(features: Tensor, regions: Tensor, parts: int) -> Tensor:
    """Pool (B, T, C) features in (B, R, 2) regions, in steps, to (B, R, C, parts), differentiably."""
    steps = features.shape[1]
    videos = []
    for video, rows in zip(features, regions.tolist(), strict=True):
        pooled = []
        for start, end in rows:
            size = max(end - start, 1.0) / parts
            count = math.ceil(size)
            columns = []
            for part in range(parts):
                total = torch.zeros_like(video[0])
                for sample in range(count):
                    x = start + (part + (sample + 0.5) / count) * size
                    if x <= steps:
                        x = min(x, steps - 1)
                        before = int(x)
                        weight = x - before
                        total = total + (1 - weight) * video[before] + weight * video[min(before + 1, steps - 1)]
                columns.append(total / count)
            pooled.append(torch.stack(columns, -1))
        videos.append(torch.stack(pooled))
    return torch.stack(videos)
