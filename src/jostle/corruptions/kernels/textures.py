"""Random fields and generated textures: clouds, flakes, ice.

A field is a function of a key and a size, so it can be drawn again anywhere; the few in use are kept.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel, multiply_add
from jostle.core.random import rng_for
from jostle.corruptions.kernels.streams import draw, normal_quantiles

Array = npt.NDArray[Any]
Plane = npt.NDArray[np.float32]  # (H, W)


def normal_plane(height: int, width: int, key: int, mean: float, sd: float) -> Plane:
    """Return a plane of independent normal numbers."""
    out = np.empty((height, width), np.float32)
    _fill(out, normals(mean, sd), np.uint64(key))
    return out


def uniform_plane(height: int, width: int, key: int) -> Plane:
    """Return a plane of independent numbers, uniform in -1..1."""
    out = np.empty((height, width), np.float32)
    _fill(out, _uniforms(), np.uint64(key))
    return out


def cloud(side: int, decay: float, key: int) -> Plane:
    """Return a plasma cloud in 0..1 by diamond-square on a torus of `side` pixels, a power of two.

    The deviation added at each halving is uniform in +-w * w, where w starts at 100 and is divided by `decay`, as in
    Hendrycks and Dietterich (2019). Since it is a torus it can be moved without a seam.
    """
    plane, low, span = raw_cloud(side, decay, key)
    plane -= low  # in place: fresh memory for two more planes takes longer than the arithmetic
    plane /= span
    return plane


def raw_cloud(side: int, decay: float, key: int) -> tuple[Plane, np.float32, np.float32]:
    """Return an unscaled cloud, the value to subtract and the divisor that scale it to 0..1."""
    plane = np.empty((side, side), np.float32)
    _diamond_square(plane, np.float32(decay), np.uint64(key))
    low, high = plane.min(), plane.max()
    return plane, low, max(high - low, np.float32(1e-6))


def power_of_two(least: int) -> int:
    """Return the smallest power of two that is not below `least`."""
    return 1 << max(least - 1, 1).bit_length()


def covering_side(size: tuple[int, ...], side: int | None) -> int:
    """Return the side of a square cloud that covers a frame: `side` if it does, else a power of two."""
    return side if side and side >= max(size) else power_of_two(max(size))


def stretched(small: Plane, height: int, width: int, zoom: float) -> Plane:
    """Enlarge bilinearly on a grid that shares its corners, cropped at the top left."""
    out = np.empty((height, width), np.float32)
    _stretch(small, out, *between_points(small.shape[0], height, zoom), *between_points(small.shape[1], width, zoom))
    return out


@lru_cache(8)
def between_points(size: int, length: int, zoom: float) -> tuple[Array, Plane]:
    """Return for each position of an enlargement the point before it, and the share of the next."""
    enlarged = round(size * zoom)
    step = (size - 1) / (enlarged - 1) if enlarged > 1 else 0.0
    place = np.minimum(np.arange(length) * step, size - 1).astype(np.float32)
    before = np.floor(place)
    return before.astype(np.int64), place - before


@lru_cache(16)
def normals(mean: float, sd: float) -> Plane:
    """Return (65536,) the normal number for each value of 16 random bits."""
    return np.asarray(mean + sd * normal_quantiles().astype(np.float32), np.float32)


@lru_cache(1)
def _uniforms() -> Plane:
    return (((np.arange(65536) + 0.5) / 32768) - 1).astype(np.float32)


@kernel
def _stretch(small: Plane, out: Plane, row: Array, row_share: Plane, column: Array, column_share: Plane) -> None:
    # Rounded once for a product and its sum, as in OpenCV's `remap` of today where the processor can, and here always.
    tall, wide = small.shape
    height, width = out.shape
    across = np.empty((tall, width), np.float32)
    for y in range(tall):
        for x in range(width):
            left, right = small[y, column[x]], small[y, min(column[x] + 1, wide - 1)]
            across[y, x] = multiply_add(column_share[x], right - left, left)
    for y in range(height):
        upper, lower, made, share = across[row[y]], across[min(row[y] + 1, tall - 1)], out[y], row_share[y]
        for x in range(width):
            made[x] = multiply_add(share, lower[x] - upper[x], upper[x])


@kernel
def _fill(out: Plane, values: Plane, key: np.uint64) -> None:
    height, width = out.shape
    words = np.empty((width + 3) // 4, np.uint64)  # a random word serves four
    chance = words.view(np.uint16)
    for y in range(height):
        draw(words, key, y)
        line = out[y]
        for x in range(width):
            line[x] = values[chance[x]]


@kernel
def _between(out: Array, a: Array, b: Array, c: Array, d: Array, chance: Array, unit: np.float32, spread: np.float32,
             ) -> None:  # fmt: skip
    """Set points to the means of four neighbours plus a deviation."""
    for i in range(len(out)):
        mean = ((a[i] + b[i]) + (c[i] + d[i])) * np.float32(0.25)
        out[i] = mean + (np.float32(chance[i]) * unit - spread)


@kernel
def _diamond_square(plane: Plane, decay: np.float32, key: np.uint64) -> None:
    # The points known so far are kept close together, row by row, rather than where they will stand, so neighbours are
    # neighbours in memory. Each row ends with its first point again, as the plane is a torus.
    side = len(plane)
    words = np.empty((side + 3) // 4, np.uint64)
    chance = words.view(np.uint16)
    most = side // 2 + 1
    known, refined = np.zeros(most * most, np.float32), np.empty(most * most, np.float32)
    middles = np.empty(most * most, np.float32)  # each row begins with its last point, likewise
    across, down = np.empty(most, np.float32), np.empty(most, np.float32)
    size = side
    deviation = np.float32(100)
    row = 0
    while size >= 2:
        count = side // size
        wide = count + 1
        spread = deviation * deviation
        unit = spread * np.float32(2.0**-15)
        used = words[: (count + 3) // 4]
        for i in range(count):
            draw(used, key, row + i)
            upper, lower = known[i * wide :], known[(i + 1) % count * wide :]
            middle = middles[i * wide + 1 : (i + 1) * wide]
            _between(middle, upper, lower, upper[1:], lower[1:], chance, unit, spread)
            middles[i * wide] = middle[count - 1]
        row += count
        for i in range(count):
            upper, lower = known[i * wide :], known[(i + 1) % count * wide :]
            middle, above = middles[i * wide :], middles[(i - 1) % count * wide + 1 :]
            draw(used, key, row + 2 * i)
            _between(across[:count], above, middle[1:], upper, upper[1:], chance, unit, spread)
            draw(used, key, row + 2 * i + 1)
            _between(down[:count], upper, lower, middle, middle[1:], chance, unit, spread)
            last = size == 2
            even = plane[2 * i] if last else refined[2 * i * (2 * count + 1) :]
            odd = plane[2 * i + 1] if last else refined[(2 * i + 1) * (2 * count + 1) :]
            for x in range(count):
                even[2 * x] = upper[x]
                even[2 * x + 1] = across[x]
            for x in range(count):
                odd[2 * x] = down[x]
                odd[2 * x + 1] = middle[x + 1]
            if not last:
                even[2 * count] = even[0]
                odd[2 * count] = odd[0]
        row += 2 * count
        known, refined = refined, known
        size //= 2
        deviation /= decay


ICE_TEXTURES = 5
_ICE_SIZE = (480, 640)


@lru_cache(ICE_TEXTURES)
def ice(number: int) -> npt.NDArray[np.uint8]:
    """Generate one of five textures of frost, (480, 640, 3): feathers of ice over a thin, uneven film."""
    rng = rng_for(number, "ice")
    height, width = _ICE_SIZE
    side = power_of_two(width)
    film = cloud(side, 1.6, int(rng.integers(1 << 63)))[:height, :width]
    grain = cloud(side, 1.25, int(rng.integers(1 << 63)))[:height, :width]
    sheet = 0.25 + 0.35 * film + 0.25 * (1 - np.abs(2 * grain - 1))
    feathers = np.zeros(_ICE_SIZE, np.float32)
    for _ in range(60):
        _feather(feathers, rng)
    blurred = cv2.GaussianBlur(feathers, (0, 0), 1.2)
    light = np.clip(sheet + 0.55 * np.maximum(feathers * 0.6, blurred), 0, 1)
    tint = np.array([0.90, 0.96, 1.0], np.float32)
    return np.asarray(light[..., None] * tint * 255, np.uint8)


@lru_cache(16)
def ice_covering(number: int, height: int, width: int) -> npt.NDArray[np.uint8]:
    """Return a frost texture large enough for a frame to begin at several positions."""
    texture = ice(number)
    scale = max(height / texture.shape[0], width / texture.shape[1], 1 / 1.1) * 1.1
    if scale == 1:
        return texture
    size = (math.ceil(texture.shape[1] * scale), math.ceil(texture.shape[0] * scale))
    return np.asarray(cv2.resize(texture, size, interpolation=cv2.INTER_LINEAR), np.uint8)


def _feather(canvas: Plane, rng: np.random.Generator) -> None:
    """Draw one crystal: a curved spine with needles on both sides that shorten towards its tip."""
    height, width = canvas.shape
    place = rng.uniform((0, 0), (width, height))
    heading, bend = rng.uniform(0, 2 * np.pi), rng.normal(0, 0.012)
    length, needle = rng.uniform(60, 200), rng.uniform(14, 45)
    spread, brightness = rng.uniform(0.6, 1.1), rng.uniform(0.35, 1.0)
    for i in range(int(length / 3)):
        done = 3 * i / length
        ahead = place + 3 * np.array([np.cos(heading), np.sin(heading)])
        _stroke(canvas, place, ahead, brightness)
        for side in (-1, 1):
            angle = heading + side * spread
            reach = needle * (1 - done) * rng.uniform(0.5, 1.0)
            tip = place + reach * np.array([np.cos(angle), np.sin(angle)])
            _stroke(canvas, place, tip, brightness * (1 - 0.6 * done) * 0.8)
        place, heading = ahead, heading + bend


def _stroke(canvas: Plane, start_xy: Any, end_xy: Any, brightness: float) -> None:
    a, b = (tuple(int(v) for v in np.round(point)) for point in (start_xy, end_xy))
    cv2.line(canvas, a, b, brightness, 1)
