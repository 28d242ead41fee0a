"""The keyed random streams of the compiled kernels, for the rows of many frames at once.

A stream is drawn word after word, so a GPU follows one in each of its threads, by a program of Triton's. Without it
whole tensors take one step after the other, which is slower and gives the same bits.
"""

from __future__ import annotations

import torch
from torch import Tensor

from jostle.core.triton import has_triton, runs_on
from jostle.corruptions.kernels.streams import GOLDEN

if has_triton():
    from jostle.corruptions.gpu.stream_program import follow

ROWS = 128  # streams of one program on a GPU


def chances(keys: Tensor, rows: range, count: int) -> Tensor:
    """(N, rows, count) numbers from 0 to 65,535 as int32: 16 random bits each, from the streams of these rows."""
    words = words_of(keys, rows, count)
    # By rows; of a single column `contiguous` would leave odd strides. A word has four numbers, the lowest first.
    bits = words.new_empty(words.shape[::-1]).copy_(words.t()).view(torch.int16)[:, :count]
    return (bits.to(torch.int32) & 0xFFFF).view(len(keys), len(rows), count)


def words_of(keys: Tensor, rows: range, count: int) -> Tensor:
    """(words, N * rows) words of 64 bits, as many as have `count` numbers of 16."""
    many, streams = (count + 3) // 4, len(keys) * len(rows)
    out = torch.empty((many, streams), dtype=torch.int64, device=keys.device)
    if runs_on(keys):
        follow[(-(-streams // ROWS),)](keys, out, streams, len(rows), rows.start, many, ROWS=ROWS)
        return out
    a, b = _starts(keys, rows)
    for place in range(many):
        torch.add(a, b, out=out[place])
        b = b ^ a
        a = _turned(a, 24) ^ b ^ (b << 16)
        b = _turned(b, 37)
    return out


def _starts(keys: Tensor, rows: range) -> tuple[Tensor, Tensor]:
    """The states that streams begin with, those of one key beside each other."""
    golden = _signed(int(GOLDEN))
    row = torch.arange(rows.start, rows.stop, device=keys.device, dtype=torch.int64)
    first = _mixed(keys[:, None] + (2 * row + 1) * golden).flatten()
    return first, _mixed(first + golden)


def _mixed(z: Tensor) -> Tensor:
    z = (z ^ _shifted(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ _shifted(z, 27)) * _signed(0x94D049BB133111EB)
    return z ^ _shifted(z, 31)


def _shifted(z: Tensor, by: int) -> Tensor:
    """To the right, as numbers without a sign are."""
    return (z >> by) & ((1 << (64 - by)) - 1)


def _turned(z: Tensor, by: int) -> Tensor:
    return (z << by) | _shifted(z, 64 - by)


def _signed(word: int) -> int:
    """Reinterpret 64 bits as a signed integer, which is what tensors hold.

    >>> _signed(2**64 - 1)
    -1
    """
    return word - (1 << 64) if word >= 1 << 63 else word
