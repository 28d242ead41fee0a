"""Light and colour on tensors; see `jostle.corruptions.light`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from jostle.corrupting.scene import Moment
from jostle.corruptions import light as own
from jostle.corruptions.tensors.holding import held


def brightness(frames: Tensor, added: float, at: Sequence[Moment]) -> Tensor:
    """A table over a value and the brightest of its pixel."""
    table = held(own._brightness_table(added), frames.device)
    return table.flatten()[frames.amax(3, keepdim=True).to(torch.int32) * 256 + frames]


def saturate(frames: Tensor, factors: tuple[float, float], at: Sequence[Moment]) -> Tensor:
    """What the distance from the brightest channel is multiplied by, from a table."""
    table = held(own._saturation_table(*factors), frames.device)
    most, least = frames.amax(3, keepdim=True), frames.amin(3, keepdim=True)
    factor = table.flatten()[most.to(torch.int32) * 256 + least]
    top = most.float()
    level = (top + 1e-3) - (top - frames.float()) * factor
    vivid = level.clamp_(min=0).to(torch.int32).to(torch.uint8)
    other = (top * (factor + 1) + 1e-3).to(torch.int32).to(torch.uint8)
    grey = torch.cat([frames[..., :1], other, other], 3)
    return torch.where(factor < 0, grey, vivid)


def contrast(frames: Tensor, factor: float, at: Sequence[Moment]) -> Tensor:
    """Towards the mean, which is a sum of whole numbers."""
    kept = float(np.float32(factor))
    height, width = frames.shape[1:3]
    total = frames.sum((1, 2), dtype=torch.int64).double()
    lift = (total * (1 - kept) / (height * width)).float()
    return (frames.float() * kept + lift[:, None, None]).to(torch.int32).to(torch.uint8)


def overexposure(frames: Tensor, added: int, at: Sequence[Moment], *, stretch: bool = False) -> Tensor:
    """Raised and cut off."""
    if stretch:
        return NotImplemented  # type: ignore[no-any-return]
    return frames.clamp(max=255 - added) + added


def black_frame(frames: Tensor, level: int, at: Sequence[Moment]) -> Tensor:
    """Nothing but one level."""
    return torch.full_like(frames, level)
