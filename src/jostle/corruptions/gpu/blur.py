"""Blur on tensors; see `jostle.corruptions.blur`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jostle.core.triton import STRIP, has_triton, runs_on, strips
from jostle.corruptions import blur as own
from jostle.corruptions.gpu.contexts import FrameContexts
from jostle.corruptions.gpu.device_tables import device_table, send_values
from jostle.corruptions.gpu.filters import dropped, padded, separable, taps_of
from jostle.corruptions.kernels.filters import HAIR, gaussian_taps, motion_trails
from jostle.corruptions.kernels.frame_draws import first_uniform
from jostle.corruptions.kernels.sway import OverTime

if has_triton():
    from jostle.corruptions.gpu.filter_program import disc_means, softened, sum_rows, trail, zoomed

BLURRED = 128  # frames that are out of focus at a time, as sums and means take many times their memory


def gaussian_blur(frames: Tensor, sigma: float, at: FrameContexts) -> Tensor:
    """Apply Gaussian blur in two passes."""
    return separable(frames, gaussian_taps(sigma))


def defocus_blur(frames: Tensor, disc: tuple[int, float], at: FrameContexts, *, fair: bool = True) -> Tensor:
    """Sum the rows of a disc in integers, soften its rim, and add what the original's kernel has beyond."""
    if runs_on(frames):
        return _disc_by_program(frames, disc, fair)
    halves, soft, (box_row, box_half, box_weight) = own._disc(*disc, fair)
    height, width = frames.shape[1:3]
    radius, around = len(halves) - 1, len(soft) // 2
    border = radius + around
    rows = padded(frames, border, border, "reflect").to(torch.int32)
    sums = torch.zeros((*rows.shape[:2], rows.shape[2] + 1, 3), dtype=torch.int32, device=frames.device)
    torch.cumsum(rows, 2, dtype=torch.int32, out=sums[:, :, 1:])
    tall, wide = height + 2 * around, width + 2 * around
    total = torch.zeros((len(frames), tall, wide, 3), dtype=torch.int32, device=frames.device)
    area = 0
    for j in range(-radius, radius + 1):
        half = int(halves[abs(j)])
        area += 2 * half + 1
        line = sums[:, radius + j : radius + j + tall]
        total += (
            line[:, :, radius + half + 1 : radius + half + 1 + wide] - line[:, :, radius - half : radius - half + wide]
        )
    means = total.float() * float(np.float32(1) / np.float32(area))
    smooth = _softened([means[:, k : k + height] for k in range(len(soft))], soft)
    rest = _softened([smooth[:, :, k : k + width] for k in range(len(soft))], soft)
    for row, half, weight in zip(box_row[1:].tolist(), box_half[1:].tolist(), box_weight[1:], strict=True):
        lo, hi = border - half, border + half + 1
        upper, lower = (sums[:, border + away : border + away + height] for away in (-row, row))
        inside = (upper[:, :, hi : hi + width] - upper[:, :, lo : lo + width]) + (
            lower[:, :, hi : hi + width] - lower[:, :, lo : lo + width]
        )
        rest.add_(inside.float() * float(weight))
    return dropped(rest)


def motion_blur(
    frames: Tensor, trail: tuple[int, float], at: FrameContexts, *, over_time: OverTime = "moving"
) -> Tensor:
    """Sum copies along a direction, which differs by frame."""
    dy, dx, weight = motion_trails(*trail, _headings(at, over_time))
    if runs_on(frames):
        return _trail_by_program(frames, np.stack([dy, dx], 1), weight)
    border = int(np.abs(dx).max())
    rows = padded(frames, 0, border, "replicate")
    down, across = (torch.from_numpy(move).to(frames.device) for move in (dy, dx + border))
    return dropped(taps_of(rows, down, across, weight, (frames.shape[1], frames.shape[2])))


def _headings(at: FrameContexts, over_time: OverTime) -> list[float]:
    if over_time == "redrawn":
        drawn: list[float] = first_uniform(at.keys(), *own.HEADINGS).tolist()
        return drawn
    return [own.heading(moment, over_time) for moment in at]


def _trail_by_program(frames: Tensor, moves: Any, weight: Any) -> Tensor:
    height, values = frames.shape[1], frames.shape[2] * 3
    there = send_values(moves.astype(np.int32), frames.device)
    out = torch.empty_like(frames)
    grid, ways = strips(len(frames) * height, values)
    trail[grid](
        frames, out, there, device_table(weight, frames.device), height, values, len(weight), FLAKES=False, **ways
    )
    return out


