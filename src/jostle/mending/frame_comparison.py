"""Comparisons of frame descriptors, which are the inputs of the inspectors' networks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from jostle.mending.descriptor_layout import COLOUR, DETAIL, LIGHT

DIFFERENCE_SCALE = 4.0  # gain of differences from other frames


def scale_channels(descriptors: Tensor) -> Tensor:
    """Convert bytes to (..., CELLS, CELLS, CHANNELS) floats of similar magnitude."""
    x = descriptors.movedim(-3, -1).float()
    x[..., LIGHT] /= 128
    x[..., COLOUR] = (x[..., COLOUR] - 128) / 64
    x[..., DETAIL] /= 96
    return x


def compare_frames(own: Tensor, others: Sequence[Tensor], medians: Tensor) -> Tensor:
    """Concatenate frames with their amplified differences from others and from the median."""
    return torch.cat([own, *(DIFFERENCE_SCALE * (own - other) for other in (*others, medians))], -1)


def merge_2x2(maps: Tensor) -> Tensor:
    """Merge 2 x 2 cells into channels: (N, H, W, C) to (N, H / 2, W / 2, 4 C)."""
    count, height, width, channels = maps.shape
    quarters = maps.reshape(count, height // 2, 2, width // 2, 2, channels).transpose(2, 3)
    return quarters.reshape(count, height // 2, width // 2, 4 * channels)
