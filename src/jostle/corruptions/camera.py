"""The camera itself moves: turned, rolling, wandering or shaking (Schiappa et al., 2023)."""

from __future__ import annotations

import math

import cv2
import numpy as np
import numpy.typing as npt

from jostle.core.kernels import inlined, kernel
from jostle.core.types.clip import Frame
from jostle.corruptions.engine.context import FrameContext
from jostle.corruptions.engine.corruption import corruption
from jostle.corruptions.kernels.pixels import enlarged, four_bytes, put_four_bytes
from jostle.corruptions.kernels.smooth_motion import OverTime, sway
from jostle.errors import BadValue

Bytes = npt.NDArray[np.uint8]

# The published translation cuts a 224-pixel window out of a larger picture; the strongest moves it by 40 pixels.
WINDOW, ROOM = 224, 40
LARGEST = 1 << 16  # places in a frame that is turned are whole numbers of 32 bits, half of them binary places


@corruption(level="frame", scale=(7.5, 15.0, 30.0, 45.0, 90.0), cites="schiappa2023")
def static_rotate(frame: Frame, degrees: float, at: FrameContext) -> Frame:
    """All frames turned by one angle, anticlockwise about the centre, corners black."""
    return _turned(frame, degrees, at.canvas(frame))


@corruption(level="frame", scale=(7, 13, 19, 25, 31), cites="schiappa2023")
def rotate(frame: Frame, degrees: int, at: FrameContext, *, over_time: OverTime = "moving") -> Frame:
    """A rolling camera: an angle of up to `degrees` either way, which sways, or jumps if `redrawn`."""
    if over_time == "redrawn":
        return _turned(frame, float(((at.key() * (2 * degrees + 1)) >> 64) - degrees), at.canvas(frame))
    return _warped(frame, at.canvas(frame), degrees * sway(at, "roll", 0.6))


@corruption(level="frame", scale=(8, 16, 24, 32, 40), cites="schiappa2023")
def translate(frame: Frame, room: int, at: FrameContext, *, over_time: OverTime = "moving") -> Frame:
    """A window that wanders over an enlarged frame by up to `room` pixels of a 224-pixel window.

    The window is 224 of 264 parts of the frame, which leaves room for the strongest move, and is enlarged to its size.
    It sways about the middle; if `redrawn` it jumps within a square at the top left, as published.
    """
    if over_time == "redrawn":
        down, right = (float((at.key(axis) * (room + 1)) >> 64) for axis in ("down", "right"))
    else:
        down, right = (ROOM / 2 + room / 2 * sway(at, axis, 0.8) for axis in ("down", "right"))
    height, width = frame.shape[:2]
    share = WINDOW / (WINDOW + ROOM)
    tall, wide = max(round(height * share), 1), max(round(width * share), 1)
    y = min(max(round(down * height / (WINDOW + ROOM)), 0), height - tall)
    x = min(max(round(right * height / (WINDOW + ROOM)), 0), width - wide)
    return enlarged(frame, y, x, tall, wide, at.canvas(frame))


@corruption(level="frame", scale=(0.006, 0.012, 0.02, 0.035, 0.055), cites="zeng2024")
def jittering(frame: Frame, share: float, at: FrameContext) -> Frame:
    """A shaken camera: quick small shifts of up to `share` of the height, with a little roll; edges are replicated."""
    reach = share * frame.shape[0]
    down, right, roll = (sway(at, axis, 7.0) for axis in ("down", "right", "roll"))
    move = roll * share * 60, reach * down, reach * right
    return _warped(frame, at.canvas(frame), *move, edge=cv2.BORDER_REPLICATE)


def _warped(
    frame: Frame, out: Frame, degrees: float, down: float = 0.0, right: float = 0.0, *, edge: int = cv2.BORDER_CONSTANT
) -> Frame:
    height, width = frame.shape[:2]
    matrix = np.asarray(cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), degrees, 1.0), np.float64)
    matrix[:, 2] += right, down
    way = {"flags": cv2.INTER_LINEAR, "borderMode": edge}
    return np.asarray(cv2.warpAffine(frame, matrix, (width, height), dst=out, **way), np.uint8)


