"""Digital damage to single frames: warped, coarse, compressed, or patched with blocks of other moments."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from jostle.core.kernels import inlined, kernel, read_only
from jostle.core.types.clip import Frame, Frames
from jostle.corruptions.engine.context import FrameContext
from jostle.corruptions.engine.corruption import corruption
from jostle.corruptions.engine.stages import Span
from jostle.corruptions.kernels.filters import rows_of
from jostle.corruptions.kernels.pixels import four_bytes, put_four_bytes
from jostle.corruptions.kernels.sfc64 import Draws
from jostle.corruptions.kernels.smooth_motion import OverTime, texture_key
from jostle.corruptions.kernels.textures import Plane, uniform_plane

Array = npt.NDArray[Any]

# Where the published packet loss looks for foreign strips, and the frame height its pixel sizes were chosen for.
STRIP_DISTANCE, STRIP_HEIGHT = 30, 256


@corruption(level="frame", scale=(12.5, 16.25, 21.25, 25.0, 30.0), cites="hendrycks2019")
def elastic_transform(frame: Frame, strength: float, at: FrameContext, *, over_time: OverTime = "moving") -> Frame:
    """The frame drawn on rubber: pixels moved by a smooth random field.

    A moving field turns slowly from one drawn field into another and on, as air above a hot road.
    """
    height, width = frame.shape[:2]
    key = texture_key(at, over_time)
    x, y = _displaced(height, width, strength, key, 0)
    if over_time == "moving":
        other_x, other_y = _displaced(height, width, strength, key, 1)
        turn = 2 * math.pi * 0.25 * at.time_s
        here, there = np.float32(math.cos(turn)), np.float32(math.sin(turn))
        x, y = here * x + there * other_x, here * y + there * other_y
    columns, rows = _grid(height, width)
    out = at.canvas(frame)
    cv2.remap(frame, columns + x, rows + y, cv2.INTER_LINEAR, dst=out, borderMode=cv2.BORDER_REFLECT)
    return out


@corruption(level="frame", scale=(0.6, 0.5, 0.4, 0.3, 0.25), cites="hendrycks2019")
def pixelate(frame: Frame, share: float, at: FrameContext) -> Frame:
    """The frame shrunk to `share` of its size by averaging, and enlarged by repeating pixels."""
    height, width = frame.shape[:2]
    out = at.canvas(frame)
    small = max(int(height * share), 1), max(int(width * share), 1)
    _pixelate(np.ascontiguousarray(frame), out, *_cells(height, small[0]), *_cells(width, small[1]))
    return out


@corruption(level="frame", scale=(25, 18, 15, 10, 7), cites="hendrycks2019")
def jpeg_compression(frame: Frame, quality: int, at: FrameContext) -> Frame:
    """The frame as a JPEG of the given quality, with halved chroma."""
    _, data = cv2.imencode(".jpg", cv2.cvtColor(frame, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR_RGB), np.uint8)


@corruption(
    level="clip",
    scale=(400, 800, 1300, 2000, 3000),
    cites="zeng2024",
    reach=lambda blocks: (STRIP_DISTANCE, STRIP_DISTANCE),
)
def block_loss(frames: Frames, blocks: int, span: Span, *, scaled: bool = True) -> Frames:
    """Packet loss as in THUMOS14-C: strips of frames 30 before and after, then `blocks` small smears.

    Args:
        scaled: sizes are for a frame 256 pixels high and grow with it; otherwise they are pixels, as released, and the
            same damage is milder on a larger frame.
    """
    out = np.empty((span.hi - span.lo, *frames.shape[1:]), np.uint8)
    for t, place in enumerate(out, span.lo):
        patched(frames[t - span.first], t, frames, blocks, span, place, scaled=scaled)
    return out


def patched(frame: Frame, t: int, frames: Frames, blocks: int, span: Span, out: Frame, *, scaled: bool = True) -> Frame:
    """Apply block loss to one frame at time `t`; `frames` are the clean ones that the strips come from."""
    height, width = frame.shape[:2]
    unit = height / STRIP_HEIGHT if scaled else 1.0
    before = frames[max(t - STRIP_DISTANCE, 0) - span.first]
    after = frames[min(t + STRIP_DISTANCE, len(span.scene) - 1) - span.first]
    draws = Draws(span.scene.at(t).key())
    strips = _corners(draws, 20, height, width, unit, least=0)
    spots = _corners(draws, blocks, height, width, unit, least=1)
    lined = np.array(frame)
    _lay_strips(rows_of(lined), read_only(rows_of(before)), read_only(rows_of(after)), strips, unit)
    _lay_spots(rows_of(lined), rows_of(out), spots, unit)
    return out


@lru_cache(8)
def _displaced(height: int, width: int, strength: float, key: int, which: int) -> tuple[Plane, Plane]:
    def axis(number: int) -> Plane:
        plane = uniform_plane(height, width, (key + 2 * which + number) % (1 << 64)) * np.float32(0.005 * height)
        sigma_y, sigma_x = 0.01 * height, 0.01 * width
        sides = tuple(2 * int(3 * sigma + 0.5) + 1 for sigma in (sigma_x, sigma_y))
        smooth = cv2.GaussianBlur(plane, sides, sigma_x, sigmaY=sigma_y, borderType=cv2.BORDER_REFLECT)
        return np.asarray(smooth * np.float32(strength), np.float32)

    return axis(0), axis(1)


@lru_cache(4)
def _grid(height: int, width: int) -> tuple[Plane, Plane]:
    columns, rows = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    return columns, rows


@lru_cache(16)
def _cells(size: int, small: int) -> tuple[Array, Array, Array]:
    """Return the bounds of each cell by Pillow's box rule, and the cell of each pixel."""
    scale = size / small
    middle = (np.arange(small) + 0.5) * scale
    pixel = np.arange(size)[:, None]
    place = (pixel - middle + 0.5) * (1 / scale)
    inside = (place > -0.5) & (place <= 0.5)
    inside &= (pixel >= np.floor(middle - scale / 2 + 0.5)) & (pixel < np.floor(middle + scale / 2 + 0.5))
    first = inside.argmax(axis=0)
    stop = first + inside.sum(axis=0)
    # Pillow steps along the row, so rounding adds up, and decides where a pixel falls between two cells.
    steps = np.full(size, small / size)
    steps[0] /= 2
    cell_of = np.minimum(np.cumsum(steps).astype(np.int64), small - 1)
    return first, stop, cell_of


