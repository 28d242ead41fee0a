"""E2E-TAD's parts of regions as they are defined: region after region, part after part."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def roi_align(x: Tensor, regions: Tensor, parts: int) -> Tensor:
    """(B, R, C, parts) from (B, T, C) and regions (B, R, 2) in steps; torch finds the gradient."""
    steps = x.shape[1]
    videos = []
    for video, rows in zip(x, regions.tolist(), strict=True):
        made = []
        for start, end in rows:
            size = max(end - start, 1.0) / parts
            count = math.ceil(size)
            columns = []
            for part in range(parts):
                seen = torch.zeros_like(video[0])
                for place in range(count):
                    at = start + (part + (place + 0.5) / count) * size
                    if at <= steps:
                        at = min(at, steps - 1)
                        before = int(at)
                        later = at - before
                        seen = seen + (1 - later) * video[before] + later * video[min(before + 1, steps - 1)]
                columns.append(seen / count)
            made.append(torch.stack(columns, -1))
        videos.append(torch.stack(made))
    return torch.stack(videos)
