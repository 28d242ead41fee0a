"""Programs for snow, a thread a pixel: noise enlarged and cut to flakes, and flakes laid over frames. They need Triton.

Between the two flakes are blurred along their fall, by `filter_program.trail`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from jostle.corruptions.gpu.filter_program import placed
from jostle.corruptions.gpu.stream_program import chance_of


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def scatter(  # type: ignore[no-untyped-def, unused-ignore]
    words, out, values, above, down, before, across, threshold, streams, tall, wide, height, width, SIZE: tl.constexpr
):
    """Drawn numbers enlarged, across and then down; nothing where they are below the threshold, and 1 at most.

    Args:
        words: random words of all streams, of which each plane has `tall`, with `wide` chances each.
        values: the number that each chance stands for.
        above: for each row the one of the drawn before it, and in `down` how far it is on the way to the next.
        before: likewise for each column, and `across`.
    """
    plane, y, x, start = placed(width, height, SIZE)
    inside = x < width
    row = tl.load(above + y)
    left = tl.load(before + x, mask=inside, other=0)
    share = tl.load(across + x, mask=inside, other=0.0)
    own = words + plane.to(tl.int64) * tall
    upper = between_drawn(own + row, values, left, share, wide, streams, inside)
    lower = between_drawn(own + tl.minimum(row + 1, tall - 1), values, left, share, wide, streams, inside)
    level = tl.fma(tl.load(down + y), lower - upper, upper)
    tl.store(out + start + y * width + x, tl.where(level < threshold, 0.0, tl.minimum(level, 1.0)), mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def between_drawn(stream, values, left, share, wide, streams, inside):  # type: ignore[no-untyped-def, unused-ignore]
    """A number between two that a stream draws, rounded once for the product and its sum."""
    one = tl.load(values + chance_of(stream, left, streams, inside))
    other = tl.load(values + chance_of(stream, tl.minimum(left + 1, wide - 1), streams, inside))
    return tl.fma(share, other - one, one)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def lay_flakes(frames, out, flakes, falls, kept, rest, height, width, SIZE: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Flakes and, behind them, the same turned upside down, over a frame that turns pale.

    Args:
        falls: of each frame the number of its plane of flakes, how far down and to the right these have come, and how
            far those behind them: less than a frame, as what leaves at one end comes in again at the other.
        kept: the share of a frame that does not turn pale, and `rest` of what does.
    """
    frame, y, x, start = placed(width, height, SIZE)
    inside = x < width
    own = falls + 5 * frame
    plane = flakes + tl.load(own).to(tl.int64) * height * width
    near = come_from(y, tl.load(own + 1), height) * width + come_from(x, tl.load(own + 2), width)
    far = come_from(y, tl.load(own + 3), height) * width + come_from(x, tl.load(own + 4), width)
    fallen = tl.load(plane + near, mask=inside, other=0).to(tl.float32)
    fallen += tl.load(plane + height * width - 1 - far, mask=inside, other=0).to(tl.float32)
    there = 3 * (start + y * width + x)
    red = tl.load(frames + there, mask=inside, other=0).to(tl.float32)
    green = tl.load(frames + there + 1, mask=inside, other=0).to(tl.float32)
    blue = tl.load(frames + there + 2, mask=inside, other=0).to(tl.float32)
    white = (0.299 * red + 0.587 * green + 0.114 * blue) * 1.5 + 127.5
    tl.store(out + there, snowed(red, white, fallen, kept, rest), mask=inside)
    tl.store(out + there + 1, snowed(green, white, fallen, kept, rest), mask=inside)
    tl.store(out + there + 2, snowed(blue, white, fallen, kept, rest), mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def come_from(place, way, length):  # type: ignore[no-untyped-def, unused-ignore]
    """Return the origin of a position before a cyclic shift."""
    return tl.where(place < way, place - way + length, place - way)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def snowed(value, white, fallen, kept, rest):  # type: ignore[no-untyped-def, unused-ignore]
    """Return one channel, paled and covered with flakes."""
    level = kept * value + rest * tl.maximum(value, white) + fallen
    return tl.minimum(level, 255.0).to(tl.int32).to(tl.uint8)
