"""Filters on tensors, in the order of sums of `jostle.corruptions.kernels.filters`."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.core.triton import has_triton, runs_on, strips
from jostle.corruptions.gpu.device_tables import device_table
from jostle.corruptions.kernels.filters import HAIR

if has_triton():
    from jostle.corruptions.gpu.filter_program import along

Floats = npt.NDArray[np.float32]


def dropped(total: Tensor) -> Tensor:
    """Truncate floats to bytes, dropping the fraction."""
    return (total + float(HAIR)).clamp_(0, 255).to(torch.int32).to(torch.uint8)


def padded(frames: Tensor, rows: int, columns: int, how: str) -> Tensor:
    """(N, H + 2 rows, W + 2 columns, 3) float32, by `replicate` or `reflect`, which leaves the last pixel out."""
    down, across = (
        torch.from_numpy(np.pad(np.arange(size), border, "edge" if how == "replicate" else "reflect"))
        for size, border in zip(frames.shape[1:3], (rows, columns), strict=True)
    )
    return frames[:, down.to(frames.device)][:, :, across.to(frames.device)].float()


def separable(frames: Tensor, taps: Floats) -> Tensor:
    """Symmetric taps along both axes, edges replicated."""
    if runs_on(frames):
        return _separable_by_program(frames, taps)
    reach = len(taps) // 2
    rows = padded(frames, reach, reach, "replicate")
    height, width = frames.shape[1:3]
    line = _folded(lambda k: rows[:, reach + k : reach + k + height], taps)
    return dropped(_folded(lambda k: line[:, :, reach + k : reach + k + width], taps))


def _separable_by_program(frames: Tensor, taps: Floats) -> Tensor:
    height, values = frames.shape[1], frames.shape[2] * 3
    weight, away = (device_table(part, frames.device) for part in _pairs(taps.tobytes()))
    line = torch.empty(frames.shape, dtype=torch.float32, device=frames.device)
    out = torch.empty_like(frames)
    grid, ways = strips(len(frames) * height, values)
    along[grid](frames, line, weight, away, height, values, len(away), DOWN=True, **ways)
    along[grid](line, out, weight, away, height, values, len(away), DOWN=False, **ways)
    return out


@lru_cache(32)
def _pairs(taps: bytes) -> tuple[Floats, npt.NDArray[np.int32]]:
    """Return the middle weight, the weights of pairs and their distances, padded with zeros to fours."""
    folded = np.frombuffer(taps, np.float32)[len(taps) // 8 :]
    rest = -(len(folded) - 1) % 4
    return np.pad(folded, (0, rest)), np.pad(np.arange(1, len(folded), dtype=np.int32), (0, rest))


def _folded(moved, taps: Floats) -> Tensor:  # type: ignore[no-untyped-def]
    """Sum the middle, then four pairs of equal taps at a time."""
    reach = len(taps) // 2
    total: Tensor = moved(0) * float(taps[reach])

    def pair(k: int) -> Tensor:
        both: Tensor = (moved(-k) + moved(k)) * float(taps[reach + k])
        return both

    for first in range(1, reach + 1, 4):
        four = [pair(k) for k in range(first, min(first + 4, reach + 1))]
        # Pairs beyond the last weigh nothing, and adding nothing changes nothing.
        left = four[0] if len(four) < 2 else four[0].add_(four[1])
        if len(four) > 2:
            left.add_(four[2] if len(four) < 4 else four[2].add_(four[3]))
        total.add_(left)
    return total


def taps_of(rows: Tensor, dy: Tensor, dx: Tensor, weight: Floats, shape: tuple[int, int]) -> Tensor:
    """(N, H, W, C) weighted sums of copies that are moved by whole pixels, each frame by its own, eight at a time.

    Args:
        rows: (N, H, W + 2 border, C) float32.
        dy: (N, K) rows down, cut at the ends.
        dx: (N, K) first column in `rows`.
    """
    height, width = shape
    count, device = len(rows), rows.device
    frame = torch.arange(count, device=device)[:, None, None]
    down, across = torch.arange(height, device=device), torch.arange(width, device=device)

    def moved(k: int) -> Tensor:
        y = (down + dy[:, k, None]).clamp_(0, height - 1)
        x = across + dx[:, k, None]
        return rows[frame, y[:, :, None], x[:, None, :]] * float(weight[k])

    total = torch.zeros((count, height, width, rows.shape[3]), device=device)
    for first in range(0, len(weight), 8):
        a, b, c, d = (moved(k).add_(moved(k + 1)) for k in range(first, first + 8, 2))
        total.add_(a.add_(b).add_(c.add_(d)))
    return total
