"""Blur: out of focus, through glass, by motion in space or in time.

All but the last are those of Hendrycks and Dietterich (2019); the mean over frames is that of Yi et al. (2021).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from jostle.compiled import kernel
from jostle.corrupting.corruption import corruption
from jostle.corrupting.scene import Moment
from jostle.corrupting.stages import Span
from jostle.corruptions.kernels.filters import HAIR, boxes_of, correlate_disc, correlate_taps, gaussian, motion_trail
from jostle.corruptions.kernels.streams import draw
from jostle.corruptions.kernels.sway import OverTime, sway, texture_key
from jostle.types.clip import Frame, Frames

Array = npt.NDArray[Any]


@corruption(level="frame", scale=(1.0, 2.0, 3.0, 4.0, 6.0), cites="hendrycks2019")
def gaussian_blur(frame: Frame, sigma: float, at: Moment) -> Frame:
    """Gaussian blur of `sigma` pixels."""
    return gaussian(frame, sigma, at.canvas(frame))


@corruption(level="frame", scale=((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)), cites="hendrycks2019")
def defocus_blur(frame: Frame, disc: tuple[int, float], at: Moment, *, fair: bool = True) -> Frame:
    """A lens out of focus: the mean over a disc of the given radius, its rim softened by the given sigma.

    Args:
        fair: let the softened rim reach beyond the disc, so that the kernel sums to 1. The original mirrors it inwards
            at severities 4 and 5, where the disc fills its grid, and so brightens the frame by about one per cent.
    """
    return correlate_disc(frame, *_disc(*disc, fair), at.canvas(frame))


@corruption(level="frame", scale=((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)), cites="hendrycks2019")
def motion_blur(
    frame: Frame,
    trail: tuple[int, float],
    at: Moment,
    *,
    over_time: OverTime = "moving",
    jpeg: int | None = None,
) -> Frame:
    """A trail of 2 * radius + 1 pixels in one direction, fading as a Gaussian of the given sigma.

    Args:
        over_time: `redrawn` takes a new direction within 45 degrees of the horizontal for every frame; otherwise the
            clip has one, about which it sways if `moving`.
        jpeg: quality of the JPEG round trips before and after, which the released THUMOS14-C program makes.
    """
    radius, sigma = trail
    if over_time == "redrawn":
        angle = at.rng().uniform(-45, 45)
    else:
        angle = at.scene.rng().uniform(-45, 45) + (10 * sway(at, "angle", 0.5) if over_time == "moving" else 0)
    blurred = correlate_taps(_jpeg_trip(frame, jpeg), *motion_trail(radius, sigma, angle), at.canvas(frame))
    return _jpeg_trip(blurred, jpeg)


@corruption(
    level="frame",
    scale=((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
    cites="hendrycks2019",
)
def zoom_blur(frame: Frame, zoom: tuple[float, float], at: Moment, *, trim: bool = False) -> Frame:
    """The mean of the frame and its enlargements from 1 to the given factor by the given step.

    Args:
        trim: cut the middle out of an enlargement that is a pixel too large (ImageNet-C, UCF101-P) instead of its
            top left (imagecorruptions).
    """
    stop, by = zoom
    factors = np.arange(1, stop, by)  # rounding makes this 12, 16, 11, 13, 11 factors, as in the published sets
    height, width = frame.shape[:2]
    taps_y = [_zoom_taps(height, z, trim) for z in factors]
    taps_x = [_zoom_taps(width, z, trim) for z in factors]
    out = at.canvas(frame)
    _zoom(
        np.ascontiguousarray(frame),
        out,
        np.stack([at for at, _ in taps_y]),
        np.stack([share for _, share in taps_y]),
        np.stack([at for at, _ in taps_x]),
        np.stack([share for _, share in taps_x]),
    )
    return out


@corruption(
    level="frame", scale=((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2)), cites="hendrycks2019"
)
def glass_blur(frame: Frame, pane: tuple[float, int, int], at: Moment, *, over_time: OverTime = "still") -> Frame:
    """Frosted glass: blur, pixels exchanged with near ones, blur; `pane` is (sigma, distance, rounds).

    The exchange copies and does not swap, as in the original, where array views alias. A pane stands still, so its
    exchanges are the same for all frames unless `redrawn`.
    """
    sigma, distance, rounds = pane
    # A pixel with a fourth channel is one number, and moves as one.
    padded = cv2.cvtColor(gaussian(frame, sigma, np.empty(frame.shape, np.uint8)), cv2.COLOR_RGB2RGBA)
    if min(frame.shape[:2]) > 2 * distance:
        _exchange(padded.view(np.uint32)[..., 0], distance, rounds, np.uint64(texture_key(at, over_time)))
    return gaussian(np.asarray(cv2.cvtColor(padded, cv2.COLOR_RGBA2RGB), np.uint8), sigma, at.canvas(frame))


@corruption(
    level="clip",
    scale=(1, 2, 4, 7, 11),
    cites="yi2021",
    reach=lambda half: (half, half - 1),
)
def frame_average(frames: Frames, half: int, span: Span) -> Frames:
    """Motion blur of a long exposure: the mean of `half` frames before, the frame itself and `half` - 1 after.

    The original drops the frames whose window leaves the clip, and with a short clip all of them; here the window is
    cut at the ends of the clip, so every frame stays.
    """
    out = np.empty((span.hi - span.lo, *frames.shape[1:]), np.uint8)
    _running_mean(frames.reshape(len(frames), -1), out.reshape(len(out), -1), half, span.lo - span.first)
    return out


@lru_cache(16)
def _disc(radius: int, sigma: float, fair: bool) -> tuple[Array, Array, tuple[Array, Array, Array]]:
    """Half widths of the disc's rows, the taps that soften it, and what the original's kernel has beyond the two."""
    side = 3 if radius <= 8 else 5
    soft = cv2.getGaussianKernel(side, sigma, cv2.CV_64F)[:, 0]
    grid = max(radius, 8)
    reach = grid + side // 2
    axis = np.arange(-reach, reach + 1)
    disc = (axis[:, None] ** 2 + axis[None] ** 2 <= radius**2).astype(np.float64)
    halves = (disc[reach : reach + radius + 1].sum(axis=1).astype(np.int64) - 1) // 2
    plain = cv2.GaussianBlur(disc / disc.sum(), (side, side), sigma, borderType=cv2.BORDER_CONSTANT)
    wanted = plain.copy()
    if not fair:
        inner = slice(side // 2, -(side // 2))
        wanted[:] = 0
        wanted[inner, inner] = cv2.GaussianBlur(disc[inner, inner] / disc.sum(), (side, side), sigma)
    return halves, soft.astype(np.float32), boxes_of(wanted - plain)


def _jpeg_trip(frame: Frame, quality: int | None) -> Frame:
    if quality is None:
        return frame
    # Handed over as if it were BGR, as the original does: only the chroma rounding notices.
    _, data = cv2.imencode(".jpg", frame, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR), np.uint8)


@lru_cache(256)
def _zoom_taps(size: int, factor: float, trim: bool) -> tuple[Array, Array]:
    """For each pixel of one axis of an enlargement: the source pixel before it, and the share of the one after."""
    crop = math.ceil(size / factor)
    enlarged = round(crop * factor)
    shift = (enlarged - size) // 2 if trim else 0
    scale = (crop - 1) / (enlarged - 1) if enlarged > 1 else 0.0
    place = np.minimum((np.arange(size) + shift) * scale, crop - 1)
    before = np.minimum(np.floor(place), max(crop - 2, 0)).astype(np.int64)
    return before + (size - crop) // 2, (place - before).astype(np.float32)


@kernel
def _zoom(frame: Frame, out: Frame, row: Array, row_share: Array, column: Array, column_share: Array) -> None:
    height, width, _ = frame.shape
    rows = frame.reshape(height, width * 3)
    result = out.reshape(height, width * 3)
    line = np.empty(width * 3 + 3, np.float32)  # one pixel more: the last pixel's neighbour has share 0
    line[width * 3 :] = 0
    total = np.empty(width * 3, np.float32)
    scale = np.float32(1) / np.float32(len(row) + 1)
    for y in range(height):
        for x in range(width * 3):
            total[x] = np.float32(rows[y, x])
        for z in range(len(row)):
            above = rows[row[z, y]]
            below, share = rows[min(row[z, y] + 1, height - 1)], row_share[z, y]
            for x in range(width * 3):
                first = np.float32(above[x])
                line[x] = first + (np.float32(below[x]) - first) * share
            columns, shares = column[z], column_share[z]
            for x in range(width):
                i, part = columns[x] * 3, shares[x]
                total[x * 3] += line[i] + (line[i + 3] - line[i]) * part
                total[x * 3 + 1] += line[i + 1] + (line[i + 4] - line[i + 1]) * part
                total[x * 3 + 2] += line[i + 2] + (line[i + 5] - line[i + 2]) * part
        for x in range(width * 3):
            result[y, x] = np.uint8(min(total[x] * scale + HAIR, np.float32(255)))


@kernel
def _exchange(pixels: Array, distance: int, rounds: int, key: np.uint64) -> None:
    height, width = pixels.shape
    flat = pixels.reshape(height * width)
    count = width - 2 * distance
    choices = np.uint32(2 * distance)
    words = np.empty((count + 1) // 2, np.uint64)  # two 16-bit numbers a pixel
    chance = words.view(np.uint16)
    away = np.empty(count, np.int32)
    for turn in range(rounds):
        for y in range(height - distance, distance, -1):
            draw(words, key, turn * height + y)
            for i in range(count):
                dx = np.int32((np.uint32(chance[2 * i]) * choices) >> np.uint32(16)) - distance
                dy = np.int32((np.uint32(chance[2 * i + 1]) * choices) >> np.uint32(16)) - distance
                away[i] = dy * width + dx
            place = y * width + width - distance
            for i in range(count):
                flat[place] = flat[place + away[i]]
                place -= 1


@kernel
def _running_mean(frames: Frames, out: Frames, half: int, first: int) -> None:
    count, size = frames.shape
    total = np.zeros(size, np.int32)
    lo = hi = max(first - half, 0)  # frames lo..hi-1 are in the total
    for t in range(len(out)):
        want_lo, want_hi = max(first + t - half, 0), min(first + t + half, count)
        while hi < want_hi:
            for x in range(size):
                total[x] += np.int32(frames[hi, x])
            hi += 1
        while lo < want_lo:
            for x in range(size):
                total[x] -= np.int32(frames[lo, x])
            lo += 1
        held = hi - lo
        scale = np.float32(1) / np.float32(held)
        for x in range(size):
            # Half a unit keeps exact quotients on the right side of the cut; the sums are far below 2**24.
            out[t, x] = np.uint8((np.float32(total[x]) + np.float32(0.5)) * scale)
