"""Programs that change light and colour in one pass; see `jostle.corruptions.light`. They need Triton."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def by_table(frames, out, table, fours, KIND: tl.constexpr, SIZE: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Pixels by a table over their brightest channel: a thread has four of them, which are three numbers of 32 bits."""
    four = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = four < fours
    place = 3 * four.to(tl.int64)
    a, b, c = twelve(frames, place, inside)
    x = tl.zeros([SIZE], tl.uint32)
    y = tl.zeros([SIZE], tl.uint32)
    z = tl.zeros([SIZE], tl.uint32)
    for i in tl.static_range(4):
        red, green, blue = byte_of(a, b, c, 3 * i), byte_of(a, b, c, 3 * i + 1), byte_of(a, b, c, 3 * i + 2)
        most = tl.maximum(red, tl.maximum(green, blue))
        if KIND == "brightness":
            red = tl.load(table + most * 256 + red).to(tl.int32)
            green = tl.load(table + most * 256 + green).to(tl.int32)
            blue = tl.load(table + most * 256 + blue).to(tl.int32)
        else:
            least = tl.minimum(red, tl.minimum(green, blue))
            factor = tl.load(table + most * 256 + least)
            top = most.to(tl.float32)
            other = (top * (factor + 1.0) + 1e-3).to(tl.int32)
            grey = factor < 0
            red = tl.where(grey, red, vivid(red, top, factor))
            green = tl.where(grey, other, vivid(green, top, factor))
            blue = tl.where(grey, other, vivid(blue, top, factor))
        x, y, z = with_byte(x, y, z, red, 3 * i)
        x, y, z = with_byte(x, y, z, green, 3 * i + 1)
        x, y, z = with_byte(x, y, z, blue, 3 * i + 2)
    put_twelve(out, place, x, y, z, inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def twelve(frames, place, inside):  # type: ignore[no-untyped-def, unused-ignore]
    """Load twelve bytes for each thread as three integers."""
    there = frames.to(tl.pointer_type(tl.uint32)) + place
    a = tl.load(there, mask=inside, other=0)
    b = tl.load(there + 1, mask=inside, other=0)
    c = tl.load(there + 2, mask=inside, other=0)
    return a, b, c


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def put_twelve(out, place, a, b, c, inside):  # type: ignore[no-untyped-def, unused-ignore]
    """Store twelve bytes of each thread."""
    there = out.to(tl.pointer_type(tl.uint32)) + place
    tl.store(there, a, mask=inside)
    tl.store(there + 1, b, mask=inside)
    tl.store(there + 2, c, mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def vivid(value, top, factor):  # type: ignore[no-untyped-def, unused-ignore]
    """Return a channel with its distance from the brightest scaled."""
    level = (top + 1e-3) - (top - value.to(tl.float32)) * factor
    return tl.maximum(level, 0.0).to(tl.int32)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def byte_of(a, b, c, AT: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Return one byte of twelve."""
    if AT < 4:
        word = a
    elif AT < 8:
        word = b
    else:
        word = c
    return ((word >> (8 * (AT % 4))) & 0xFF).to(tl.int32)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def with_byte(a, b, c, value, AT: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Return twelve bytes with one of them replaced."""
    put = value.to(tl.uint32) << (8 * (AT % 4))
    if AT < 4:
        a = a | put
    elif AT < 8:
        b = b | put
    else:
        c = c | put
    return a, b, c


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def add_up(frames, totals, fours, SIZE: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Add a part of a frame to the sums of its channels, which are whole numbers: their order does not matter."""
    frame = tl.program_id(0)
    four = tl.program_id(1) * SIZE + tl.arange(0, SIZE)
    inside = four < fours
    place = 3 * (frame.to(tl.int64) * fours + four)
    a, b, c = twelve(frames, place, inside)
    red = (byte_of(a, b, c, 0) + byte_of(a, b, c, 3)) + (byte_of(a, b, c, 6) + byte_of(a, b, c, 9))
    green = (byte_of(a, b, c, 1) + byte_of(a, b, c, 4)) + (byte_of(a, b, c, 7) + byte_of(a, b, c, 10))
    blue = (byte_of(a, b, c, 2) + byte_of(a, b, c, 5)) + (byte_of(a, b, c, 8) + byte_of(a, b, c, 11))
    tl.atomic_add(totals + 3 * frame, tl.sum(red, 0).to(tl.int64))
    tl.atomic_add(totals + 3 * frame + 1, tl.sum(green, 0).to(tl.int64))
    tl.atomic_add(totals + 3 * frame + 2, tl.sum(blue, 0).to(tl.int64))


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def towards_mean(frames, out, totals, kept, fours, SIZE: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Draw a part of a frame towards the means of its channels."""
    frame = tl.program_id(0)
    # The other way round than they were added up: what was read last may still be in the cache.
    four = (tl.num_programs(1) - 1 - tl.program_id(1)) * SIZE + tl.arange(0, SIZE)
    inside = four < fours
    place = 3 * (frame.to(tl.int64) * fours + four)
    rest = tl.full([], 1.0, tl.float64) - kept
    pixels = 4 * fours
    red = (tl.load(totals + 3 * frame).to(tl.float64) * rest / pixels).to(tl.float32)
    green = (tl.load(totals + 3 * frame + 1).to(tl.float64) * rest / pixels).to(tl.float32)
    blue = (tl.load(totals + 3 * frame + 2).to(tl.float64) * rest / pixels).to(tl.float32)
    a, b, c = twelve(frames, place, inside)
    x = tl.zeros([SIZE], tl.uint32)
    y = tl.zeros([SIZE], tl.uint32)
    z = tl.zeros([SIZE], tl.uint32)
    for i in tl.static_range(4):
        x, y, z = with_byte(x, y, z, drawn_to(byte_of(a, b, c, 3 * i), kept, red), 3 * i)
        x, y, z = with_byte(x, y, z, drawn_to(byte_of(a, b, c, 3 * i + 1), kept, green), 3 * i + 1)
        x, y, z = with_byte(x, y, z, drawn_to(byte_of(a, b, c, 3 * i + 2), kept, blue), 3 * i + 2)
    put_twelve(out, place, x, y, z, inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def drawn_to(value, kept, lift):  # type: ignore[no-untyped-def, unused-ignore]
    """Return a value scaled towards the mean."""
    return (value.to(tl.float32) * kept + lift).to(tl.int32)
