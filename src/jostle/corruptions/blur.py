"""Blur: out of focus, through glass, by motion in space or in time.

All but the last are those of Hendrycks and Dietterich (2019); the mean over frames is that of Yi et al. (2021).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel
from jostle.core.random import key_for
from jostle.core.types.clip import Frame, Frames
from jostle.corruptions.engine.context import ClipContext, FrameContext
from jostle.corruptions.engine.corruption import corruption
from jostle.corruptions.engine.stages import Span
from jostle.corruptions.kernels.discs import boxes_of, correlate_disc
from jostle.corruptions.kernels.filters import HAIR, correlate_taps, gaussian, motion_trail
from jostle.corruptions.kernels.sfc64 import Draws
from jostle.corruptions.kernels.smooth_motion import OverTime, sways, texture_key
from jostle.corruptions.kernels.streams import draw
from jostle.errors import BadValue

Array = npt.NDArray[Any]

HEADINGS = (-45, 45)  # degrees that trails are drawn from
LONGEST = 128  # frames of an exposure: of so many, 16 bits hold a sum, and a product with 22 the mean
TILE = 8192  # values of a frame that are summed over time at once


@corruption(level="frame", scale=(1.0, 2.0, 3.0, 4.0, 6.0), cites="hendrycks2019")
def gaussian_blur(frame: Frame, sigma: float, at: FrameContext) -> Frame:
    """Gaussian blur of `sigma` pixels."""
    return gaussian(frame, sigma, at.canvas(frame))


@corruption(level="frame", scale=((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)), cites="hendrycks2019")
def defocus_blur(frame: Frame, disc: tuple[int, float], at: FrameContext, *, fair: bool = True) -> Frame:
    """A lens out of focus: the mean over a disc of the given radius, its rim softened by the given sigma.

    Args:
        fair: let the softened rim reach beyond the disc, so that the kernel sums to 1. The original mirrors it inwards
            at severities 4 and 5, where the disc fills its grid, and so brightens the frame by about one per cent.
    """
    return correlate_disc(frame, *_disc(*disc, fair), at.canvas(frame))


@corruption(level="frame", scale=((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)), cites="hendrycks2019")
def motion_blur(
    frame: Frame, trail: tuple[int, float], at: FrameContext, *, over_time: OverTime = "moving", jpeg: int | None = None
) -> Frame:
    """A trail of 2 * radius + 1 pixels in one direction, fading as a Gaussian of the given sigma.

    Args:
        over_time: `redrawn` takes a new direction within 45 degrees of the horizontal for every frame; otherwise the
            clip has one, about which it sways if `moving`.
        jpeg: quality of the JPEG round trips before and after, which the released THUMOS14-C program makes.
    """
    if over_time == "redrawn":
        angle = Draws(at.key()).uniform(*HEADINGS)
    else:
        angle = headings(at.scene, [at.time_s], over_time)[0]
    taps = motion_trail(*trail, angle)
    return _jpeg_trip(correlate_taps(_jpeg_trip(frame, jpeg), *taps, at.canvas(frame)), jpeg)


@corruption(
    level="frame", scale=((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)), cites="hendrycks2019"
)
def zoom_blur(frame: Frame, zoom: tuple[float, float], at: FrameContext, *, trim: bool = False) -> Frame:
    """The mean of the frame and its enlargements from 1 to the given factor by the given step.

    Args:
        trim: cut the middle out of an enlargement that is a pixel too large (ImageNet-C, UCF101-P) instead of its
            top left (imagecorruptions).
    """
    out = at.canvas(frame)
    _zoom(frame, out, *_zoom_plan(*frame.shape[:2], *zoom, trim))
    return out


@corruption(
    level="frame", scale=((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2)), cites="hendrycks2019"
)
def glass_blur(frame: Frame, pane: tuple[float, int, int], at: FrameContext, *, over_time: OverTime = "still") -> Frame:
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


@corruption(level="clip", scale=(1, 2, 4, 7, 11), cites="yi2021", reach=lambda half: (half, half - 1))
def frame_average(frames: Frames, half: int, span: Span) -> Frames:
    """Motion blur of a long exposure: the mean of `half` frames before, the frame itself and `half` - 1 after.

    The original drops the frames whose window leaves the clip, and with a short clip all of them; here the window is
    cut at the ends of the clip, so every frame stays.
    """
    if 2 * half > LONGEST:
        raise BadValue(f"frame_average of {half} frames on either side: give at most {LONGEST // 2}")
    out = np.empty((span.hi - span.lo, *frames.shape[1:]), np.uint8)
    _running_mean(frames.reshape(len(frames), -1), out.reshape(len(out), -1), half, span.lo - span.first)
    return out


def headings(scene: ClipContext, times: Sequence[float], over_time: OverTime) -> list[float]:
    """Return the direction of a clip's trails at each time, in degrees; trails that are redrawn have others."""
    own = _heading(scene.seed, scene.video_id, scene.name)
    if over_time == "still":
        return [own] * len(times)
    return [own + 10 * turn for turn in sways(scene, times, "angle", 0.5)]


