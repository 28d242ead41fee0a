"""Weather on a GPU; see `jostle.corruptions.weather`."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.core.triton_support import EXACT, has_triton, strips
from jostle.corruptions import weather as own
from jostle.corruptions.gpu.contexts import FrameContexts
from jostle.corruptions.gpu.device_tables import device_table, send_values
from jostle.corruptions.gpu.streams import keys_on, words_of
from jostle.corruptions.kernels.blake2b import keys_for
from jostle.corruptions.kernels.filters import motion_trails
from jostle.corruptions.kernels.sfc64 import first_integers, first_uniform
from jostle.corruptions.kernels.smooth_motion import OverTime, drifts
from jostle.corruptions.kernels.textures import (
    ICE_TEXTURES,
    Plane,
    between_points,
    cloud,
    covering_side,
    ice_covering,
    normals,
)

if has_triton():
    from jostle.corruptions.gpu.filter_program import trail
    from jostle.corruptions.gpu.weather_program import blend, halve, lay_flakes, lay_fog, lay_plane, scatter

SHARE_BITS = 14
SNOWED = 128  # frames that snow falls on at a time, as it takes many numbers for each pixel
POINTS = 256  # of a cloud, for one program


def fog(
    frames: Tensor,
    bank: tuple[float, float],
    at: FrameContexts,
    *,
    over_time: OverTime = "moving",
    side: int | None = None,
) -> Tensor:
    """Fog that is redrawn is drawn here, for all frames at once; fog that stays comes from the compiled side."""
    thickness, decay = bank
    height, width = frames.shape[1:3]
    side = covering_side((height, width), side)
    thick, brightest = float(np.float32(thickness)), frames.flatten(1).amax(1)
    out = torch.empty_like(frames)
    grid, ways = strips(len(frames) * height, width * 3)
    size = (thick, height, width * 3, side)
    if over_time == "redrawn":
        clouds = _clouds(side, decay, keys_on(frames, at, "texture"))
        lay_fog[grid](frames, out, clouds, *clouds.flatten(1).aminmax(dim=1), brightest, *size, **ways)
        return out
    planes = [device_table(_cloud(side, decay, scene.key("texture")), frames.device) for scene in at.scenes]
    moves = [move for moment in at.moments() for move in drifts(*moment, side, over_time)]
    places = send_values(np.column_stack([at.clip, moves]).astype(np.int32), frames.device)
    lay_plane[grid](frames, out, torch.stack(planes), places, brightest, *size, **ways)
    return out


def _clouds(side: int, decay: float, keys: Tensor) -> Tensor:
    """Return (N, side, side) clouds by diamond-square on tori, before they are scaled to 0..1."""
    rows = 3 * (side - 1)
    words = words_of(keys, range(rows), side // 2)
    known = torch.zeros((len(keys), 1, 1), device=keys.device)
    for count, row, unit, away in _steps(side, decay):
        finer = torch.empty((len(keys), 2 * count, 2 * count), device=keys.device)
        grid = (len(keys), -(-count * count // POINTS))
        halve[grid](known, finer, words, words.shape[1], rows, row, count, unit, away, SIZE=POINTS, **EXACT)
        known = finer
    return known


@lru_cache(32)
def _steps(side: int, decay: float) -> list[tuple[int, int, float, float]]:
    """Return the steps of diamond-square.

    Each is the number of known points along a side, the first stream to draw from, the factor of 16 random bits, and
    what is subtracted.
    """
    steps, count, row, deviation = [], 1, 0, np.float32(100)
    while count < side:
        spread = np.float32(deviation * deviation)
        steps.append((count, row, float(np.float32(spread * np.float32(2.0**-15))), float(spread)))
        row += 3 * count
        count *= 2
        deviation = np.float32(deviation / np.float32(decay))
    return steps


@lru_cache(32)
def _cloud(side: int, decay: float, key: int) -> Plane:
    """The plane of a clip's fog: the same object as long as it is in use, so that a device keeps it."""
    return cloud(side, decay, key)


