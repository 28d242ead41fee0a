"""Light and colour on tensors; see `jostle.corruptions.light`. They need no Triton, and are faster with it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from jostle.core.triton_support import EXACT, has_triton, runs_on
from jostle.corruptions import light as own
from jostle.corruptions.gpu.contexts import FrameContexts
from jostle.corruptions.gpu.device_tables import device_table

if has_triton():
    from jostle.corruptions.gpu.light_program import add_up, by_table, towards_mean

FOURS = 256  # four pixels each, for one program
OF_A_FRAME = 512  # likewise, where a program has to know which frame it works on


def brightness(frames: Tensor, added: float, at: FrameContexts) -> Tensor:
    """Look values up in a table over the value and its pixel's maximum."""
    table = device_table(own._brightness_table(added), frames.device)
    if runs_on(frames) and _in_fours(frames, frames.numel()):
        return _by_table("brightness", frames, table)
    return table.flatten()[frames.amax(3, keepdim=True).to(torch.int32) * 256 + frames]


def saturate(frames: Tensor, factors: tuple[float, float], at: FrameContexts) -> Tensor:
    """Scale the distance from the brightest channel by a table."""
    table = device_table(own._saturation_table(*factors), frames.device)
    if runs_on(frames) and _in_fours(frames, frames.numel()):
        return _by_table("saturate", frames, table)
    most, least = frames.amax(3, keepdim=True), frames.amin(3, keepdim=True)
    factor = table.flatten()[most.to(torch.int32) * 256 + least]
    top = most.float()
    level = (top + 1e-3) - (top - frames.float()) * factor
    vivid = level.clamp_(min=0).to(torch.int32).to(torch.uint8)
    other = (top * (factor + 1) + 1e-3).to(torch.int32).to(torch.uint8)
    grey = torch.cat([frames[..., :1], other, other], 3)
    return torch.where(factor < 0, grey, vivid)


def contrast(frames: Tensor, factor: float, at: FrameContexts) -> Tensor:
    """Scale values towards the mean, which is an integer sum."""
    share = float(np.float32(factor))
    height, width = frames.shape[1:3]
    if runs_on(frames) and _in_fours(frames, height * width * 3):
        return _towards_mean(frames, share)
    total = frames.sum((1, 2), dtype=torch.int64).double()
    lift = (total * (1 - share) / (height * width)).float()
    return (frames.float() * share + lift[:, None, None]).to(torch.int32).to(torch.uint8)


def overexposure(frames: Tensor, added: int, at: FrameContexts) -> Tensor:
    """Raise all values and clip them at white."""
    return frames.clamp(max=255 - added) + added


def black_frame(frames: Tensor, level: int, at: FrameContexts) -> Tensor:
    """Fill frames with one grey level."""
    return torch.full_like(frames, level)


def _in_fours(frames: Tensor, values: int) -> bool:
    """Return whether the pixels of this many values can be processed four at a time."""
    return values % 12 == 0 and frames.data_ptr() % 4 == 0


def _by_table(kind: str, frames: Tensor, table: Tensor) -> Tensor:
    out = torch.empty_like(frames)
    fours = frames.numel() // 12
    by_table[(-(-fours // FOURS),)](frames, out, table, fours, KIND=kind, SIZE=FOURS, **EXACT)
    return out


def _towards_mean(frames: Tensor, share: float) -> Tensor:
    count, height, width = frames.shape[:3]
    out = torch.empty_like(frames)
    totals = torch.zeros((count, 3), dtype=torch.int64, device=frames.device)
    fours = height * width // 4
    grid = (count, -(-fours // OF_A_FRAME))
    add_up[grid](frames, totals, fours, SIZE=OF_A_FRAME)
    towards_mean[grid](frames, out, totals, share, fours, SIZE=OF_A_FRAME, **EXACT)
    return out