@lru_cache(64)
def _heading(seed: int, video_id: str, name: str) -> float:
    """Return the direction of the trails of a clip."""
    return Draws(key_for(seed, video_id, name)).uniform(*HEADINGS)


@lru_cache(16)
def _disc(radius: int, sigma: float, fair: bool) -> tuple[Array, Array, tuple[Array, Array, Array]]:
    """Return half widths of the disc's rows, softening taps, and the remainder of the original's kernel."""
    side = 3 if radius <= 8 else 5
    soft = cv2.getGaussianKernel(side, sigma, cv2.CV_64F)[:, 0]
    grid = max(radius, 8)
    reach = grid + side // 2
    axis = np.arange(-reach, reach + 1)
    disc = (axis[:, None] ** 2 + axis[None] ** 2 <= radius**2).astype(np.float64)
    halves = (disc[reach : reach + radius + 1].sum(axis=1).astype(np.int64) - 1) // 2
    plain = cv2.GaussianBlur(disc / disc.sum(), (side, side), sigma, borderType=cv2.BORDER_CONSTANT)
    target = plain.copy()
    if not fair:
        inner = slice(side // 2, -(side // 2))
        target[:] = 0
        target[inner, inner] = cv2.GaussianBlur(disc[inner, inner] / disc.sum(), (side, side), sigma)
    return halves, soft.astype(np.float32), boxes_of(target - plain)


def _jpeg_trip(frame: Frame, quality: int | None) -> Frame:
    if quality is None:
        return frame
    # Handed over as if it were BGR, as the original does: only the chroma rounding notices.
    _, data = cv2.imencode(".jpg", frame, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR), np.uint8)


@lru_cache(8)
def _zoom_plan(height: int, width: int, stop: float, by: float, trim: bool) -> tuple[Array, Array, Array, Array, Array]:
    """Return for each enlargement the source rows and their shares, and runs of columns and their shares.

    An enlargement by little leaves most neighbours neighbours. A run is a stretch of a row whose source is a stretch as
    well: (first value, values, first value of its source). The runs of enlargement z are those from place z to z + 1.
    """
    factors = np.arange(1, stop, by)  # rounding makes this 12, 16, 11, 13, 11 factors, as in the published sets
    rows = [_zoom_taps(height, factor, trim) for factor in factors]
    columns = [_zoom_taps(width, factor, trim) for factor in factors]
    runs: list[tuple[int, int, int]] = []
    places = [0]
    for before, _ in columns:
        breaks = np.flatnonzero(np.diff(before) != 1) + 1
        edges = [0, *breaks.tolist(), width]
        runs += [(3 * a, 3 * (b - a), 3 * int(before[a])) for a, b in pairwise(edges)]
        places.append(len(runs))
    shares = np.repeat(np.stack([share for _, share in columns]), 3, axis=1)
    above = np.stack([before for before, _ in rows])
    return above, np.stack([share for _, share in rows]), np.array(runs), np.array(places), shares


def _zoom_taps(size: int, factor: float, trim: bool) -> tuple[Array, Array]:
    """Return for each pixel of one axis the source pixel before it, and the share of the one after."""
    crop = math.ceil(size / factor)
    enlarged = round(crop * factor)
    shift = (enlarged - size) // 2 if trim else 0
    scale = (crop - 1) / (enlarged - 1) if enlarged > 1 else 0.0
    place = np.minimum((np.arange(size) + shift) * scale, crop - 1)
    before = np.minimum(np.floor(place), max(crop - 2, 0)).astype(np.int64)
    return before + (size - crop) // 2, (place - before).astype(np.float32)