def snow(frames: Tensor, fall: tuple[float, ...], at: FrameContexts, *, over_time: OverTime = "moving") -> Tensor:
    """Flakes, each clip's or each frame's own, over frames that turn pale; some frames at a time."""
    height, width = (int(side) for side in frames.shape[1:3])
    keys = at.keys("texture") if over_time == "redrawn" else at.scene_keys("texture")
    moves = _snowfalls(at, (height, width)) if over_time == "moving" else np.zeros((len(at), 4), np.int64)
    mix = np.float32(fall[6])
    shares = float(mix), float(np.float32(1) - mix)  # of the original and of the paled frame
    out = torch.empty_like(frames)
    for lo in range(0, len(at), SNOWED):
        some = slice(lo, lo + SNOWED)
        drawn, number = np.unique(keys[some], return_inverse=True)
        flakes = _flakes(drawn, fall, (height, width), frames.device)
        falls = np.column_stack([number, moves[some]]).astype(np.int32)
        grid, ways = strips(len(falls) * height, width)
        there = send_values(falls, frames.device)
        lay_flakes[grid](frames[some], out[some], flakes, there, *shares, height, width, **ways)
    return out


def _snowfalls(at: FrameContexts, size: tuple[int, int]) -> npt.NDArray[np.int64]:
    """(N, 4) how far down and to the right near and then far flakes have come, round the ends of a frame."""
    ways = np.array([way for moment in at.moments() for way in own.snowfalls(*moment, *size)], np.int64)
    return np.asarray(ways % np.array(size * 2), np.int64)


def _flakes(
    keys: npt.NDArray[np.uint64], fall: tuple[float, ...], size: tuple[int, int], device: torch.device
) -> Tensor:
    """Return (N, H, W) bytes, one plane of flakes a key.

    Args:
        fall: as `snow` has it.
        size: (height, width) of a frame.
    """
    (mean, sd, zoom, threshold), (height, width) = fall[:4], size
    # Headings are drawn here, as a GPU's sines may have another last digit.
    headings = first_uniform(keys_for(keys, "fall"), *own.FALLS).tolist()
    steps, weight = motion_trails(int(fall[4]), fall[5], headings)
    tall, wide = math.ceil(height / zoom), math.ceil(width / zoom)
    words = words_of(send_values(keys.view(np.int64), device), range(tall), wide)
    points = (*between_points(tall, height, zoom), *between_points(wide, width, zoom))
    tables = (device_table(table, device) for table in (normals(mean, sd), *points))
    layer = torch.empty((len(keys), height, width), dtype=torch.float32, device=device)
    out = torch.empty((len(keys), height, width), dtype=torch.uint8, device=device)
    grid, ways = strips(len(keys) * height, width)
    sizes = (words.shape[1], tall, wide, height, width)
    scatter[grid](words, layer, *tables, float(np.float32(threshold)), *sizes, **ways)
    moves = send_values(steps, device)
    trail[grid](layer, out, moves, device_table(weight, device), height, width, len(weight), FLAKES=True, **ways)
    return out


def frost(frames: Tensor, shares: tuple[float, float], at: FrameContexts, *, over_time: OverTime = "still") -> Tensor:
    """Add frame and ice texture with integer weights."""
    height, width = frames.shape[1:3]
    share, other = (round(part * (1 << SHARE_BITS)) for part in shares)
    panes = _panes(height, width)
    keys = at.keys() if over_time == "redrawn" else at.scene_keys()
    number, y, x = first_integers(keys, ICE_TEXTURES, *own.places(panes[0], height, width)).T
    begins = 3 * ((number * panes.shape[1] + y) * panes.shape[2] + x)
    ice, there = device_table(panes, frames.device), send_values(begins, frames.device)
    out = torch.empty_like(frames)
    grid, ways = strips(len(frames) * height, width * 3)
    size = (height, width * 3, ice.shape[2] * 3)
    blend[grid](frames, out, ice, there, share, other, *size, BITS=SHARE_BITS, **ways)
    return out


@lru_cache(4)
def _panes(height: int, width: int) -> Any:
    """All textures of ice, each large enough for a frame."""
    return np.stack([ice_covering(number, height, width) for number in range(ICE_TEXTURES)])