def _corners(draws: Draws, count: int, height: int, width: int, unit: float, *, least: int) -> npt.NDArray[np.int64]:
    # Sizes follow from the position, modulo, so both are drawn in the units of the published frame.
    tall, wide = max(int(height / unit), least + 2), max(int(width / unit), least + 2)
    return np.stack([draws.integers(least, tall - least, count), draws.integers(least, wide - least, count)])


@kernel
def _pixelate(frame: Frame, out: Frame, top: Array, bottom: Array, row: Array, left: Array, right: Array, column: Array,
              ) -> None:  # fmt: skip
    height, width, _ = frame.shape
    wide = len(left)
    n = width * 3
    rows, result = frame.reshape(height, n), out.reshape(height, n)
    # Pillow rounds to whole levels after each direction, across first. Most cells are one to four pixels wide: means of
    # so many are taken at every place of the row, which is done for many at once, and then picked.
    squeezed = np.empty((height, wide * 3 + 1), np.uint8)
    means = np.empty((4, n + 1), np.uint8)
    picked = means.reshape(4 * (n + 1))
    place = np.empty(wide, np.int64)
    used = np.zeros(5, np.bool_)
    for i in range(wide):
        count = min(right[i] - left[i], 5)
        used[count - 1] = True
        place[i] = (count - 1) * (n + 1) + left[i] * 3 if count < 5 else 0
    for y in range(height):
        line, short = rows[y], squeezed[y]
        for count in range(1, 5):
            if used[count - 1]:
                span = max(n - 3 * (count - 1), 0)
                _mean_of(means[count - 1, :span], line, line[3:], line[6:], line[9:], count)
        for i in range(wide):
            put_four_bytes(short, 3 * i, four_bytes(picked, place[i]))
        if used[4]:
            for i in range(wide):
                count = right[i] - left[i]
                if count > 4:
                    for c in range(3):
                        total = 0
                        for x in range(count):
                            total += line[3 * (left[i] + x) + c]
                        short[3 * i + c] = np.uint8((2 * total + count) // (2 * count))
    cells, coarse = np.empty(wide * 3 + 1, np.uint8), np.empty(n + 1, np.uint8)
    done = -1
    for y in range(height):
        j = row[y]
        if j != done:
            done, count, first = j, bottom[j] - top[j], top[j]
            if count < 5:
                a, b = squeezed[first], squeezed[min(first + 1, height - 1)]
                c, d = squeezed[min(first + 2, height - 1)], squeezed[min(first + 3, height - 1)]
                _mean_of(cells, a, b, c, d, count)
            else:
                for i in range(wide * 3):
                    total = 0
                    for v in range(first, bottom[j]):
                        total += squeezed[v, i]
                    cells[i] = np.uint8((2 * total + count) // (2 * count))
            for x in range(width):
                put_four_bytes(coarse, 3 * x, four_bytes(cells, column[x] * 3))
        line = result[y]
        for x in range(n):
            line[x] = coarse[x]


@inlined
def _mean_of(out: Array, a: Array, b: Array, c: Array, d: Array, count: int) -> None:
    """Return the means of the first `count` of four rows, rounded half up."""
    if count == 1:
        for x in range(len(out)):
            out[x] = a[x]
    elif count == 2:
        for x in range(len(out)):
            out[x] = np.uint8(np.uint16(np.uint16(a[x]) + np.uint16(b[x]) + np.uint16(1)) >> np.uint16(1))
    elif count == 3:
        for x in range(len(out)):
            total = np.uint16(np.uint16(a[x]) + np.uint16(b[x]) + np.uint16(c[x]) + np.uint16(1))
            out[x] = np.uint8(np.uint32(np.uint32(total) * np.uint32(21846)) >> np.uint32(16))  # a third
    else:
        for x in range(len(out)):
            total = np.uint16(np.uint16(a[x]) + np.uint16(b[x]) + np.uint16(c[x]) + np.uint16(d[x]) + np.uint16(2))
            out[x] = np.uint8(total >> np.uint16(2))


@kernel
def _lay_strips(out: Frame, before: Frame, after: Frame, strips: Array, unit: float) -> None:
    height, n = out.shape
    for i in range(strips.shape[1]):
        y, x = strips[0, i], strips[1, i]
        left, right = min(3 * int(x * unit), n), min(3 * int((x + x % 50 + 150) * unit), n)
        for v in range(int(y * unit), min(int((y + y % 15 + 10) * unit), height)):
            line, source = out[v, left:right], (before if i % 2 else after)[v, left:right]
            for u in range(len(line)):
                line[u] = source[u]


@kernel
def _lay_spots(still: Frame, out: Frame, spots: Array, unit: float) -> None:
    height, n = out.shape
    for v in range(height):
        line, source = out[v], still[v]
        for u in range(n):
            line[u] = source[u]
    for i in range(spots.shape[1]):
        y, x = spots[0, i], spots[1, i]
        top, left = min(int(y * unit), height - 1), min(3 * int(x * unit), n - 3)
        bottom = min(int((y + y % 10) * unit), height)
        right = min(3 * int((x + x % 10) * unit), n)
        red, green, blue = still[top, left], still[top, left + 1], still[top, left + 2]
        for v in range(top, bottom):
            line = out[v]
            for u in range(left, right, 3):
                line[u] = red
                line[u + 1] = green
                line[u + 2] = blue
