"""Programs for the keys of many frames and for random streams, one in each thread; they need Triton.

See `jostle.corruptions.kernels.blake2b` and `sfc64`.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def mixed(z):  # type: ignore[no-untyped-def, unused-ignore]
    """Return Splitmix64's scrambling of one word."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def begun(key, row):  # type: ignore[no-untyped-def, unused-ignore]
    """Return the initial state of the streams of rows, from keys as unsigned bits."""
    first = mixed(key.to(tl.uint64, bitcast=True) + (2 * row + 1).to(tl.uint64) * 0x9E3779B97F4A7C15)
    return first, mixed(first + 0x9E3779B97F4A7C15)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def stepped(a, b):  # type: ignore[no-untyped-def, unused-ignore]
    """Return the next state; the word drawn is the sum of the state before."""
    b = b ^ a
    a = ((a << 24) | (a >> 40)) ^ b ^ (b << 16)
    return a, (b << 37) | (b >> 27)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def chance_of(words, place, streams, inside):  # type: ignore[no-untyped-def, unused-ignore]
    """16 bits as a number, by its place in a stream; four are a word, and `words` is where the stream's first lies."""
    word = tl.load(words + (place // 4).to(tl.int64) * streams, mask=inside, other=0)
    return (word >> (16 * (place % 4))) & 0xFFFF


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def follow(keys, out, streams, rows, first, many, ROWS: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Write word after word of each stream, of `rows` for each key from row `first` on: those of one place together."""
    stream = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = stream < streams
    a, b = begun(tl.load(keys + stream // rows, mask=inside, other=0), first + stream % rows)
    for place in range(many):
        tl.store(out + place * streams + stream, (a + b).to(tl.int64, bitcast=True), mask=inside)
        a, b = stepped(a, b)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def hash_frames(  # type: ignore[no-untyped-def, unused-ignore]
    before, rows, table, out, count, frames, first, words, behind, room, EVERY: tl.constexpr, LANES: tl.constexpr
):
    """Encode the message of each frame and hash it by BLAKE2b, one thread a frame.

    Args:
        before: what comes before the number of a frame: `first` bytes for all, in whole words, and then what each clip
            has, in `words` of which the last is its size in bytes.
        rows: of each frame its number among those of all clips, each of so many `frames`; `EVERY` is without.
        table: eight words that a state begins with, eight that a block does, twelve times the order of a block's, and
            what comes behind the number of a frame, `behind` bytes.
        out: (1 + `room`, `count`) keys, and words for what is spelt.
    """
    n = tl.program_id(0) * LANES + tl.arange(0, LANES)
    inside = n < count
    row = n
    if not EVERY:
        row = tl.load(rows + n, mask=inside, other=0)
    own = before + (first + 7) // 8 + (row // frames).to(tl.int64) * words
    size = first + tl.load(own + words - 1, mask=inside, other=1)
    number, digits = figures(row % frames)
    end = size + 8 + digits
    message = out + count + n
    for k in range(room):
        word = tl.load(before + k, mask=8 * k < first, other=0).to(tl.uint64, bitcast=True)
        word = word | falling_on(k, own, words - 1, first, inside)
        word = word | one_falling_on(k, digits.to(tl.uint64), size) | one_falling_on(k, number, size + 8)
        word = word | falling_on(k, table + 208, (behind + 7) // 8, end, inside)
        tl.store(message + k * count, word.to(tl.int64, bitcast=True), mask=inside)
    tl.debug_barrier()  # another thread may read what one has written
    size = end + behind
    blocks = (size + 127) // 128
    nothing = tl.zeros([LANES], tl.uint64)
    h0, h1, h2, h3 = nothing + at(table, 0), nothing + at(table, 1), nothing + at(table, 2), nothing + at(table, 3)
    h4, h5, h6, h7 = nothing + at(table, 4), nothing + at(table, 5), nothing + at(table, 6), nothing + at(table, 7)
    for block in range(tl.max(blocks, 0)):
        last = block == blocks - 1
        seen = tl.where(last, size, 128 * (block + 1)).to(tl.uint64)
        a, b, c, d, e, f, g, i = h0, h1, h2, h3, h4, h5, h6, h7
        p, q, r, s = nothing + at(table, 8), nothing + at(table, 9), nothing + at(table, 10), nothing + at(table, 11)
        t, u, v, w = seen ^ at(table, 12), nothing + at(table, 13), nothing + at(table, 14), nothing + at(table, 15)
        v = tl.where(last, v ^ 0xFFFFFFFFFFFFFFFF, v)
        m = message + 16 * block * count
        for turn in range(12):
            o = table + 16 + 16 * turn
            a, e, p, t = stirred(a, e, p, t, m, count, o, 0, inside)
            b, f, q, u = stirred(b, f, q, u, m, count, o, 2, inside)
            c, g, r, v = stirred(c, g, r, v, m, count, o, 4, inside)
            d, i, s, w = stirred(d, i, s, w, m, count, o, 6, inside)
            a, f, r, w = stirred(a, f, r, w, m, count, o, 8, inside)
            b, g, s, t = stirred(b, g, s, t, m, count, o, 10, inside)
            c, i, p, u = stirred(c, i, p, u, m, count, o, 12, inside)
            d, e, q, v = stirred(d, e, q, v, m, count, o, 14, inside)
        live = block < blocks
        h0, h1 = tl.where(live, h0 ^ a ^ p, h0), tl.where(live, h1 ^ b ^ q, h1)
        h2, h3 = tl.where(live, h2 ^ c ^ r, h2), tl.where(live, h3 ^ d ^ s, h3)
        h4, h5 = tl.where(live, h4 ^ e ^ t, h4), tl.where(live, h5 ^ f ^ u, h5)
        h6, h7 = tl.where(live, h6 ^ g ^ v, h6), tl.where(live, h7 ^ i ^ w, h7)
    tl.store(out + n, h0.to(tl.int64, bitcast=True), mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def figures(number):  # type: ignore[no-untyped-def, unused-ignore]
    """Return a number as up to eight decimal digits, the first lowest, and their count."""
    letters = (48 + number % 10).to(tl.uint64)
    count = tl.full(number.shape, 1, tl.int64)
    rest = number // 10
    for _ in range(7):
        letters = tl.where(rest > 0, (letters << 8) | (48 + rest % 10).to(tl.uint64), letters)
        count += (rest > 0).to(tl.int64)
        rest = rest // 10
    return letters, count


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def falling_on(k, words, count, place, inside):  # type: ignore[no-untyped-def, unused-ignore]
    """Return the part of word `k` of a message that `count` words of letters at an offset fill."""
    i = k - place // 8
    here = tl.load(words + i, mask=inside & (i >= 0) & (i < count), other=0).to(tl.uint64, bitcast=True)
    before = tl.load(words + i - 1, mask=inside & (i > 0) & (i <= count), other=0).to(tl.uint64, bitcast=True)
    bits = (8 * (place % 8)).to(tl.uint64)
    return (here << bits) | ((before >> 1) >> (63 - bits))


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def one_falling_on(k, word, place):  # type: ignore[no-untyped-def, unused-ignore]
    """Return the part of word `k` of a message that one word of letters at an offset fills."""
    i = k - place // 8
    bits = (8 * (place % 8)).to(tl.uint64)
    return tl.where(i == 0, word << bits, tl.where(i == 1, (word >> 1) >> (63 - bits), 0))


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def at(table, K: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Load a word of a table."""
    return tl.load(table + K).to(tl.uint64, bitcast=True)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def stirred(a, b, c, d, message, stride, order, K: tl.constexpr, inside):  # type: ignore[no-untyped-def, unused-ignore]
    """Mix two words of the message into four words of the state."""
    x = tl.load(message + tl.load(order + K) * stride, mask=inside, other=0).to(tl.uint64, bitcast=True)
    y = tl.load(message + tl.load(order + K + 1) * stride, mask=inside, other=0).to(tl.uint64, bitcast=True)
    a = a + b + x
    d = turned(d ^ a, 32)
    c = c + d
    b = turned(b ^ c, 24)
    a = a + b + y
    d = turned(d ^ a, 16)
    c = c + d
    return a, turned(b ^ c, 63), c, d


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def turned(z, BY: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Rotate bits to the right."""
    return (z >> BY) | (z << (64 - BY))
