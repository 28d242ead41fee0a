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
    grains,
    this,
    that,
    KIND: tl.constexpr,
    FOURS: tl.constexpr,
    GRAIN: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Each thread has a row of a frame and takes eight numbers of it at a time, as memory hands out 32 bytes at once.

    Args:
        table: what is looked up; impulse noise has none.
        streams: rows of all frames.
        grains: numbers that a row is read in, in units of `GRAIN`, by which it is known that they lie well.
        this: share of salt, bits of a gain, or bits of a chance that say its slot, by kind.
        that: share of salt and pepper, the gain of 1, or how many chances at either end have slices of their own.
        FOURS: whether rows are read in numbers of four bytes, or in bytes.
    """
    if FOURS:
        frames = frames.to(tl.pointer_type(tl.int32))
        out = out.to(tl.pointer_type(tl.int32))
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < streams
    a, b = begun(tl.load(keys + row // height, mask=inside, other=0), row % height)
    many = grains * GRAIN
    column = tl.arange(0, 8)
    place = (row.to(tl.int64) * grains * GRAIN)[:, None] + column[None, :]
    for start in range(0, many, 8):
        known = inside[:, None] & (column + start < many)[None, :]
        if FOURS:
            given = tl.load(frames + place + start, mask=known, other=0)
        else:
            given = tl.load(frames + place + start, mask=known, other=0).to(tl.int32)
        p, q, r, s, t, u, v, w = apart(given, ROWS)
        if FOURS:
            p, a, b = four(p, a, b, table, this, that, KIND)
            q, a, b = four(q, a, b, table, this, that, KIND)
            r, a, b = four(r, a, b, table, this, that, KIND)
            s, a, b = four(s, a, b, table, this, that, KIND)
            t, a, b = four(t, a, b, table, this, that, KIND)
            u, a, b = four(u, a, b, table, this, that, KIND)
            v, a, b = four(v, a, b, table, this, that, KIND)
            w, a, b = four(w, a, b, table, this, that, KIND)
            tl.store(out + place + start, together(p, q, r, s, t, u, v, w, ROWS), mask=known)
        else:
            p, q, r, s = one_each(p, q, r, s, a + b, table, this, that, KIND)
            a, b = stepped(a, b)
            t, u, v, w = one_each(t, u, v, w, a + b, table, this, that, KIND)
            a, b = stepped(a, b)
            tl.store(out + place + start, together(p, q, r, s, t, u, v, w, ROWS).to(tl.uint8), mask=known)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def apart(x, ROWS: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """The eight columns of rows."""
    even, odd = tl.split(tl.reshape(x, [ROWS, 4, 2]))
    first, third = tl.split(tl.reshape(even, [ROWS, 2, 2]))
    second, fourth = tl.split(tl.reshape(odd, [ROWS, 2, 2]))
    p, t = tl.split(first)
    q, u = tl.split(second)
    r, v = tl.split(third)
    s, w = tl.split(fourth)
    return p, q, r, s, t, u, v, w


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def together(p, q, r, s, t, u, v, w, ROWS: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Rows of these eight columns."""
    even = tl.reshape(tl.join(tl.join(p, t), tl.join(r, v)), [ROWS, 4])
    odd = tl.reshape(tl.join(tl.join(q, u), tl.join(s, w)), [ROWS, 4])
    return tl.reshape(tl.join(even, odd), [ROWS, 8])


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def four(x, a, b, table, this, that, KIND: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Four bytes in one number with noise, for which one word is drawn."""
    x = x.to(tl.uint32, bitcast=True)
    p, q = (x & 0xFF).to(tl.int32), ((x >> 8) & 0xFF).to(tl.int32)
    r, s = ((x >> 16) & 0xFF).to(tl.int32), (x >> 24).to(tl.int32)
    p, q, r, s = one_each(p, q, r, s, a + b, table, this, that, KIND)
    a, b = stepped(a, b)
    return p | (q << 8) | (r << 16) | (s << 24), a, b


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def one_each(p, q, r, s, word, table, this, that, KIND: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Four values with noise from a word of 64 bits, the lowest 16 for the first."""
    low, high = word.to(tl.uint32), (word >> 32).to(tl.uint32)
    p = noised(p, (low & 0xFFFF).to(tl.int32), table, this, that, KIND)
    q = noised(q, (low >> 16).to(tl.int32), table, this, that, KIND)
    r = noised(r, (high & 0xFFFF).to(tl.int32), table, this, that, KIND)
    s = noised(s, (high >> 16).to(tl.int32), table, this, that, KIND)
    return p, q, r, s


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def noised(clean, chance, table, this, that, KIND: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Values with noise, from 16 random bits each."""
    if KIND == "impulse":
        noisy = tl.where(chance < this, 255, tl.where(chance < that, 0, clean))
    elif KIND == "shot":
        entry = tl.load(table.to(tl.pointer_type(tl.int32)) + (clean << this) + (chance >> (16 - this)))
        place = chance & ((65536 >> this) - 1)
        noisy = tl.where(place < (entry >> 16), entry, entry >> 8) & 0xFF
        several = entry < 0
        # A slot has its part of 4096 slices, each of 16 chances, and behind them the slices of single chances.
        split = ((chance + that) & 0xFFFF) < 2 * that
        slice = tl.where(split, (4096 >> this) + (chance & (that - 1)), place >> 4)
        exact = tl.load(table + (entry & 0x7FFFFFFF) + slice, mask=several, other=0).to(tl.int32)
        noisy = tl.where(several, exact, noisy)
    else:
        below = chance < 0x8000
        found = tl.load(table + (tl.where(below, chance ^ 0x7FFF, chance) & 0x7FFF)).to(tl.int32)
        if KIND == "gaussian":
            noisy = clean + tl.where(below, -found - 1, found)
        else:
            noisy = (clean * (tl.where(below, -found, found) + that)) >> this
        noisy = tl.minimum(tl.maximum(noisy, 0), 255)
    return noisy
