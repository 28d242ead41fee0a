"""Reach of a layer in time, by which a clip is computed again only around what changed."""

from __future__ import annotations

from typing import NamedTuple


class Reach(NamedTuple):
    """Steps that a layer sees for one step of its output; beyond the ends of a clip there are zeros.

    The layer keeps the edges: of T steps, a multiple of its stride, it makes T / stride.

    >>> Reach(7, 2).first(3)
    4
    """

    kernel: int = 3
    stride: int = 1

    def first(self, step: int) -> int:
        """Return the first step that the layer sees for this one, negative before the clip."""
        return step * self.stride - (self.kernel - self.stride) // 2
