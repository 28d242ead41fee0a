"""The program by which a GPU follows random streams; it needs Triton, which comes with torch for GPUs."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def follow(a_of, b_of, out, streams, many, ROWS: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Write word after word of each stream: those of one place beside each other."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < streams
    a = tl.load(a_of + row, mask=inside, other=0).to(tl.uint64, bitcast=True)
    b = tl.load(b_of + row, mask=inside, other=0).to(tl.uint64, bitcast=True)
    for place in range(many):
        tl.store(out + place * streams + row, (a + b).to(tl.int64, bitcast=True), mask=inside)
        b = b ^ a
        a = ((a << 24) | (a >> 40)) ^ b ^ (b << 16)
        b = (b << 37) | (b >> 27)