@kernel
def _zoom(frame: Frame, out: Frame, row: Array, row_share: Array, runs: Array, places: Array, shares: Array) -> None:
    height, width, _ = frame.shape
    n = width * 3
    rows = np.empty((height, n), np.float32)
    clean, result = frame.reshape(height, n), out.reshape(height, n)
    for y in range(height):
        for x in range(n):
            rows[y, x] = np.float32(clean[y, x])
    line = np.zeros(n + 3, np.float32)  # one pixel more: the last pixel's neighbour has share 0
    total = np.empty(n, np.float32)
    scale = np.float32(1) / np.float32(len(row) + 1)
    for y in range(height):
        for x in range(n):
            total[x] = rows[y, x]
        for z in range(len(row)):
            above, share = rows[row[z, y]], row_share[z, y]
            below = rows[min(row[z, y] + 1, height - 1)]
            for x in range(n):
                line[x] = above[x] + (below[x] - above[x]) * share
            for k in range(places[z], places[z + 1]):
                first, count, source = runs[k, 0], runs[k, 1], runs[k, 2]
                here, left, right, part = total[first:], line[source:], line[source + 3 :], shares[z, first:]
                for x in range(count):
                    here[x] += left[x] + (right[x] - left[x]) * part[x]
        blurred = result[y]
        for x in range(n):
            blurred[x] = np.uint8(np.int32(min(total[x] * scale + HAIR, np.float32(255))))


@kernel
def _exchange(pixels: Array, distance: int, rounds: int, key: np.uint64) -> None:
    height, width = pixels.shape
    flat = pixels.reshape(height * width)
    count = width - 2 * distance
    choices, across = np.uint32(2 * distance), np.int32(width)
    words = np.empty((count + 1) // 2, np.uint64)
    chance = words.view(np.uint32)  # two 16-bit numbers a pixel
    source = np.empty(count, np.int32)
    for turn in range(rounds):
        for y in range(height - distance, distance, -1):
            draw(words, key, turn * height + y)
            last = y * width + width - distance
            corner = np.int32(last - distance * width - distance)
            for i in range(count):
                # Kept within 32 bits, these vectorise; only the moves depend on each other.
                dx = np.uint32(np.uint32(chance[i] & np.uint32(0xFFFF)) * choices) >> np.uint32(16)
                dy = np.uint32(np.uint32(chance[i] >> np.uint32(16)) * choices) >> np.uint32(16)
                source[i] = np.int32(np.int32(np.int32(dy) * across) + np.int32(dx)) + np.int32(corner - np.int32(i))
            for i in range(count):
                flat[np.uint64(last - i)] = flat[np.uint64(source[i])]


@kernel
def _running_mean(frames: Frames, out: Frames, half: int, first: int) -> None:
    count, size = frames.shape
    total = np.empty(TILE, np.uint16)
    # Stretch by stretch through all frames, so that the totals stay in the fastest cache.
    for begin in range(0, size, TILE):
        n = max(min(size - begin, TILE), 0)
        total[:] = 0
        lo = hi = max(first - half, 0)  # frames lo..hi-1 are in the total
        for t in range(len(out)):
            want_lo, want_hi = max(first + t - half, 0), min(first + t + half, count)
            while hi < want_hi:
                line = frames[hi, begin:]
                for x in range(n):
                    total[x] += np.uint16(line[x])
                hi += 1
            while lo < want_lo:
                line = frames[lo, begin:]
                for x in range(n):
                    total[x] -= np.uint16(line[x])
                lo += 1
            # Rounded up, the share is too large by so little that no sum of LONGEST bytes gets past a whole number.
            held = hi - lo
            share = np.uint32(((1 << 22) + held - 1) // held)
            mean = out[t, begin:]
            for x in range(n):
                mean[x] = np.uint8(np.uint32(np.uint32(total[x]) * share) >> np.uint32(22))
