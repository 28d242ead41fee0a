"""Programs that filter, one thread a value; sums are in the order of `jostle.corruptions.kernels`. They need Triton."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def placed(values, height, SIZE: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Return the frame, row and values of a program's part of a row, and the offset of the frame."""
    line = tl.program_id(0)
    frame = line // height
    x = tl.program_id(1) * SIZE + tl.arange(0, SIZE)
    return frame, line % height, x, frame.to(tl.int64) * height * values


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def without_fraction(total):  # type: ignore[no-untyped-def, unused-ignore]
    """Truncate to bytes after adding a small epsilon."""
    return tl.minimum(tl.maximum(total + 1e-3, 0.0), 255.0).to(tl.int32).to(tl.uint8)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def rounded(level):  # type: ignore[no-untyped-def, unused-ignore]
    """Round to bytes, halves to even, by adding and subtracting a large number."""
    return ((level + 8388608.0) - 8388608.0).to(tl.int32).to(tl.uint8)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def along(frames, out, taps, away, height, values, pairs, DOWN: tl.constexpr, SIZE: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Symmetric taps along one axis, edges replicated, four pairs at a time: down to floats, across to bytes."""
    _, y, x, start = placed(values, height, SIZE)
    inside = x < values
    total = tl.load(frames + start + y * values + x, mask=inside, other=0).to(tl.float32) * tl.load(taps)
    for k in range(0, pairs, 4):
        p = pair(frames + start, taps, away, k, y, x, height, values, inside, DOWN)
        q = pair(frames + start, taps, away, k + 1, y, x, height, values, inside, DOWN)
        r = pair(frames + start, taps, away, k + 2, y, x, height, values, inside, DOWN)
        s = pair(frames + start, taps, away, k + 3, y, x, height, values, inside, DOWN)
        total += (p + q) + (r + s)
    if DOWN:
        tl.store(out + start + y * values + x, total, mask=inside)
    else:
        tl.store(out + start + y * values + x, without_fraction(total), mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def pair(frame, taps, away, k, y, x, height, values, inside, DOWN: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Return the weighted sum of two values at equal distance; the first weight is the middle's."""
    far = tl.load(away + k)
    if DOWN:
        one = tl.maximum(y - far, 0) * values + x
        other = tl.minimum(y + far, height - 1) * values + x
    else:
        one = y * values + tl.where(x < 3 * far, x % 3, x - 3 * far)
        other = y * values + tl.where(x + 3 * far >= values, values - 3 + x % 3, x + 3 * far)
    both = tl.load(frame + one, mask=inside, other=0).to(tl.float32) + tl.load(frame + other, mask=inside, other=0).to(
        tl.float32
    )
    return both * tl.load(taps + 1 + k)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def trail(frames, out, moves, weights, height, values, taps, FLAKES: tl.constexpr, SIZE: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Copies moved by whole pixels, each frame's by its own, eight at a time; edges are replicated.

    Frames are pixels of three bytes; flakes are planes of numbers from 0 to 1, which become bytes.
    """
    CHANNELS: tl.constexpr = 1 if FLAKES else 3
    frame, y, x, start = placed(values, height, SIZE)
    inside = x < values
    own = moves + frame * 2 * taps
    total = tl.zeros([SIZE], tl.float32)
    for k in range(0, taps, 8):
        a = moved(frames + start, own, weights, k, y, x, height, values, taps, inside, CHANNELS)
        b = moved(frames + start, own, weights, k + 1, y, x, height, values, taps, inside, CHANNELS)
        c = moved(frames + start, own, weights, k + 2, y, x, height, values, taps, inside, CHANNELS)
        d = moved(frames + start, own, weights, k + 3, y, x, height, values, taps, inside, CHANNELS)
        e = moved(frames + start, own, weights, k + 4, y, x, height, values, taps, inside, CHANNELS)
        f = moved(frames + start, own, weights, k + 5, y, x, height, values, taps, inside, CHANNELS)
        g = moved(frames + start, own, weights, k + 6, y, x, height, values, taps, inside, CHANNELS)
        h = moved(frames + start, own, weights, k + 7, y, x, height, values, taps, inside, CHANNELS)
        total += ((a + b) + (c + d)) + ((e + f) + (g + h))
    made = rounded(total * 255.0) if FLAKES else without_fraction(total)
    tl.store(out + start + y * values + x, made, mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def moved(frame, moves, weights, k, y, x, height, values, taps, inside, CHANNELS: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Return one shifted, weighted copy of the frame."""
    row = tl.minimum(tl.maximum(y + tl.load(moves + k), 0), height - 1)
    column = x + CHANNELS * tl.load(moves + taps + k)
    first, last = x % CHANNELS, values - CHANNELS + x % CHANNELS
    column = tl.where(column < 0, first, tl.where(column >= values, last, column))
    return tl.load(frame + row * values + column, mask=inside, other=0).to(tl.float32) * tl.load(weights + k)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def zoomed(  # type: ignore[no-untyped-def, unused-ignore]
    frames, out, above, down, before, across, height, values, zooms, scale, SIZE: tl.constexpr
):
    """The mean of a frame and its enlargements, each by rows and then by columns."""
    _, y, x, start = placed(values, height, SIZE)
    inside = x < values
    width = values // 3
    pixel, channel = x // 3, x % 3
    here = frames + start
    total = tl.load(here + y * values + x, mask=inside, other=0).to(tl.float32)
    for z in range(zooms):
        row, share = tl.load(above + z * height + y), tl.load(down + z * height + y)
        upper, lower = here + row * values, here + tl.minimum(row + 1, height - 1) * values
        column = tl.load(before + z * width + pixel, mask=inside, other=0)
        left = between(upper, lower, 3 * column + channel, share, inside)
        # The last pixel's neighbour has share 0, so the last pixel itself will do.
        right = between(upper, lower, 3 * tl.minimum(column + 1, width - 1) + channel, share, inside)
        part = tl.load(across + z * width + pixel, mask=inside, other=0)
        total += left + (right - left) * part
    made = tl.minimum(total * scale + 1e-3, 255.0).to(tl.int32).to(tl.uint8)
    tl.store(out + start + y * values + x, made, mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def between(upper, lower, place, share, inside):  # type: ignore[no-untyped-def, unused-ignore]
    """Interpolate a value between two rows."""
    over = tl.load(upper + place, mask=inside, other=0).to(tl.float32)
    under = tl.load(lower + place, mask=inside, other=0).to(tl.float32)
    return over + (under - over) * share


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def sum_rows(frames, out, across, values, places, SIZE: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Sums from the left end of each row on: the sum over any stretch of it is then one difference.

    Args:
        across: for each place along a row, beyond its ends too, the pixel that is to be seen there.
        places: so many; behind them stands the sum of all.
    """
    line = tl.program_id(0).to(tl.int64)
    here, there = frames + line * values, out + line * 3 * (places + 1)
    for channel in tl.static_range(3):
        before = tl.zeros([1], tl.int32)
        for first in range(0, places + 1, SIZE):
            place = first + tl.arange(0, SIZE)
            known = place < places
            pixel = tl.load(across + place, mask=known, other=0)
            value = tl.load(here + 3 * pixel + channel, mask=known, other=0).to(tl.int32)
            tl.store(there + 3 * place + channel, before + tl.cumsum(value) - value, mask=place <= places)
            before += tl.sum(value)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def over(row, x, ahead, half, inside):  # type: ignore[no-untyped-def, unused-ignore]
    """Return the sum over a span of a row from prefix sums."""
    stop = tl.load(row + x + 3 * (ahead + half + 1), mask=inside, other=0)
    return stop - tl.load(row + x + 3 * (ahead - half), mask=inside, other=0)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def disc_means(sums, out, halves, down, radius, around, height, values, scale, SIZE: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Means over a disc, also for as many pixels beyond each edge as softening will ask for.

    Args:
        sums: what `sum_rows` makes of rows, which reach as far beyond their ends as disc and softening do.
        down: for each place along a column, as far beyond its ends, the row that is to be seen there.
    """
    tall, wide = height + 2 * around, values + 6 * around
    frame, y, x, start = placed(wide, tall, SIZE)
    inside = x < wide
    long = wide + 6 * radius + 3
    here = sums + frame.to(tl.int64) * height * long
    total = tl.zeros([SIZE], tl.int32)
    for j in range(2 * radius + 1):
        total += over(here + tl.load(down + y + j) * long, x, radius, tl.load(halves + tl.abs(j - radius)), inside)
    tl.store(out + start + y * wide + x, total.to(tl.float32) * scale, mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def softened(  # type: ignore[no-untyped-def, unused-ignore]
    means,
    out,
    soft,
    sums,
    down,
    box_row,
    box_half,
    box_weight,
    boxes,
    border,
    height,
    values,
    TAPS: tl.constexpr,
    SIZE: tl.constexpr,
):
    """Means over discs smoothed down, then across; and boxes one row high added, as far above as below, but the first.

    Args:
        border: how many pixels rows of `sums` begin before those of the frame.
    """
    frame, y, x, start = placed(values, height, SIZE)
    inside = x < values
    wide = values + 3 * (TAPS - 1)
    there = means + frame.to(tl.int64) * (height + TAPS - 1) * wide + y * wide + x
    total = tl.zeros([SIZE], tl.float32)
    for i in tl.static_range(TAPS):
        smooth = tl.load(there + 3 * i, mask=inside, other=0) * tl.load(soft)
        for j in tl.static_range(1, TAPS):
            smooth += tl.load(there + j * wide + 3 * i, mask=inside, other=0) * tl.load(soft + j)
        total += smooth * tl.load(soft + i)
    long = values + 6 * border + 3
    here = sums + frame.to(tl.int64) * height * long
    middle = down + y + border
    for k in range(1, boxes):
        away, half = tl.load(box_row + k), tl.load(box_half + k)
        upper = over(here + tl.load(middle - away) * long, x, border, half, inside)
        lower = over(here + tl.load(middle + away) * long, x, border, half, inside)
        total += (upper + lower).to(tl.float32) * tl.load(box_weight + k)
    tl.store(out + start + y * values + x, without_fraction(total), mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def coarse(  # type: ignore[no-untyped-def, unused-ignore]
    frames, out, top, bottom, row, first, stop, column, height, values, tall, wide, SIZE: tl.constexpr
):
    """Means of cells, rounded after each direction, across first; a pixel computes the cell it shows."""
    _, y, x, start = placed(values, height, SIZE)
    inside = x < values
    pixel, channel = x // 3, x % 3
    j = tl.load(row + y)
    i = tl.load(column + pixel, mask=inside, other=0)
    low, high = tl.load(top + j), tl.load(bottom + j)
    left, right = tl.load(first + i), tl.load(stop + i)
    count = (right - left).to(tl.int32)
    total = tl.zeros([SIZE], tl.int32)
    for v in range(tall):
        line = frames + start + tl.minimum(low + v, height - 1) * values
        across = tl.zeros([SIZE], tl.int32)
        for u in range(wide):
            known = inside & (left + u < right)
            across += tl.load(line + 3 * (left + u) + channel, mask=known, other=0).to(tl.int32)
        mean = (2 * across + count) // (2 * count)
        total += tl.where(low + v < high, mean, 0)
    rows = (high - low).to(tl.int32)
    made = (2 * total + rows) // (2 * rows)
    tl.store(out + start + y * values + x, made.to(tl.uint8), mask=inside)
