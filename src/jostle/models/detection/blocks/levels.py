"""Layout of the computed columns of a padded sequence, by level.

The originals pad every video with zeros to a fixed length and compute all of it. Here only a short stretch of the
padding is kept: enough that every valid column sees the neighbours it would have seen. Where a network also takes
means over the whole sequence, what is left out is known all the same, because deep inside the padding every column
is the same:

    original    |---- valid ----|- front -|- constant ---------------- constant -|- tail -|
    computed    |---- valid ----|- front -|- constant -|- tail -|

`front` feels the end of the video and `tail` the end of the padding, through convolutions that are not masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Level:
    """Time axis of one pyramid level."""

    stride: int  # grid steps between neighbouring columns
    points: int  # columns that are valid in the longest video of the batch
    columns: int  # columns that are computed
    padded: int  # columns that the original computes
    tail: int  # how many of the last columns may differ from the constant padding before them
    mask: Tensor  # (B, 1, columns) which columns are valid
    # where columns of constant padding are put in after the step down to this level, and how many
    cut: tuple[int, int] = (0, 0)

    @property
    def missing(self) -> int:
        """Number of columns of constant padding that are not computed."""
        return self.padded - self.columns

    def constant(self, x: Tensor) -> Tensor:
        """Return (B, C, 1) what every missing column holds."""
        place = self.columns - self.tail - 1
        return x[..., place : place + 1]

    def mean(self, x: Tensor) -> Tensor:
        """Return (B, C, 1) the mean over the padded sequence, missing columns included."""
        total = x.sum(-1, keepdim=True, dtype=torch.promote_types(x.dtype, torch.float32))
        if self.missing:
            total = total + self.constant(x) * self.missing
        return (total / self.padded).to(x.dtype)

    def grow(self, x: Tensor) -> Tensor:
        """Return (B, C, columns) after the step down: constant columns put in, so that front and tail stay apart."""
        place, extra = self.cut
        if not extra:
            return x
        between = x[..., place : place + 1].expand(*x.shape[:-1], extra)
        return torch.cat([x[..., :place], between, x[..., place:]], -1)


def padded_length(length: int, *, at_least: int, multiple: int) -> int:
    """Return the length that the originals pad a sequence to: a minimum, or a multiple if it is longer."""
    return -(-max(length, at_least) // multiple) * multiple


def masked_levels(lengths: Tensor, length: int, padded: int, *, levels: int) -> tuple[Level, ...]:
    """Return the levels of a network with masked convolutions, where one column of padding is enough.

    Args:
        lengths: (B,) valid steps of each video, on the device of the features.
        length: steps of the longest.
        padded: steps the original would compute.
    """
    unit = 2 ** (levels - 1)
    columns = min(padded, unit * (-(-length // unit) + 1))
    result = []
    for level in range(levels):
        result.append(Level(2**level, length, columns, padded, 0, _mask(lengths, columns)))
        lengths = (lengths + 1) // 2
        length, columns, padded = (-(-n // 2) for n in (length, columns, padded))
    return tuple(result)


def reaching_levels(
    lengths: Tensor, length: int, padded: int, *, reach: Sequence[int], beyond: int = 1
) -> tuple[Level, ...]:
    """Return the levels of a network with unmasked convolutions, which reach into the padding.

    Args:
        reach: by how many columns the convolutions of each level look to either side, added up.
        beyond: columns after the end of the video that later layers read.
    """
    result: list[Level] = []
    front = tail = columns = 0
    for level, step in enumerate(reach):
        before, tail_before = columns, tail
        front, tail = ((front + 2) // 2 + step, (tail + 1) // 2 + step) if level else (step, step)
        # Three equal columns in a row leave one after the next pooling; a fourth lets them start anywhere.
        needed = length + max(front, beyond) + tail + 4
        columns = min(padded, max(-(-before // 2), needed + needed % 2))  # even, as the padded length is
        cut = (0, 0)
        if level and result[-1].missing:
            cut = ((before - tail_before - 2) // 2, columns - before // 2)
        result.append(Level(2**level, length, columns, padded, tail, _mask(lengths, columns), cut))
        lengths = (lengths + 1) // 2
        length, padded = -(-length // 2), -(-padded // 2)
    return tuple(result)


def _mask(lengths: Tensor, columns: int) -> Tensor:
    return (torch.arange(columns, device=lengths.device) < lengths[:, None])[:, None]  # (B, 1, columns)


@dataclass(frozen=True)
class Row:
    """All levels in one row, so that a shared head runs once.

    Between two levels lie columns that stay zero, as the space around a sequence is for a convolution.
    """

    levels: tuple[Level, ...]  # the levels, from fine to coarse
    widths: tuple[int, ...]  # columns of each level in the row
    gap: int  # columns between two levels
    valid: Tensor  # (B, 1, S) columns of the videos
    inside: Tensor  # (1, 1, S) columns of the levels, valid or padding; all but the gaps

    @classmethod
    def of(cls, levels: tuple[Level, ...], *, gap: int, beyond: int = 1) -> Row:
        """Return the row with the longest video of each level and up to `beyond` columns of padding."""
        widths = tuple(min(level.padded, level.points + beyond) for level in levels)
        masks = [level.mask[..., :width] for level, width in zip(levels, widths, strict=True)]
        ones = [torch.ones_like(mask[:1]) for mask in masks]
        return cls(levels, widths, gap, _joined(masks, gap), _joined(ones, gap))

    @property
    def starts(self) -> tuple[int, ...]:
        """First column of each level."""
        starts, place = [], 0
        for width in self.widths:
            starts.append(place)
            place += width + self.gap
        return tuple(starts)

    def join(self, pyramid: Sequence[Tensor]) -> Tensor:
        """Return (B, C, S) the levels side by side."""
        return _joined([x[..., :width] for x, width in zip(pyramid, self.widths, strict=True)], self.gap)

    def spread(self, values: Tensor) -> Tensor:
        """Return (S,) one value a level (L,) laid out over its columns."""
        repeats = [width + self.gap for width in self.widths[:-1]] + [self.widths[-1]]
        return torch.cat([values[level : level + 1].expand(n) for level, n in enumerate(repeats)])

    def points(self, x: Tensor) -> Tensor:
        """Return (B, N, C) what lies at the points of the levels, without gaps and padding after the longest video."""
        columns = [x[..., a : a + level.points] for a, level in zip(self.starts, self.levels, strict=True)]
        return torch.cat(columns, -1).transpose(1, 2)


def _joined(pieces: Sequence[Tensor], gap: int) -> Tensor:
    spaced = [F.pad(piece, (0, gap)) for piece in pieces[:-1]] + [pieces[-1]]
    return torch.cat(spaced, -1)
