"""Fused preprocessing on a GPU: one pass over memory instead of eight."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from jostle.core.cuda import device_context
from jostle.core.triton_support import EXACT, has_triton
from jostle.models.preprocessing.geometry import Crop

if has_triton():
    from jostle.models.preprocessing.fused_program import prepare

PIXELS = 256  # of one program

Interpolation = Literal["bilinear", "bicubic"]
Colours = tuple[float, float, float]


class Resize(NamedTuple):
    """Size (height, width) and method of resizing; see `InputSpec`."""

    to: tuple[int, int]
    interpolation: Interpolation
    antialias: bool


class Normalization(NamedTuple):
    """Mean and standard deviation per colour, for values in [0, 1]; see `InputSpec`."""

    mean: Colours
    std: Colours


def prepare_fused(
    frames: Tensor,
    length: int,
    resize: Resize,
    crops: Sequence[Crop],
    size: int,
    scale: Normalization,
    *,
    bgr: bool,
    axes: Sequence[int],
) -> Tensor:
    """Return (B, ...) float32 crops of clips of `length` frames, from their frames (N, H, W, 3) uint8.

    Args:
        axes: of (crops, T, 3, size, size), in the order that they are to have behind the first.
    """
    count, height, width = frames.shape[:3]
    shape = (len(crops), length, 3, size, size)
    out = frames.new_empty((count // length, *(shape[axis] for axis in axes)), dtype=torch.float32)
    steps = out.permute(0, *(1 + axes.index(axis) for axis in range(5))).stride()
    device = frames.device
    rows, row_weights = _taps(height, resize.to[0], resize.interpolation, resize.antialias, device)
    columns, column_weights = _taps(width, resize.to[1], resize.interpolation, resize.antialias, device)
    tables = (rows, row_weights, columns, column_weights, _kept(tuple(crops), torch.int32, device))
    ways: dict[str, Any] = {"DOWN": len(row_weights), "ACROSS": len(column_weights), "BGR": bgr, "PIXELS": PIXELS}
    grid = (count, -(-size * size // PIXELS), len(crops))
    arguments = (*tables, _kept(scale, torch.float32, device), height, width, size, *resize.to, length, *steps)
    with device_context(frames):
        prepare[grid](frames.contiguous(), out, *arguments, CUBIC=resize.interpolation == "bicubic", **ways, **EXACT)
    return out


@lru_cache(64)
def _taps(length: int, to: int, how: Interpolation, antialias: bool, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the first source index of each of `to` positions, and the (most, to) weights from there on.

    The weights are measured by resizing unit impulses with torch, so that torch alone defines resizing.
    """
    with torch.inference_mode(False):
        weights = torch.eye(length)
        if to != length:
            lines = weights[:, None, None]
            weights = F.interpolate(lines, (1, to), mode=how, align_corners=False, antialias=antialias)[:, 0, 0]
        some = weights.ne(0).int()
        first, last = some.argmax(0), length - 1 - some.flip(0).argmax(0)
        most = int((last - first).max()) + 1
        first.clamp_(max=length - most)
        own = weights.gather(0, first + torch.arange(most)[:, None])
        return first.int().to(device), own.contiguous().to(device)


@lru_cache(64)
def _kept(values: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        return torch.tensor(values, dtype=dtype, device=device).flatten()
