"""Pixels of three bytes, moved as one number of four, and pictures enlarged in whole numbers.

A kernel that picks pixels here and there waits for memory, and three bytes cost three times as much as one number. The
fourth byte belongs to the pixel on the right: written from left to right, it is written once more by that one. Only the
last pixel of an array has none, and is to be moved byte by byte.

A picture is enlarged by its four nearest pixels, as OpenCV's `resize` does it for bytes. Shares have eleven binary
places. Across, the sums keep seven of them; down, each of the two is cut by itself.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from jostle.core.kernels import kernel
from jostle.core.types.clip import Frame


@intrinsic  # type: ignore[untyped-decorator]
def four_bytes(typing: Any, values: Any, at: Any) -> Any:
    """Return the four bytes of an array at an offset as one integer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature, arguments)
        return builder.load(place, align=1)

    return types.uint32(values, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def put_four_bytes(typing: Any, values: Any, at: Any, number: Any) -> Any:
    """Write an integer to four bytes of an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _place(context, builder, signature, arguments), align=1)
        return context.get_dummy_value()

    return types.void(values, types.intp, types.uint32), generate


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the address of an element of a contiguous array of bytes."""
    array = signature.args[0]
    data = context.make_array(array)(context, builder, arguments[0]).data
    place = cgutils.gep_inbounds(builder, data, arguments[1])
    return builder.bitcast(place, ir.IntType(32).as_pointer())


Array = npt.NDArray[Any]

ONE = 2048


def enlarged(frame: Frame, top: int, left: int, tall: int, wide: int, out: Frame) -> Frame:
    """Return the window of a frame that begins at `top` and `left`, enlarged to the size of `out`."""
    height, width = out.shape[:2]
    _enlarge(np.ascontiguousarray(frame), out, top, left, *_rows(tall, height), *_columns(wide, width))
    return out


@lru_cache(8)
def _rows(size: int, enlarged: int) -> tuple[Array, Array, Array]:
    """Return for each row the two source rows, and the share of the second."""
    before, share = _places(size, enlarged)
    above, below = (np.clip(before + step, 0, size - 1) for step in (0, 1))
    return above, below, _whole(share)


@lru_cache(8)
def _columns(size: int, enlarged: int) -> tuple[Array, Array]:
    """Return for each column the first value of the source column, and the share of the next."""
    before, share = _places(size, enlarged)
    share[(before < 0) | (before >= size - 1)] = 0
    return np.clip(before, 0, size - 1).astype(np.uint32) * np.uint32(3), np.repeat(_whole(share), 3)


def _places(size: int, enlarged: int) -> tuple[Array, Array]:
    # Single precision, and the quotient of a quotient, are OpenCV's: where a share is cut depends on them.
    place = ((np.arange(enlarged) + 0.5) * (1 / (enlarged / size)) - 0.5).astype(np.float32)
    before = np.floor(place)
    return before.astype(np.int64), place - before


def _whole(share: Array) -> Array:
    return np.asarray(np.rint(share * np.float32(ONE)), np.uint16)


@kernel
def _enlarge(frame: Frame, out: Frame, top: int, left: int, above: Array, below: Array, row_share: Array,
             before: Array, share: Array) -> None:  # fmt: skip
    height, width, _ = out.shape
    n = width * 3
    source = frame.reshape(len(frame), frame.shape[1] * 3)
    result = out.reshape(height, n)
    near = np.zeros(frame.shape[1] * 3 + 4, np.uint8)
    one, other = np.empty(n + 1, np.uint8), np.empty(n + 1, np.uint8)
    # Two rows lie beside every one that is made. Those of even number are kept in one place, odd ones in the other.
    lines = np.empty((2, n), np.uint16)
    done = np.full(2, -1)
    part = np.empty(n, np.uint16)
    for y in range(height):
        for row in (above[y], below[y]):
            if done[row & 1] == row:
                continue
            done[row & 1] = row
            clean, line = source[top + row, 3 * left :], lines[row & 1]
            for x in range(len(clean)):
                near[x] = clean[x]
            for x in range(width):
                put_four_bytes(one, 3 * x, four_bytes(near, before[x]))
                put_four_bytes(other, 3 * x, four_bytes(near, before[x] + 3))
            for x in range(n):
                rest = np.uint32(np.uint16(np.uint16(ONE) - share[x]))
                first = np.uint32(np.uint32(one[x]) * rest)
                second = np.uint32(np.uint32(other[x]) * np.uint32(share[x]))
                line[x] = np.uint16(np.uint32(first + second) >> np.uint32(4))
        # In two loops, as the compiler would else take twice the bits for the sum, and so do half as many at a time.
        upper, lower, made = lines[above[y] & 1], lines[below[y] & 1], result[y]
        weight = np.uint32(np.uint16(np.uint16(ONE) - row_share[y]))
        for x in range(n):
            part[x] = np.uint16(np.uint32(np.uint32(upper[x]) * weight) >> np.uint32(16))
        weight = np.uint32(row_share[y])
        for x in range(n):
            level = np.uint16(np.uint32(np.uint32(lower[x]) * weight) >> np.uint32(16))
            made[x] = np.uint8(np.uint16(np.uint16(part[x] + level) + np.uint16(2)) >> np.uint16(2))
