"""Where the points of the pyramid lie on the feature grid, for sequences of any length."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Points:
    """The points of all levels, one after the other.

    Attributes:
        sizes: points of each level.
        position: (N,) grid position: point i of a level with stride s sits at i s, without a half step.
        stride: (N,) grid steps between the points of its level.
        low: (N,) shortest distance to an action's far end that the level is responsible for, in grid steps.
        high: (N,) longest one.
        level: (N,) number of the level, from 0.
    """

    sizes: tuple[int, ...]
    position: Tensor
    stride: Tensor
    low: Tensor
    high: Tensor
    level: Tensor

    @classmethod
    def of(cls, sizes: Sequence[int], ranges: Sequence[tuple[float, float]], device: torch.device) -> Points:
        """Points of levels whose strides are 1, 2, 4, ..."""

        def each(values: Iterable[float]) -> Tensor:
            # Filled there: a number that is copied to a GPU waits for all that is under way on it.
            return torch.cat(
                [torch.full((size,), value, device=device) for value, size in zip(values, sizes, strict=True)]
            )

        steps = torch.cat([torch.arange(size, device=device) for size in sizes])
        level = each(range(len(sizes)))
        low, high = (each(side) for side in zip(*ranges, strict=True))
        stride = (2**level).float()
        return cls(tuple(sizes), steps * stride, stride, low, high, level)


def default_ranges(levels: int) -> tuple[tuple[float, float], ...]:
    """Distances that each level is responsible for: 0-4, 4-8, 8-16, ..., and the last without end.

    >>> default_ranges(3)
    ((0.0, 4.0), (4.0, 8.0), (8.0, 10000.0))
    """
    edges = [0.0] + [4.0 * 2**level for level in range(levels - 1)] + [10000.0]
    return tuple(itertools.pairwise(edges))
