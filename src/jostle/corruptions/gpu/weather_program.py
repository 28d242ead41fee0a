"""Programs for weather: clouds, flakes, and what is laid over frames; see `jostle.corruptions.weather`.

Noise is enlarged and cut to flakes, blurred along their fall by `filter_program.trail`, and laid over frames, a thread
a pixel. They need Triton.
"""

from __future__ import annotations

import triton
import triton.language as tl

from jostle.corruptions.gpu.filter_program import placed
from jostle.corruptions.gpu.stream_program import chance_of


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def halve(known, out, words, streams, rows, row, count, unit, spread, SIZE: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Clouds of `count` points a side become clouds of twice as many: a thread makes the four from one point on.

    Args:
        words: random words of all streams, of which each cloud has `rows`.
        row: the first stream that this step draws from.
    """
    cloud = tl.program_id(0)
    point = tl.program_id(1) * SIZE + tl.arange(0, SIZE)
    inside = point < count * count
    i, j = point // count, point % count
    below, right = (i + 1) % count, (j + 1) % count
    above, left = (i + count - 1) % count, (j + count - 1) % count
    here = known + cloud.to(tl.int64) * count * count
    own = words + cloud.to(tl.int64) * rows + row
    middle = centre(here, own, i, j, below, right, count, streams, unit, spread, inside)
    over = centre(here, own, above, j, i, right, count, streams, unit, spread, inside)
    before = centre(here, own, i, left, below, j, count, streams, unit, spread, inside)
    corner = tl.load(here + i * count + j, mask=inside, other=0.0)
    beside = tl.load(here + i * count + right, mask=inside, other=0.0)
    under = tl.load(here + below * count + j, mask=inside, other=0.0)
    across = ((over + middle) + (corner + beside)) * 0.25
    across += deviation(own, count + 2 * i, j, streams, unit, spread, inside)
    down = ((corner + under) + (before + middle)) * 0.25
    down += deviation(own, count + 2 * i + 1, j, streams, unit, spread, inside)
    there = out + cloud.to(tl.int64) * 4 * count * count + 4 * i * count + 2 * j
    tl.store(there, corner, mask=inside)
    tl.store(there + 1, across, mask=inside)
    tl.store(there + 2 * count, down, mask=inside)
    tl.store(there + 2 * count + 1, middle, mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def centre(here, own, i, j, below, right, count, streams, unit, spread, inside):  # type: ignore[no-untyped-def, unused-ignore]
    """The point in the middle of four."""
    a = tl.load(here + i * count + j, mask=inside, other=0.0)
    b = tl.load(here + below * count + j, mask=inside, other=0.0)
    c = tl.load(here + i * count + right, mask=inside, other=0.0)
    d = tl.load(here + below * count + right, mask=inside, other=0.0)
    return ((a + b) + (c + d)) * 0.25 + deviation(own, i, j, streams, unit, spread, inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def deviation(own, row, j, streams, unit, spread, inside):  # type: ignore[no-untyped-def, unused-ignore]
    """Return the deviation that is added to a mean."""
    return chance_of(own + row, j, streams, inside).to(tl.float32) * unit - spread


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def lay_fog(frames, out, clouds, low, high, brightest, thickness, height, values, side, SIZE: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """A frame behind its cloud, so that its brightest value keeps its level."""
    frame, y, x, start = placed(values, height, SIZE)
    inside = x < values
    gain, lift = share_of(tl.load(brightest + frame), thickness)
    least = tl.load(low + frame)
    span = tl.maximum(tl.load(high + frame) - least, 1e-6)
    raw = tl.load(clouds + frame.to(tl.int64) * side * side + y * side + x // 3, mask=inside, other=0.0)
    bank = tl.div_rn(raw - least, span)
    behind(frames, out, start + y * values + x, bank, gain, lift, inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def lay_plane(frames, out, planes, moves, brightest, thickness, height, values, side, SIZE: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """A frame behind the cloud of its clip, which the wind has moved, and which is a torus.

    Args:
        moves: the clip of each frame, and how far down and to the right its cloud has come.
    """
    frame, y, x, start = placed(values, height, SIZE)
    inside = x < values
    gain, lift = share_of(tl.load(brightest + frame), thickness)
    plane = planes + tl.load(moves + 3 * frame).to(tl.int64) * side * side
    row = (y + tl.load(moves + 3 * frame + 1)) % side
    column = (x // 3 + tl.load(moves + 3 * frame + 2)) % side
    bank = tl.load(plane + row * side + column, mask=inside, other=0.0)
    behind(frames, out, start + y * values + x, bank, gain, lift, inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def behind(frames, out, there, bank, gain, lift, inside):  # type: ignore[no-untyped-def, unused-ignore]
    """Values of frames behind a bank of fog, written."""
    value = tl.load(frames + there, mask=inside, other=0).to(tl.float32)
    made = tl.minimum(value * gain + bank * lift, 255.0).to(tl.int32).to(tl.uint8)
    tl.store(out + there, made, mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def share_of(brightest, thickness):  # type: ignore[no-untyped-def, unused-ignore]
    """Return the factor of the frame, and the contribution of fog where it is thickest."""
    most = tl.div_rn(brightest.to(tl.float32), 255.0)
    gain = tl.div_rn(most, most + thickness)
    return gain, (255.0 * thickness) * gain


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def blend(  # type: ignore[no-untyped-def, unused-ignore]
    frames, out, textures, begins, share, other, height, values, stride, BITS: tl.constexpr, SIZE: tl.constexpr
):
    """Two whole shares, of a frame and of the window of a texture that begins somewhere, added."""
    frame, y, x, start = placed(values, height, SIZE)
    inside = x < values
    there = start + y * values + x
    value = tl.load(frames + there, mask=inside, other=0).to(tl.int32)
    ice = tl.load(textures + tl.load(begins + frame) + y * stride + x, mask=inside, other=0).to(tl.int32)
    made = tl.minimum((value * share + ice * other) >> BITS, 255).to(tl.uint8)
    tl.store(out + there, made, mask=inside)


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
