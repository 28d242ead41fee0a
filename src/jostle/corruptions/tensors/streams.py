"""The keyed random streams of the compiled kernels, for the rows of many frames at once.

A stream is drawn word after word, so a GPU follows one in each of its threads, by a program of Triton's. Without it
whole tensors take one step after the other, which is slower and gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from jostle.corruptions.kernels.streams import GOLDEN

ROWS = 128  # streams of one program on a GPU


def chances(keys: Sequence[int], rows: range, count: int, device: torch.device) -> Tensor:
    """(N, rows, count) numbers from 0 to 65,535 as int32: 16 random bits each, from the streams of these rows."""
    many = (count + 3) // 4
    a, b = _starts(keys, rows, device)
    words = _followed(a.flatten(), b.flatten(), many)  # (many, N * rows)
    # By rows; of a single column `contiguous` would leave odd strides. A word has four numbers, the lowest first.
    bits = words.new_empty(words.shape[::-1]).copy_(words.t()).view(torch.int16)[:, :count]
    return (bits.to(torch.int32) & 0xFFFF).view(len(keys), len(rows), count)


def _starts(keys: Sequence[int], rows: range, device: torch.device) -> tuple[Tensor, Tensor]:
    """The states (N, rows) that streams begin with."""
    golden = _signed(int(GOLDEN))
    key = torch.tensor([_signed(key) for key in keys], dtype=torch.int64, device=device)
    row = torch.arange(rows.start, rows.stop, device=device, dtype=torch.int64)
    first = _mixed(key[:, None] + (2 * row + 1) * golden)
    return first, _mixed(first + golden)


def _mixed(z: Tensor) -> Tensor:
    z = (z ^ _shifted(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ _shifted(z, 27)) * _signed(0x94D049BB133111EB)
    return z ^ _shifted(z, 31)


def _followed(a: Tensor, b: Tensor, many: int) -> Tensor:
    """(many, streams) words."""
    out = torch.empty((many, len(a)), dtype=torch.int64, device=a.device)
    if a.is_cuda and find_spec("triton") is not None:
        grid = (-(-len(a) // ROWS),)
        _program()[grid](a, b, out, len(a), many, ROWS=ROWS)
        return out
    for place in range(many):
        torch.add(a, b, out=out[place])
        b = b ^ a
        a = _turned(a, 24) ^ b ^ (b << 16)
        b = _turned(b, 37)
    return out


@lru_cache(1)
def _program() -> Any:
    from jostle.corruptions.tensors.stream_program import follow

    return follow


def _shifted(z: Tensor, by: int) -> Tensor:
    """To the right, as numbers without a sign are."""
    return (z >> by) & ((1 << (64 - by)) - 1)


def _turned(z: Tensor, by: int) -> Tensor:
    return (z << by) | _shifted(z, 64 - by)


def _signed(word: int) -> int:
    """The same 64 bits as a number with a sign, which is what tensors hold.

    >>> _signed(2**64 - 1)
    -1
    """
    return word - (1 << 64) if word >= 1 << 63 else word
