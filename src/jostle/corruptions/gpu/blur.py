"""Blur on a GPU; see `jostle.corruptions.blur`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.core.triton_support import STRIP, has_triton, strips
from jostle.corruptions import blur as own
from jostle.corruptions.gpu.contexts import FrameContexts
from jostle.corruptions.gpu.device_tables import device_table, send_values
from jostle.corruptions.kernels.filters import gaussian_taps, motion_trails
from jostle.corruptions.kernels.sfc64 import first_uniform
from jostle.corruptions.kernels.smooth_motion import OverTime

if has_triton():
    from jostle.corruptions.gpu.filter_program import along, disc_means, softened, sum_rows, trail, zoomed

BLURRED = 128  # frames that are out of focus at a time, as sums and means take many times their memory


def gaussian_blur(frames: Tensor, sigma: float, at: FrameContexts) -> Tensor:
    """Apply Gaussian blur in two passes, edges replicated."""
    height, values = frames.shape[1], frames.shape[2] * 3
    weight, away = (device_table(part, frames.device) for part in _pairs(gaussian_taps(sigma).tobytes()))
    line = torch.empty(frames.shape, dtype=torch.float32, device=frames.device)
    out = torch.empty_like(frames)
    grid, ways = strips(len(frames) * height, values)
    along[grid](frames, line, weight, away, height, values, len(away), DOWN=True, **ways)
    along[grid](line, out, weight, away, height, values, len(away), DOWN=False, **ways)
    return out


@lru_cache(32)
def _pairs(taps: bytes) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]:
    """Return the middle weight, the weights of pairs and their distances, padded with zeros to fours."""
    folded = np.frombuffer(taps, np.float32)[len(taps) // 8 :]
    rest = -(len(folded) - 1) % 4
    return np.pad(folded, (0, rest)), np.pad(np.arange(1, len(folded), dtype=np.int32), (0, rest))


def defocus_blur(frames: Tensor, disc: tuple[int, float], at: FrameContexts, *, fair: bool = True) -> Tensor:
    """Sum the rows of a disc in integers, soften its rim, and add what the original's kernel has beyond."""
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


def motion_blur(
    frames: Tensor, streak: tuple[int, float], at: FrameContexts, *, over_time: OverTime = "moving"
) -> Tensor:
    """Sum copies along a direction, which differs by frame."""
    moves, weight = motion_trails(*streak, _headings(at, over_time))
    height, values = frames.shape[1], frames.shape[2] * 3
    out = torch.empty_like(frames)
    grid, ways = strips(len(frames) * height, values)
    there = send_values(moves, frames.device), device_table(weight, frames.device)
    trail[grid](frames, out, *there, height, values, len(weight), FLAKES=False, **ways)
    return out


def _headings(at: FrameContexts, over_time: OverTime) -> list[float]:
    if over_time == "redrawn":
        drawn: list[float] = first_uniform(at.keys(), *own.HEADINGS).tolist()
        return drawn
    return [angle for scene, times in at.moments() for angle in own.headings(scene, times, over_time)]


def zoom_blur(frames: Tensor, zoom: tuple[float, float], at: FrameContexts, *, trim: bool = False) -> Tensor:
    """Average enlargements, each by rows and then by columns."""
    height, width = frames.shape[1:3]
    taps = [device_table(part, frames.device) for part in _zoom_taps(height, width, *zoom, trim)]
    scale = float(np.float32(1) / np.float32(len(taps[0]) + 1))
    out = torch.empty_like(frames)
    grid, ways = strips(len(frames) * height, width * 3)
    zoomed[grid](frames, out, *taps, height, width * 3, len(taps[0]), scale, **ways)
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
