"""Frames out of order: index maps over a stretch of video (Schiappa et al., 2023).

Each function returns, for every moment of the span, the index of the frame displayed then. The length is kept, so the
maps serve timestamps, features and labels as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Times
from jostle.corruptions.engine.corruption import corruption

Indices = npt.NDArray[np.int64]
Rng = np.random.Generator


@corruption(level="time", scale=(4, 8, 16, 32, 64), cites="schiappa2023")
def jumble(times: Times, length: int, rng: Rng) -> Indices:
    """Frames shuffled inside consecutive pieces of `length` frames; the last piece may be short."""
    pieces = _pieces(len(times), length)
    return np.concatenate([rng.permutation(piece) for piece in pieces] or [_none()])


@corruption(level="time", scale=(36, 25, 16, 9, 4), cites="schiappa2023")
def box_jumble(times: Times, length: int, rng: Rng) -> Indices:
    """Whole pieces of `length` frames shuffled, each kept in order inside."""
    pieces = _pieces(len(times), length)
    return np.concatenate([pieces[i] for i in rng.permutation(len(pieces))] or [_none()])


@corruption(level="time", scale=((0.8, 1), (0.6, 1), (0.4, 1), (0.2, 1), (0.1, 1)), cites="schiappa2023")
def freeze(times: Times, selection: tuple[float, int], rng: Rng) -> Indices:
    """Only a share of the frames is shown, at least so many, the first among them; each is held until the next."""
    share, least = selection
    n = len(times)
    if n == 0:
        return _none()
    count = min(max(int(share * n), least, 1), n)
    indices = np.zeros(n, np.int64)
    picked = 1 + rng.permutation(n - 1)[: count - 1]
    indices[picked] = picked
    return np.maximum.accumulate(indices)


@corruption(level="time", scale=(2, 4, 8, 16, 32), cites="schiappa2023", draws=False)
def reverse_sampling(times: Times, step: int, rng: None) -> Indices:
    """Every `step`-th frame, from the last to the first, each held for `step` frames."""
    n = len(times)
    sampled = np.arange(0, n, step, dtype=np.int64)[::-1]
    return np.repeat(sampled, step)[:n]


def _pieces(n: int, length: int) -> list[npt.NDArray[Any]]:
    return [np.arange(first, min(first + length, n), dtype=np.int64) for first in range(0, n, length)]


def _none() -> Indices:
    return np.zeros(0, np.int64)
