"""The camera itself moves: turned, rolling, wandering or shaking (Schiappa et al., 2023)."""

from __future__ import annotations

import math

import cv2
import numpy as np
import numpy.typing as npt

from jostle.compiled import inlined, kernel
from jostle.corrupting.corruption import corruption
from jostle.corrupting.scene import Moment
from jostle.corruptions.kernels.sway import OverTime, sway
from jostle.types.clip import Frame

Pixels = npt.NDArray[np.uint32]  # (H, W) RGBA, each in one number

# The published translation cuts a 224-pixel window out of a larger picture; the strongest moves it by 40 pixels.
WINDOW, ROOM = 224, 40


@corruption(level="frame", scale=(7.5, 15.0, 30.0, 45.0, 90.0), cites="schiappa2023")
def static_rotate(frame: Frame, degrees: float, at: Moment) -> Frame:
    """All frames turned by one angle, anticlockwise about the centre, corners black."""
    return _turned(frame, degrees, at.canvas(frame))


@corruption(level="frame", scale=(7, 13, 19, 25, 31), cites="schiappa2023")
def rotate(frame: Frame, degrees: int, at: Moment, *, over_time: OverTime = "moving") -> Frame:
    """A rolling camera: an angle of up to `degrees` either way, which sways, or jumps if `redrawn`."""
    if over_time == "redrawn":
        return _turned(frame, float(((at.key() * (2 * degrees + 1)) >> 64) - degrees), at.canvas(frame))
    return _warped(frame, at.canvas(frame), degrees * sway(at, "roll", 0.6))


@corruption(level="frame", scale=(8, 16, 24, 32, 40), cites="schiappa2023")
def translate(frame: Frame, room: int, at: Moment, *, over_time: OverTime = "moving") -> Frame:
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
    window = frame[y : y + tall, x : x + wide]
    out = at.canvas(frame)
    return np.asarray(cv2.resize(window, (width, height), dst=out, interpolation=cv2.INTER_LINEAR), np.uint8)


@corruption(level="frame", scale=(0.006, 0.012, 0.02, 0.035, 0.055), cites="zeng2024")
def jittering(frame: Frame, share: float, at: Moment) -> Frame:
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
    """Rotation as Pillow does it: nearest pixel, same canvas, about the middle of the picture."""
    height, width = frame.shape[:2]
    theta = -math.radians(degrees)
    cosine, sine = round(math.cos(theta), 15), round(math.sin(theta), 15)
    middle_x, middle_y = width / 2, height / 2
    shift_x = middle_x - cosine * middle_x - sine * middle_y
    shift_y = middle_y + sine * middle_x - cosine * middle_y
    first = (shift_x + (cosine + sine) / 2, shift_y + (cosine - sine) / 2)
    # A pixel with a fourth channel is one number, and is looked up as one.
    pixels = cv2.cvtColor(frame, cv2.COLOR_RGB2RGBA).view(np.uint32)[..., 0]
    _nearest(pixels, out.reshape(height, -1), *(_fixed(v) for v in (cosine, sine, *first)))
    return out


def _fixed(value: float) -> int:
    return math.floor(value * 65536 + 0.5)  # Pillow's 16-bit fractions decide which pixel is nearest


@kernel
def _nearest(pixels: Pixels, out: Frame, cosine: int, sine: int, first_x: int, first_y: int) -> None:
    height, width = pixels.shape
    flat = pixels.reshape(height * width)
    shown = np.empty(width, np.uint32)
    for y in range(height):
        across, down = first_x + y * sine, first_y + y * cosine
        # The part of the row that shows the frame is one stretch: once its ends are found, nothing else is asked.
        begin, end = 0, width
        while begin < end and not _within(across + begin * cosine, down - begin * sine, height, width):
            begin += 1
        while begin < end and not _within(across + (end - 1) * cosine, down - (end - 1) * sine, height, width):
            end -= 1
        across += begin * cosine
        down -= begin * sine
        shown[:begin] = 0
        shown[end:] = 0
        for x in range(begin, end):
            shown[x] = flat[np.uint64((down >> 16) * width + (across >> 16))]
            across += cosine
            down -= sine
        line = out[y]
        for x in range(width):
            line[3 * x] = np.uint8(shown[x])
            line[3 * x + 1] = np.uint8(shown[x] >> np.uint32(8))
            line[3 * x + 2] = np.uint8(shown[x] >> np.uint32(16))


@inlined
def _within(across: int, down: int, height: int, width: int) -> bool:
    return 0 <= (across >> 16) < width and 0 <= (down >> 16) < height
