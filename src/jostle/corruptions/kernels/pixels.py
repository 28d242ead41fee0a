"""Pixels of three bytes, moved as one number of four.

A kernel that picks pixels here and there waits for memory, and three bytes cost three times as much as one number. The
fourth byte belongs to the pixel on the right: written from left to right, it is written once more by that one. Only the
last pixel of an array has none, and is to be moved byte by byte.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


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
