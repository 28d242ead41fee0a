"""The median over a square of seven by seven pixels, by a sorting network whose wires are rows of bytes.

A step takes the smaller and the larger of two rows, value by value, which vector units do sixteen or more at a time,
and neighbouring squares share what they have in common: a column is sorted once, and so is each group of two and of
three. Bytes are only compared, so they are the same on every machine. The merges are Batcher's (1968), by odd and even
positions; of a merge only what leads to a wanted position is kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cv2
import numpy as np
from numba.core import types
from numba.extending import intrinsic

from jostle.core.kernels import kernel
from jostle.core.types.clip import Frame

SIZE, HALF = 7, 3
TILE = 672  # values of a row done at once: 224 pixels, whose 42 lines of scratch memory stay in the fastest cache
STRIDE = 704  # from line to line; a constant, since the compiler must see that lines do not overlap
COLUMN, TWO, THREE = 0, SIZE, 3 * SIZE  # first lines of sorted columns, and of two and three neighbouring ones as one
RANK = (SIZE * SIZE + 1) // 2

Wires = list[int]
Pairs = list[tuple[int, int]]  # two wires each, which leave with the smaller value on the first
Positions = list[tuple[int, int]]  # (line, pixels to the right) each


class Stage(NamedTuple):
    """A part of the network, for one value of a row: read values, compare them, write the wanted ones."""

    reads: Positions
    pairs: Pairs
    wanted: Wires


def merge(a: Wires, b: Wires) -> tuple[Pairs, Wires]:
    """Return the comparisons that merge two sorted lists of wires, and the wires in order."""
    if not a or not b:
        return [], a or b
    if len(a) == len(b) == 1:
        return [(a[0], b[0])], [a[0], b[0]]
    first, even = merge(a[::2], b[::2])
    second, odd = merge(a[1::2], b[1::2])
    pairs = list(zip(odd, even[1:], strict=False))
    order = [even[0], *(wire for pair in pairs for wire in pair), *even[1 + len(odd) :], *odd[len(even) - 1 :]]
    return first + second + pairs, order


def _sort(wires: Wires) -> tuple[Pairs, Wires]:
    if len(wires) == 1:
        return [], wires
    half = len(wires) // 2
    first, low = _sort(wires[:half])
    second, high = _sort(wires[half:])
    third, order = merge(low, high)
    return first + second + third, order


def _merging(left: Positions, right: Positions) -> Stage:
    count = len(left) + len(right)
    return Stage(left + right, *merge(list(range(len(left))), list(range(len(left), count))))


def _lines(first: int, count: int, shift: int = 0) -> Positions:
    return [(first + line, shift) for line in range(count)]


SORT = Stage(_lines(0, SIZE), *_sort(list(range(SIZE))))
MERGE_TWO = _merging(_lines(COLUMN, SIZE), _lines(COLUMN, SIZE, 1))
MERGE_THREE = _merging(_lines(TWO, 2 * SIZE), _lines(COLUMN, SIZE, 2))
# Three columns on the left and three on the right, about their middle; the column between them comes in below.
SIDES = _merging(_lines(THREE, 3 * SIZE), _lines(THREE, 3 * SIZE, HALF + 1))
MIDDLE = SIDES._replace(wanted=SIDES.wanted[RANK - SIZE - 1 : RANK])


def median_of_seven(frame: Frame, out: Frame) -> Frame:
    """Return the median of each channel over seven by seven pixels; edges are replicated."""
    padded = np.asarray(cv2.copyMakeBorder(frame, 3, 3, 3, 3, cv2.BORDER_REPLICATE), np.uint8)
    _median_of_seven(padded.reshape(len(padded), -1), out.reshape(len(out), -1))
    return out


def _smaller(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.icmp_unsigned("<", a, b), a, b)


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.icmp_unsigned(">", a, b), a, b)


class _Lines:
    """Values of lines of bytes that start at a position of an array, `stride` apart."""

    def __init__(self, context: Any, builder: Any, array: Any, value: Any, start: Any, stride: Any) -> None:
        self.builder, self.stride = builder, stride
        self.data = builder.gep(context.make_array(array)(context, builder, value).data, [start])

    def _at(self, line: int, shift: int) -> Any:
        offset = self.builder.mul(self.stride, self.stride.type(line))
        return self.builder.gep(self.data, [self.builder.add(offset, offset.type(3 * shift))])

    def read(self, line: int, shift: int = 0) -> Any:
        return self.builder.load(self._at(line, shift))

    def write(self, line: int, value: Any) -> None:
        self.builder.store(value, self._at(line, 0))


def _values(builder: Any, source: _Lines, stage: Stage) -> list[Any]:
    """Write the instructions of a stage, and return its wanted values."""
    wires: list[Any] = [source.read(*position) for position in stage.reads]
    for a, b in stage.pairs:
        wires[a], wires[b] = _smaller(builder, wires[a], wires[b]), _larger(builder, wires[a], wires[b])
    return [wires[wire] for wire in stage.wanted]


def _step(stage: Stage, first: int) -> Any:
    """Return the function of kernels that reads lines of an array and writes lines of scratch memory, from `first` on.

    Its instructions are emitted here, since Numba takes three seconds to type and lower half a thousand comparisons.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def step(typing: Any, source: Any, start: Any, stride: Any, line: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array, start, stride, scratch, x = arguments
            lines = _Lines(context, builder, line, scratch, x, x.type(STRIDE))
            values = _values(builder, _Lines(context, builder, source, array, start, stride), stage)
            for number, value in enumerate(values, first):
                lines.write(number, value)
            return context.get_dummy_value()

        return types.void(source, types.intp, types.intp, line, types.intp), generate

    return step


@intrinsic  # type: ignore[untyped-decorator]
def _median(typing: Any, line: Any, x: Any) -> Any:
    """Return the median of a square whose columns are sorted and merged."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, x = arguments
        lines = _Lines(context, builder, line, value, x, x.type(STRIDE))
        *below, median = _values(builder, lines, MIDDLE)
        for number, rest in enumerate(reversed(below)):
            median = _smaller(builder, median, _larger(builder, rest, lines.read(COLUMN + number, HALF)))
        return median

    return types.uint8(line, types.intp), generate


_sort_column = _step(SORT, COLUMN)
_merge_two = _step(MERGE_TWO, TWO)
_merge_three = _step(MERGE_THREE, THREE)


@kernel
def _median_of_seven(padded: Frame, out: Frame) -> None:
    height, width = out.shape
    pitch = padded.shape[1]
    line = np.empty(6 * SIZE * STRIDE, np.uint8)
    for y in range(height):
        for first in range(0, width, TILE):
            # Never below 0: this hint lets the compiler vectorise.
            n = max(min(width - first, TILE), 0)
            result = out[y, first:]
            for x in range(n + 18):
                _sort_column(padded, y * pitch + first + x, pitch, line, x)
            for x in range(n + 15):
                _merge_two(line, x, STRIDE, line, x)
            for x in range(n + 12):
                _merge_three(line, x, STRIDE, line, x)
            for x in range(n):
                result[x] = _median(line, x)
