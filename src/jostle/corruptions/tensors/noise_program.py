"""The program that draws noise and lays it on in one pass; see `jostle.corruptions.noise`. It needs Triton."""

from __future__ import annotations

import triton
import triton.language as tl

from jostle.corruptions.tensors.stream_program import begun, stepped


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def noise(  # type: ignore[no-untyped-def, unused-ignore]
    frames,
    out,
    keys,
    table,
    streams,
    height,
    values,
    this,
    that,
    KIND: tl.constexpr,
    EIGHTS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Each thread has a row of a frame, and takes eight values of it at a time, for which it draws two words.

    Args:
        frames: rows of bytes, or of eight bytes in one number.
        table: what is looked up; impulse noise has none.
        streams: rows of all frames.
        values: of a row.
        this: share of salt, bits of a gain, or slices of a row of the table, by kind.
        that: share of salt and pepper, the gain of 1, or values that are rare, by kind.
        EIGHTS: whether rows are of eight bytes in one number.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < streams
    a, b = begun(tl.load(keys + row // height, mask=inside, other=0), row % height)
    place = row.to(tl.int64) * values
    column = tl.zeros([ROWS], tl.int32)  # a mask has to be as wide as what it is for
    for first in range(0, values, 8):
        if EIGHTS:
            many = tl.load(frames + (place + first) // 8, mask=inside, other=0).to(tl.uint64, bitcast=True)
            made = tl.zeros([ROWS], tl.uint64)
        word = a + b
        a, b = stepped(a, b)
        for i in tl.static_range(8):
            if i == 4:
                word = a + b
                a, b = stepped(a, b)
            chance = ((word >> (16 * (i % 4))) & 0xFFFF).to(tl.int32)
            if EIGHTS:
                clean = ((many >> (8 * i)) & 0xFF).to(tl.int32)
            else:
                known = inside & (column + first + i < values)
                clean = tl.load(frames + place + first + i, mask=known, other=0).to(tl.int32)
            noisy = noised(clean, chance, table, this, that, KIND)
            if EIGHTS:
                made = made | (noisy.to(tl.uint64) << (8 * i))
            else:
                tl.store(out + place + first + i, noisy.to(tl.uint8), mask=known)
        if EIGHTS:
            tl.store(out + (place + first) // 8, made.to(tl.int64, bitcast=True), mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def noised(clean, chance, table, this, that, KIND: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Values with noise, from 16 random bits each."""
    if KIND == "impulse":
        noisy = tl.where(chance < this, 255, tl.where(chance < that, 0, clean))
    elif KIND == "shot":
        slot = tl.where(chance < that, this + chance, chance >> 4)
        slot = tl.where(chance >= 65536 - that, this + that + (chance & (that - 1)), slot)
        noisy = tl.load(table + clean * (this + 2 * that) + slot).to(tl.int32)
    else:
        below = chance < 0x8000
        found = tl.load(table + (tl.where(below, chance ^ 0x7FFF, chance) & 0x7FFF)).to(tl.int32)
        if KIND == "gaussian":
            noisy = clean + tl.where(below, -found - 1, found)
        else:
            noisy = (clean * (tl.where(below, -found, found) + that)) >> this
        noisy = tl.minimum(tl.maximum(noisy, 0), 255)
    return noisy
