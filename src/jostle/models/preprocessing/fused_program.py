"""Triton kernel that resizes, crops and normalises frames in one pass."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def prepare(  # type: ignore[no-untyped-def, unused-ignore]
    frames,
    out,
    rows,
    row_weights,
    columns,
    column_weights,
    crops,
    scale,
    height,
    width,
    size,
    resized_height,
    resized_width,
    length,
    clip_step,
    crop_step,
    time_step,
    colour_step,
    row_step,
    column_step,
    DOWN: tl.constexpr,
    ACROSS: tl.constexpr,
    CUBIC: tl.constexpr,
    BGR: tl.constexpr,
    PIXELS: tl.constexpr,
):
    """Each program makes some pixels of a crop of a frame.

    Args:
        frames: (N, height, width, 3) bytes.
        rows: for each row of the resized frame, the first row of the frame that it is made of.
        row_weights: (DOWN, resized_height): how much of that one and of those below it.
        columns: the same across.
        crops: for each its top, its left, and 1 if it is mirrored.
        scale: three means, then what values less those are divided by, in the order of colours of `out`.
        length: of a clip, in frames.
        clip_step: from a clip to the next in `out`, in values; and so on for crops, times, colours, rows, columns.
        CUBIC: whether values may lie beyond black and white, and are to be brought back.
        BGR: whether the colours of `out` come in that order.
    """
    frame, crop = tl.program_id(0).to(tl.int64), tl.program_id(2)
    pixel = tl.program_id(1) * PIXELS + tl.arange(0, PIXELS)
    known = pixel < size * size
    down, across = pixel // size, pixel % size
    mirrored = tl.load(crops + crop * 3 + 2)
    y = tl.load(crops + crop * 3) + down
    x = tl.load(crops + crop * 3 + 1) + tl.where(mirrored == 1, size - 1 - across, across)
    top = tl.load(rows + y, mask=known, other=0)
    left = tl.load(columns + x, mask=known, other=0)
    whole = frames + frame * height * width * 3
    place = (top * width + left) * 3
    red = tl.zeros([PIXELS], tl.float32)
    green, blue = red, red
    for j in range(DOWN):
        # Along a row first, and no product rounded before it is added, as torch does it on a GPU.
        r = tl.zeros([PIXELS], tl.float32)
        g, b = r, r
        for i in range(ACROSS):
            weight = tl.load(column_weights + i * resized_width + x, mask=known, other=0.0)
            r = tl.fma(tl.load(whole + place + i * 3, mask=known, other=0).to(tl.float32), weight, r)
            g = tl.fma(tl.load(whole + place + i * 3 + 1, mask=known, other=0).to(tl.float32), weight, g)
            b = tl.fma(tl.load(whole + place + i * 3 + 2, mask=known, other=0).to(tl.float32), weight, b)
        weight = tl.load(row_weights + j * resized_height + y, mask=known, other=0.0)
        red, green, blue = tl.fma(r, weight, red), tl.fma(g, weight, green), tl.fma(b, weight, blue)
        place += width * 3
    to = out + (frame // length) * clip_step + (frame % length) * time_step + crop.to(tl.int64) * crop_step
    to += down * row_step + across * column_step
    FIRST: tl.constexpr = 2 if BGR else 0
    tl.store(to + FIRST * colour_step, scaled(red, scale + FIRST, CUBIC), mask=known)
    tl.store(to + colour_step, scaled(green, scale + 1, CUBIC), mask=known)
    tl.store(to + (2 - FIRST) * colour_step, scaled(blue, scale + 2 - FIRST, CUBIC), mask=known)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def scaled(value, scale, CUBIC: tl.constexpr):  # type: ignore[no-untyped-def, unused-ignore]
    """Normalise values from 0 to 255 of one colour."""
    if CUBIC:
        value = tl.minimum(tl.maximum(value, 0.0), 255.0)
    return tl.div_rn(tl.div_rn(value, 255.0) - tl.load(scale), tl.load(scale + 3))
