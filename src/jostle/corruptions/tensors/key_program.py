"""The program by which a GPU computes the keys of many frames; see `jostle.corruptions.kernels.frame_keys`.

It needs Triton.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def hash_messages(words, start, order, keys, count, room, head, LANES: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """BLAKE2b, a thread a message.

    Args:
        words: messages, each of `room` words, of which the last is its size in bytes.
        start: the eight words that every state begins with.
        order: of each of twelve turns, in which order it takes a block's words.
        head: what is mixed into the first word of a state.
    """
    n = tl.program_id(0) * LANES + tl.arange(0, LANES)
    inside = n < count
    own = words + n.to(tl.int64) * room
    size = tl.load(own + room - 1, mask=inside, other=1)
    blocks = (size + 127) // 128
    nothing = tl.zeros([LANES], tl.uint64)
    h0 = nothing + (first(start, 0) ^ head)
    h1, h2, h3 = nothing + first(start, 1), nothing + first(start, 2), nothing + first(start, 3)
    h4, h5, h6 = nothing + first(start, 4), nothing + first(start, 5), nothing + first(start, 6)
    h7 = nothing + first(start, 7)
    for block in range(tl.max(blocks, 0)):
        last = block == blocks - 1
        seen = tl.where(last, size, 128 * (block + 1)).to(tl.uint64)
        a, b, c, d, e, f, g, i = h0, h1, h2, h3, h4, h5, h6, h7
        p, q = nothing + first(start, 0), nothing + first(start, 1)
        r, s = nothing + first(start, 2), nothing + first(start, 3)
        t, u = seen ^ first(start, 4), nothing + first(start, 5)
        v, w = nothing + first(start, 6), nothing + first(start, 7)
        v = tl.where(last, ~v, v)
        for turn in range(12):
            o = order + 16 * turn
            m = own + 16 * block
            a, e, p, t = stirred(a, e, p, t, m, o, 0, inside)
            b, f, q, u = stirred(b, f, q, u, m, o, 2, inside)
            c, g, r, v = stirred(c, g, r, v, m, o, 4, inside)
            d, i, s, w = stirred(d, i, s, w, m, o, 6, inside)
            a, f, r, w = stirred(a, f, r, w, m, o, 8, inside)
            b, g, s, t = stirred(b, g, s, t, m, o, 10, inside)
            c, i, p, u = stirred(c, i, p, u, m, o, 12, inside)
            d, e, q, v = stirred(d, e, q, v, m, o, 14, inside)
        live = block < blocks
        h0, h1 = tl.where(live, h0 ^ a ^ p, h0), tl.where(live, h1 ^ b ^ q, h1)
        h2, h3 = tl.where(live, h2 ^ c ^ r, h2), tl.where(live, h3 ^ d ^ s, h3)
        h4, h5 = tl.where(live, h4 ^ e ^ t, h4), tl.where(live, h5 ^ f ^ u, h5)
        h6, h7 = tl.where(live, h6 ^ g ^ v, h6), tl.where(live, h7 ^ i ^ w, h7)
    tl.store(keys + n, h0.to(tl.int64, bitcast=True), mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def first(start, K: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """A word that states begin with."""
    return tl.load(start + K).to(tl.uint64, bitcast=True)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def stirred(a, b, c, d, message, order, K: tl.constexpr, inside):  # type: ignore[no-untyped-def, unused-ignore]
    """Four words of the state with two of the message mixed in."""
    x = tl.load(message + tl.load(order + K), mask=inside, other=0).to(tl.uint64, bitcast=True)
    y = tl.load(message + tl.load(order + K + 1), mask=inside, other=0).to(tl.uint64, bitcast=True)
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
    """Bits moved to the right, round the end."""
    return (z >> BY) | (z << (64 - BY))
