"""Programs by which a GPU follows random streams, one in each of its threads; they need Triton."""

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
