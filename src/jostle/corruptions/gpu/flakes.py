"""Flakes of snow for many frames, each with its own; see `jostle.corruptions.weather`."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.core.triton import has_triton, runs_on, strips
from jostle.corruptions.gpu.device_tables import device_table, send_values
from jostle.corruptions.gpu.filters import Floats, padded, taps_of
from jostle.corruptions.gpu.streams import chances, words_of
from jostle.corruptions.kernels.filters import motion_trails
from jostle.corruptions.kernels.frame_draws import first_uniform
from jostle.corruptions.kernels.frame_keys import keys_for
from jostle.corruptions.kernels.textures import between_points, normals
from jostle.corruptions.weather import FALLS

if has_triton():
    from jostle.corruptions.gpu.filter_program import trail
    from jostle.corruptions.gpu.flake_program import scatter

Moves = npt.NDArray[np.int64]


def flakes(
    keys: npt.NDArray[np.uint64], fall: tuple[float, ...], size: tuple[int, int], device: torch.device
) -> Tensor:
    """Return (N, H, W) bytes, one plane of flakes a key.

    Args:
        fall: as `snow` has it.
        size: (height, width) of a frame.
    """
    # Headings are drawn here, as a GPU's sines may have another last digit.
    headings = first_uniform(keys_for(keys, "fall"), *FALLS).tolist()
    dy, dx, weight = motion_trails(int(fall[4]), fall[5], headings)
    there = send_values(keys.view(np.int64), device)
    if runs_on(there):
        return _flakes_by_program(there, fall, size, np.stack([dy, dx], 1), weight)
    mean, sd, zoom, threshold = fall[:4]
    tall, wide = math.ceil(size[0] / zoom), math.ceil(size[1] / zoom)
    small = device_table(normals(mean, sd), device)[chances(there, range(tall), wide)]
    layer = _stretched(small, size, zoom)
    layer = layer.clamp(max=1).masked_fill_(layer < float(np.float32(threshold)), 0)
    border = int(np.abs(dx).max())
    down, across = (send_values(move, device) for move in (dy, dx + border))
    rows = padded(layer[..., None], 0, border, "replicate")
    return (taps_of(rows, down, across, weight, size)[..., 0] * 255).round_().to(torch.uint8)


def _flakes_by_program(
    keys: Tensor, fall: tuple[float, ...], size: tuple[int, int], moves: Moves, weight: Floats
) -> Tensor:
    (mean, sd, zoom, threshold), (height, width), device = fall[:4], size, keys.device
    tall, wide = math.ceil(height / zoom), math.ceil(width / zoom)
    words = words_of(keys, range(tall), wide)
    points = (*between_points(tall, height, zoom), *between_points(wide, width, zoom))
    tables = (device_table(table, device) for table in (normals(mean, sd), *points))
    layer = torch.empty((len(keys), height, width), dtype=torch.float32, device=device)
    out = torch.empty((len(keys), height, width), dtype=torch.uint8, device=device)
    grid, ways = strips(len(keys) * height, width)
    sizes = (words.shape[1], tall, wide, height, width)
    scatter[grid](words, layer, *tables, float(np.float32(threshold)), *sizes, **ways)
    there = send_values(moves.astype(np.int32), device)
    trail[grid](layer, out, there, device_table(weight, device), height, width, len(weight), FLAKES=True, **ways)
    return out


def _stretched(small: Tensor, size: tuple[int, int], zoom: float) -> Tensor:
    """Enlarge each plane as `kernels.textures.stretched` does."""
    across = _between(small.mT, size[1], zoom).mT
    return _between(across, size[0], zoom)


def _between(planes: Tensor, length: int, zoom: float) -> Tensor:
    """Enlarge planes along the vertical axis."""
    before, share = between_points(planes.shape[1], length, zoom)
    first = device_table(before, planes.device)
    upper, lower = planes[:, first], planes[:, (first + 1).clamp_(max=planes.shape[1] - 1)]
    return _multiplied_and_added(device_table(share, planes.device)[:, None], lower - upper, upper)


def _multiplied_and_added(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Return a * b + c in single precision, rounded once, as `jostle.core.kernels.multiply_add` does.

    Double precision has room for a product, and not for every sum. A sum that lost something is made odd in its last
    bit, so that rounding it again ends where rounding all of it at once does (Boldo and Melquiond, 2008).
    """
    product, added = a.double() * b.double(), c.double()
    total = product + added
    part = total - product
    lost = (product - (total - part)) + (added - part)
    bits = total.view(torch.int64)
    away = torch.where((lost > 0) == (total > 0), 1, -1)  # from 0, or towards it
    odd = torch.where((lost != 0) & (bits & 1 == 0), bits + away, bits)
    return odd.view(torch.float64).float()