def _turned(frame: Frame, degrees: float, out: Frame) -> Frame:
    """Rotate as Pillow does: nearest pixel, same canvas, about the centre of the picture."""
    height, width = frame.shape[:2]
    if max(height, width) >= LARGEST or frame.size >= LARGEST**2:
        raise BadValue(f"a frame of {width} x {height} pixels is too large to be rotated; resize it first")
    theta = -math.radians(degrees)
    cosine, sine = round(math.cos(theta), 15), round(math.sin(theta), 15)
    middle_x, middle_y = width / 2, height / 2
    shift_x = middle_x - cosine * middle_x - sine * middle_y
    shift_y = middle_y + sine * middle_x - cosine * middle_y
    first = (shift_x + (cosine + sine) / 2, shift_y + (cosine - sine) / 2)
    _nearest(np.ascontiguousarray(frame).reshape(-1), out, *(_fixed(v) for v in (cosine, sine, *first)))
    return out


def _fixed(value: float) -> int:
    return math.floor(value * 65536 + 0.5)  # Pillow's 16-bit fractions decide which pixel is nearest


@kernel
def _nearest(values: Bytes, out: Frame, cosine: int, sine: int, first_x: int, first_y: int) -> None:
    height, width, _ = out.shape
    result = out.reshape(height, width * 3)
    # How far a step to the right goes across and down. What lies within the frame is below 2**32, whatever is passed on
    # the way there.
    right, up, place = np.empty(width, np.uint32), np.empty(width, np.uint32), np.empty(width, np.uint32)
    for x in range(width):
        right[x] = np.uint32((x * cosine) & 0xFFFFFFFF)
        up[x] = np.uint32((x * -sine) & 0xFFFFFFFF)
    wide = np.uint16(width)
    # Copied from end to end, the frame is close when it is read across; and its last pixel has a fourth byte.
    near = np.empty(len(values) + 1, np.uint8)
    for x in range(len(values)):
        near[x] = values[x]
    for y in range(height):
        across, down = first_x + y * sine, first_y + y * cosine
        # The part of the row that shows the frame is one run: once its ends are known, no bounds are checked.
        begin, end = _inside(across, cosine, width << 16, 0, width)
        begin, end = _inside(down, -sine, height << 16, begin, end)
        begin = min(begin, width)
        end = max(begin, end)
        u, v = np.uint32(across & 0xFFFFFFFF), np.uint32(down & 0xFFFFFFFF)
        for x in range(width):
            row = np.uint32(np.uint32(np.uint32(v + up[x]) >> np.uint32(16)) * np.uint32(wide))
            column = np.uint32(np.uint32(u + right[x]) >> np.uint32(16))
            place[x] = np.uint32(np.uint32(row + column) * np.uint32(3))
        line = result[y]
        for x in range(3 * begin):
            line[x] = 0
        # The row's last pixel has no neighbour whose byte may be written before it is.
        whole = max(min(end, width - 1), begin)
        for x in range(begin, whole):
            put_four_bytes(line, 3 * x, four_bytes(near, place[x]))
        for x in range(3 * whole, 3 * end):
            line[x] = near[place[whole] + x - 3 * whole]
        for x in range(3 * end, 3 * width):
            line[x] = 0


@inlined
def _inside(start: int, step: int, stop: int, begin: int, end: int) -> tuple[int, int]:
    """The whole numbers x of begin..end-1 for which start + x * step is in 0..stop-1: one stretch again."""
    if step == 0:
        return (begin, end) if 0 <= start < stop else (begin, begin)
    # Down the frame is up it from the other side.
    start, step = (start, step) if step > 0 else (stop - 1 - start, -step)
    return max(begin, -(start // step)), min(end, -((start - stop) // step))
