"""Flakes of snow for many frames, each with its own; see `jostle.corruptions.weather`."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.corruptions.kernels.filters import motion_trails
from jostle.corruptions.kernels.frame_draws import first_uniform
from jostle.corruptions.kernels.textures import between_points, normals
from jostle.corruptions.tensors.filters import padded, taps_of
from jostle.corruptions.tensors.holding import held, sent
from jostle.corruptions.tensors.streams import chances
from jostle.corruptions.weather import FALLS
from jostle.seeds import key_for


def flakes(keys: Tensor, known: npt.NDArray[np.uint64], fall: tuple[float, ...], size: tuple[int, int]) -> Tensor:
    """(N, H, W) float32 of whole numbers from 0 to 255.

    Args:
        keys: of frames, on the device that is to draw.
        known: the same keys here.
        fall: as `snow` has it.
        size: (height, width) of a frame.
    """
    mean, sd, zoom, threshold, radius, sigma = fall[:6]
    height, width = size
    tall, wide = math.ceil(height / zoom), math.ceil(width / zoom)
    small = held(normals(mean, sd), keys.device)[chances(keys, range(tall), wide)]
    layer = _stretched(small, size, zoom)
    layer = layer.clamp(max=1).masked_fill_(layer < float(np.float32(threshold)), 0)
    falls = np.array([key_for(key, "fall") for key in known.tolist()], np.uint64)
    dy, dx, weight = motion_trails(int(radius), sigma, first_uniform(falls, *FALLS).tolist())
    border = int(np.abs(dx).max())
    down, across = (sent(move, keys.device) for move in (dy, dx + border))
    rows = padded(layer[..., None], 0, border, "replicate")
    return (taps_of(rows, down, across, weight, size)[..., 0] * 255).round_()


def _stretched(small: Tensor, size: tuple[int, int], zoom: float) -> Tensor:
    """What `kernels.textures.stretched` makes of each plane."""
    across = _between(small.mT, size[1], zoom).mT
    return _between(across, size[0], zoom)


def _between(planes: Tensor, length: int, zoom: float) -> Tensor:
    """Planes enlarged downwards."""
    before, share = between_points(planes.shape[1], length, zoom)
    first = held(before, planes.device)
    upper, lower = planes[:, first], planes[:, (first + 1).clamp_(max=planes.shape[1] - 1)]
    return _multiplied_and_added(held(share, planes.device)[:, None], lower - upper, upper)


def _multiplied_and_added(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """a * b + c of single precision numbers, rounded once, as `jostle.compiled.multiply_add` has it.

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