def _disc_by_program(frames: Tensor, disc: tuple[int, float], fair: bool) -> Tensor:
    halves, soft, boxes = own._disc(*disc, fair)
    height, width, device = frames.shape[1], frames.shape[2], frames.device
    radius, around = len(halves) - 1, len(soft) // 2
    border, values = radius + around, width * 3
    area = int((2 * halves + 1).sum() * 2 - (2 * halves[0] + 1))
    scale = float(np.float32(1) / np.float32(area))
    tall, wide, places = height + 2 * around, values + 6 * around, width + 2 * border
    half, taps, *extra = (device_table(table, device) for table in (halves, soft, *boxes))
    down, across = (device_table(_mirrored(size, border), device) for size in (height, width))
    out = torch.empty_like(frames)
    for lo in range(0, len(frames), BLURRED):
        some = frames[lo : lo + BLURRED]
        count = len(some)
        sums = torch.empty((count, height, 3 * (places + 1)), dtype=torch.int32, device=device)
        sum_rows[(count * height,)](some, sums, across, values, places, SIZE=STRIP)
        means = torch.empty((count, tall, wide), dtype=torch.float32, device=device)
        grid, ways = strips(count * tall, wide)
        disc_means[grid](sums, means, half, down, radius, around, height, values, scale, **ways)
        grid, ways = strips(count * height, values)
        sizes = (len(extra[0]), border, height, values)
        softened[grid](means, out[lo : lo + BLURRED], taps, sums, down, *extra, *sizes, TAPS=len(soft), **ways)
    return out


@lru_cache(16)
def _mirrored(size: int, border: int) -> Any:
    """Return the source pixel for each position along an axis and beyond its ends, by reflection."""
    return np.pad(np.arange(size), border, "reflect")


def zoom_blur(frames: Tensor, zoom: tuple[float, float], at: FrameContexts, *, trim: bool = False) -> Tensor:
    """Average enlargements, each by rows and then by columns."""
    height, width = frames.shape[1:3]
    above, down, before, across = (device_table(part, frames.device) for part in _zoom_taps(height, width, *zoom, trim))
    scale = float(np.float32(1) / np.float32(len(above) + 1))
    if runs_on(frames):
        return _zoom_by_program(frames, (above, down, before, across), scale)
    rows = frames.float()
    total = rows.clone()
    for z in range(len(above)):
        upper, lower = rows[:, above[z]], rows[:, (above[z] + 1).clamp_(max=height - 1)]
        line = upper + (lower - upper) * down[z][:, None, None]
        line = torch.nn.functional.pad(line, (0, 0, 0, 1))  # one pixel more: the last pixel's neighbour has share 0
        left, right = line[:, :, before[z]], line[:, :, before[z] + 1]
        total.add_(left + (right - left) * across[z][:, None])
    return (total * scale + float(HAIR)).clamp_(max=255).to(torch.int32).to(torch.uint8)


def _zoom_by_program(frames: Tensor, taps: tuple[Tensor, ...], scale: float) -> Tensor:
    height, values = frames.shape[1], frames.shape[2] * 3
    out = torch.empty_like(frames)
    grid, ways = strips(len(frames) * height, values)
    zoomed[grid](frames, out, *taps, height, values, len(taps[0]), scale, **ways)
    return out


@lru_cache(8)
def _zoom_taps(height: int, width: int, stop: float, by: float, trim: bool) -> tuple[Any, Any, Any, Any]:
    """Return for each enlargement the source rows and their shares, and likewise for columns."""
    factors = np.arange(1, stop, by)
    rows = [own._zoom_taps(height, factor, trim) for factor in factors]
    columns = [own._zoom_taps(width, factor, trim) for factor in factors]
    return (
        np.stack([before for before, _ in rows]),
        np.stack([share for _, share in rows]),
        np.stack([before for before, _ in columns]),
        np.stack([share for _, share in columns]),
    )


def _softened(parts: list[Tensor], soft: Any) -> Tensor:
    """Convolve with a soft rim, three taps at once and the others one by one."""
    total = (parts[0] * float(soft[0])).add_(parts[1] * float(soft[1])).add_(parts[2] * float(soft[2]))
    for part, weight in zip(parts[3:], soft[3:], strict=True):
        total.add_(part * float(weight))
    return total
