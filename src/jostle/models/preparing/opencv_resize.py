"""Bilinear resizing by a factor as OpenCV does it, which rounds the size and samples by the factor all the same."""

from __future__ import annotations

import torch
from torch import Tensor


def scaled_by(frames: Tensor, factor: float) -> Tensor:
    """(..., H', W') of frames (..., H, W) in floating-point numbers; sizes are rounded, halves to the even number.

    >>> scaled_by(torch.tensor([[0.0, 4.0, 8.0, 12.0]]).expand(2, 4), 0.6).tolist()
    [[1.3333333730697632, 8.0]]
    """
    for axis in (-2, -1):
        frames = _along(frames, axis, factor)
    return frames


def _along(frames: Tensor, axis: int, factor: float) -> Tensor:
    size = frames.shape[axis]
    to = max(round(size * factor), 1)
    at = ((torch.arange(to, dtype=torch.float64) + 0.5) / factor - 0.5).clamp(0, size - 1)
    before = at.floor()
    later = (at - before).to(frames.device, frames.dtype)
    later = later if axis == -1 else later[:, None]
    index = before.long().to(frames.device)
    near, far = (frames.index_select(axis, i) for i in (index, (index + 1).clamp(max=size - 1)))
    return near + (far - near) * later
