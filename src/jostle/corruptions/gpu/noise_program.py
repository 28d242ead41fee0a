"""The program that draws noise and lays it on in one pass; see `jostle.corruptions.noise`. It needs Triton.

A copy of the frames leaves time for a dozen instructions a byte. So bytes stay four to a number wherever one
instruction then does for several, and chances are compared where they stand in a word.
"""

from __future__ import annotations

import triton
import triton.language as tl

from jostle.corruptions.gpu.stream_program import begun, stepped


@triton.jit(do_not_specialize=["salt", "either"])  # type: ignore[untyped-decorator, unused-ignore]
def noise(  # type: ignore[no-untyped-def, unused-ignore]
    frames,
    out,
    keys,
    table,
    streams,
    height,
    grains,
    salt,
    either,
    KIND: tl.constexpr,
    BITS: tl.constexpr,
    FOURS: tl.constexpr,
    GRAIN: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Each thread has a row of a frame and takes eight numbers of it at a time, as memory hands out 32 bytes at once.

    Args:
        table: lookup table; none for impulse noise.
        streams: rows of all frames. A thread behind the last does that one again, which spares all of them a mask.
        grains: numbers that a row is read in, in units of `GRAIN`, by which it is known that they lie well.
        salt: how many of 65,536 chances give white, for impulse noise.
        either: how many give white or black.
        BITS: of a gain, of a chance that say its slot, or of a chance as a real number that do so, by kind.
        FOURS: whether rows are read in numbers of four bytes, or in bytes.
    """
    if FOURS:
        frames = frames.to(tl.pointer_type(tl.uint32))
        out = out.to(tl.pointer_type(tl.uint32))
    row = tl.minimum(tl.program_id(0) * ROWS + tl.arange(0, ROWS), streams - 1)
    a, b = begun(tl.load(keys + row // height), row % height)
    many = grains * GRAIN
    column = tl.arange(0, 8)[None, :]
    place = (row.to(tl.int64) * grains * GRAIN)[:, None] + column
    for start in range(0, many, 8):
        if GRAIN == 8:
            given = tl.load(frames + place + start)
        else:
            given = tl.load(frames + place + start, mask=column + start < many, other=0)
        # What is computed is four numbers at a time. Written are eight: of 16 bytes each, memory takes as long.
        x, y = tl.split(tl.permute(tl.reshape(given, [ROWS, 2, 4]), (0, 2, 1)))
        x, a, b = noised(x, a, b, table, salt, either, KIND, BITS, FOURS, ROWS)
        y, a, b = noised(y, a, b, table, salt, either, KIND, BITS, FOURS, ROWS)
        made = tl.reshape(tl.permute(tl.join(x, y), (0, 2, 1)), [ROWS, 8])
        if GRAIN == 8:
            tl.store(out + place + start, made)
        else:
            tl.store(out + place + start, made, mask=column + start < many)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def noised(  # type: ignore[no-untyped-def, unused-ignore]
    x, a, b, table, salt, either, KIND: tl.constexpr, BITS: tl.constexpr, FOURS: tl.constexpr, ROWS: tl.constexpr
):
    """Four numbers of each row with noise, and the state of its stream behind them."""
    word = a + b
    a, b = stepped(a, b)
    if FOURS:
        second = a + b
        a, b = stepped(a, b)
        third = a + b
        a, b = stepped(a, b)
        words = tl.join(tl.join(word, third), tl.join(second, a + b))
        a, b = stepped(a, b)
        x = laid_on(x, tl.reshape(words, [ROWS, 4]), table, salt, either, KIND, BITS)
    else:
        shift = 8 * tl.arange(0, 4)[None, :]
        x = laid_on(tl.sum(x.to(tl.uint32) << shift, 1), word, table, salt, either, KIND, BITS)
        x = (x[:, None] >> shift).to(tl.uint8)
    return x, a, b


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def laid_on(x, word, table, salt, either, KIND: tl.constexpr, BITS: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Four bytes in one number with noise, from a word whose lowest 16 bits are the chance of the first."""
    low, high = word.to(tl.uint32), (word >> 32).to(tl.uint32)
    if KIND == "impulse":
        # What stands below a chance in the upper half of a number does not matter to the comparison.
        salt, either = salt.to(tl.uint32) << 16, either.to(tl.uint32) << 16
        x = salted(x, low << 16, salt, either, 0)
        x = salted(x, low, salt, either, 8)
        x = salted(x, high << 16, salt, either, 16)
        return salted(x, high, salt, either, 24)
    even, odd = x & 0x00FF00FF, (x >> 8) & 0x00FF00FF
    if KIND == "shot":
        p = counted(even & 0xFF, low << 16, table, BITS)
        q = counted(odd & 0xFF, low & 0xFFFF0000, table, BITS)
        r = counted(even >> 16, high << 16, table, BITS)
        s = counted(odd >> 16, high & 0xFFFF0000, table, BITS)
        return p | (q << 8) | (r << 16) | (s << 24)
    if KIND == "gaussian":
        p = added((even << 16) | (low & 0xFFFF), low << 16, table, BITS)
        q = added((odd << 16) | (low >> 16), low & 0xFFFF0000, table, BITS)
        r = added((even & 0xFFFF0000) | (high & 0xFFFF), high << 16, table, BITS)
        s = added((odd & 0xFFFF0000) | (high >> 16), high & 0xFFFF0000, table, BITS)
    else:
        # Products have the byte from the 16th bit on too.
        even, odd = even << (16 - BITS), odd << (16 - BITS)
        p = (even & 0xFFFF).to(tl.int32) * factor(low & 0xFFFF, table, BITS)
        q = (odd & 0xFFFF).to(tl.int32) * factor(low >> 16, table, BITS)
        r = (even >> 16).to(tl.int32) * factor(high & 0xFFFF, table, BITS)
        s = (odd >> 16).to(tl.int32) * factor(high >> 16, table, BITS)
    p, q, r, s = within(p), within(q), within(r), within(s)
    return (p >> 16) | ((q >> 8) & 0xFF00) | (r & 0xFF0000) | ((s << 8) & 0xFF000000)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def salted(x, chance, salt, either, BIT: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Four bytes, of which that from `BIT` on is black, white or kept."""
    white: tl.constexpr = 0xFF << BIT
    x = tl.where(chance < either, x & (0xFFFFFFFF - white), x)
    return tl.where(chance < salt, x | white, x)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def added(x, chance, table, BITS: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """From the 16th bit on, values with noise; `x` has them there, and the chance below. See `_gaussian_slots`."""
    real = chance.to(tl.int32, bitcast=True).to(tl.float32)
    entry = tl.load(table + (real.to(tl.uint32, bitcast=True) >> (23 - BITS)))
    return entry + x.to(tl.int32, bitcast=True)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def factor(chance, table, BITS: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Return the factor of speckle noise; only the upper half of the table is stored, to fit a fast cache."""
    turned = (chance >> 15).to(tl.int32) - 1
    gain = tl.load(table + ((chance ^ turned.to(tl.uint32)) & 0x7FFF)).to(tl.int32)
    return (gain ^ turned) - turned + (1 << BITS)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def within(x):  # type: ignore[no-untyped-def, unused-ignore]
    """Clamp the byte from the 16th bit on to 0..255."""
    return tl.maximum(tl.minimum(x, 0xFFFFFF), 0).to(tl.uint32)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def counted(x, chance, table, BITS: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Values with shot noise, from chances in the upper 16 bits. See `_shot_slots`."""
    # In bytes from the beginning, which takes fewer instructions than in entries.
    slot = (x << (BITS + 2)) | ((chance >> (30 - BITS)) & ((4 << BITS) - 4))
    entry = tl.load((table + slot).to(tl.pointer_type(tl.uint32)))
    inner = chance << BITS
    noisy = tl.where(inner <= entry, entry, entry >> 8)
    several: tl.constexpr = 0x100000000 - (1 << (16 + BITS))
    piece = (entry - several) + ((inner >> (16 + BITS)) >> (entry & 7))
    return tl.load(table + piece, mask=entry >= several, other=noisy.to(tl.uint8)).to(tl.uint32)
