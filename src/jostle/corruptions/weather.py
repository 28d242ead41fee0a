"""Weather and what it leaves on the lens: fog, rain, snow, frost, drops and mud.

In nature these hold together over time: one bank of fog drifts by, the same flakes fall on. jostle's own table does so
(`moving`, or `still` for what sticks to the lens); the papers' profiles draw anew for every frame, or keep one picture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from jostle.core.kernels import inlined, kernel
from jostle.core.random import key_for
from jostle.core.types.clip import Frame
from jostle.corruptions.engine.context import ClipContext, FrameContext
from jostle.corruptions.engine.corruption import corruption
from jostle.corruptions.kernels.filters import correlate_plane, motion_trail, rows_of
from jostle.corruptions.kernels.sfc64 import Draws
from jostle.corruptions.kernels.smooth_motion import OverTime, drifts, sway, sways, texture_key
from jostle.corruptions.kernels.splashes import mud, water
from jostle.corruptions.kernels.streaks import STREAK, pour
from jostle.corruptions.kernels.textures import (
    ICE_TEXTURES,
    Plane,
    cloud,
    covering_side,
    ice_covering,
    normal_plane,
    raw_cloud,
    stretched,
)

Array = npt.NDArray[Any]

WATER, MUD = (175, 238, 238), (63, 42, 20)
FALLS = (-135, -45)  # degrees between which flakes fall


@corruption(level="frame", scale=((1.5, 2.0), (2.0, 2.0), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4)), cites="hendrycks2019")
def fog(
    frame: Frame,
    bank: tuple[float, float],
    at: FrameContext,
    *,
    over_time: OverTime = "moving",
    side: int | None = None,
) -> Frame:
    """A bank of fog of the given thickness, whose detail fades with the given decay.

    Args:
        side: of the square the fog is drawn on; by default the next power of two that covers the frame.
    """
    thickness, decay = bank
    side = covering_side(frame.shape[:2], side)
    key = texture_key(at, over_time)
    out = at.canvas(frame)
    # Fog that stays is brought to 0..1 once for the clip; fog that is redrawn, where it is used.
    if over_time == "redrawn":
        _lay_fog(rows_of(frame), rows_of(out), *raw_cloud(side, decay, key), np.float32(thickness))
        return out
    ((dy, dx),) = drifts(at.scene, [at.time_s], side, over_time)
    _lay_kept_fog(rows_of(frame), rows_of(out), _kept_cloud(side, decay, key), dy, dx, np.float32(thickness))
    return out


@corruption(
    level="frame",
    scale=((500, 20, 0.85), (400, 28, 0.78), (300, 36, 0.7), (220, 46, 0.62), (160, 56, 0.54)),
    cites="yi2021",
)
def rain(frame: Frame, shower: tuple[int, int, float], at: FrameContext, *, over_time: OverTime = "moving") -> Frame:
    """Falling rain: light streaks across a frame that has lost contrast, as under an overcast sky.

    `shower` is (pixels of the frame for each drop, length of a streak, share of the contrast left).
    Moving rain falls at its own speed, slanted by a wind that shifts slowly, and its length is for a frame 224 pixels
    high; redrawn rain is Mini Kinetics-C's, whose streaks all lean by one pixel.
    """
    area, length, left = shower
    height, width = frame.shape[:2]
    count = max(height * width // area, 1)
    if over_time == "redrawn":
        streaks = _fixed_streaks(count, length, height, width, Draws(at.key()))
    else:
        streaks = _falling_streaks(count, length * height / 224, height, width, at)
    mask = np.zeros((height, width), np.uint8)
    thickness = 1 if over_time == "redrawn" else max(round(height / 180), 1)
    cv2.polylines(mask, list(streaks), isClosed=False, color=STREAK, thickness=thickness)
    return pour(frame, mask, left, at.canvas(frame))


@corruption(
    level="frame",
    scale=(
        (0.1, 0.3, 3.0, 0.5, 10, 4, 0.8),
        (0.2, 0.3, 2.0, 0.5, 12, 4, 0.7),
        (0.55, 0.3, 4.0, 0.9, 12, 8, 0.7),
        (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    ),
    cites="hendrycks2019",
)
def snow(frame: Frame, fall: tuple[float, ...], at: FrameContext, *, over_time: OverTime = "moving") -> Frame:
    """Falling snow: white flakes, blurred along their fall, over a frame that turns pale.

    `fall` is (mean, standard deviation and enlargement of the noise that flakes are made of, the least value that is a
    flake, radius and sigma of their blur, share of the frame that does not turn pale).
    """
    height, width = frame.shape[:2]
    key = texture_key(at, over_time)
    flakes = _flakes(height, width, *fall[:6], key=key)
    if over_time == "moving":
        (way,) = snowfalls(at.scene, [at.time_s], height, width)
        fallen = np.roll(flakes, way[:2], (0, 1)) + np.roll(flakes[::-1, ::-1], way[2:], (0, 1))
    else:
        fallen = _with_turned(flakes)
    out = at.canvas(frame)
    _lay_snow(rows_of(frame), rows_of(out), fallen, np.float32(fall[6]))
    return out


def snowfalls(scene: ClipContext, times: Sequence[float], height: int, width: int) -> list[tuple[int, int, int, int]]:
    """Return the displacement of flakes down and right at each time, and that of the slower ones behind them."""
    gusts = sways(scene, times, "wind", 0.2)
    ways = [(height * 0.6 * time_s, width * 0.08 * gust) for time_s, gust in zip(times, gusts, strict=True)]
    return [(int(fall), int(wind), int(fall * 0.7), int(wind * 0.6)) for fall, wind in ways]


@corruption(
    level="frame", scale=((0.95, 0.25), (0.85, 0.4), (0.75, 0.55), (0.65, 0.7), (0.55, 0.85)), cites="hendrycks2019"
)
def frost(frame: Frame, blend: tuple[float, float], at: FrameContext, *, over_time: OverTime = "still") -> Frame:
    """Ice on the pane: the two shares of the frame and of an ice texture, added."""
    height, width = frame.shape[:2]
    texture, y, x = pane(at, height, width, over_time)
    out = at.canvas(frame)
    window = texture.reshape(len(texture), -1)[y : y + height, 3 * x : 3 * (x + width)]
    _blend(rows_of(frame), window, rows_of(out), *(np.int32(round(share * (1 << 14))) for share in blend))
    return out


def pane(at: FrameContext, height: int, width: int, over_time: OverTime) -> tuple[Frame, int, int]:
    """Return a texture of ice, and the row and column of it at which a frame begins."""
    draws = Draws(at.key() if over_time == "redrawn" else at.scene.key())
    texture = ice_covering(draws.integer(ICE_TEXTURES), height, width)
    rows, columns = places(texture, height, width)
    return texture, draws.integer(rows), draws.integer(columns)


def places(texture: Frame, height: int, width: int) -> tuple[int, int]:
    """Return the number of rows and columns of a texture at which a frame can begin."""
    return texture.shape[0] - height + 1, texture.shape[1] - width + 1


@corruption(
    level="frame",
    scale=(
        (0.65, 0.3, 4, 0.69, 0.6, 0),
        (0.65, 0.3, 3, 0.68, 0.6, 0),
        (0.65, 0.3, 2, 0.68, 0.5, 0),
        (0.65, 0.3, 1, 0.65, 1.5, 1),
        (0.67, 0.4, 1, 0.65, 1.5, 1),
    ),
    cites="hendrycks2019",
)
def spatter(frame: Frame, splash: tuple[float, ...], at: FrameContext, *, over_time: OverTime = "still") -> Frame:
    """Drops of water or mud on the lens; `splash` is (mean, sd, blur, threshold, gain, whether it is mud)."""
    height, width = frame.shape[:2]
    mean, sd, blur, threshold, gain, is_mud = splash
    drawn = mud if is_mud else water
    plane = drawn(height, width, mean, sd, float(blur), threshold, gain, key=texture_key(at, over_time))
    colour = np.array(MUD if is_mud else WATER, np.float32)
    out = at.canvas(frame)
    _cover(rows_of(frame), rows_of(out), plane, colour, np.float32(is_mud))
    return out


@lru_cache(4)
def _kept_cloud(side: int, decay: float, key: int) -> Plane:
    return cloud(side, decay, key)


def _fixed_streaks(count: int, length: int, height: int, width: int, draws: Draws) -> Array:
    # The published program draws a slant, uses it only to limit where a streak begins, and draws every streak one pixel
    # to the left; it fails on a frame lower than a streak, where ours begins above the frame.
    slant = draws.integer(20) - 10
    low, high = (slant, width) if slant < 0 else (0, max(width - slant, 1))
    x = draws.integers(low, high, count)
    y = draws.integers(min(0, height - length), max(height - length, 1), count)
    streaks = np.empty((count, 2, 2), np.int32)
    streaks[:, 0, 0], streaks[:, 0, 1], streaks[:, 1, 0], streaks[:, 1, 1] = x, y, x - 1, y + length
    return streaks


def _falling_streaks(count: int, length: float, height: int, width: int, at: FrameContext) -> Array:
    rng = at.scene.rng("drops")
    depth = rng.uniform(0.5, 1.0, count)  # 1 is near: longer and faster
    begin = rng.uniform(0, 1, count)
    lean = 0.15 + 0.2 * sway(at, "wind", 0.15)
    path = height + length
    travelled = begin * path + depth * 2.2 * height * at.time_s
    lap = np.floor(travelled / path)
    y = travelled - lap * path - length
    # A drop that has left comes back somewhere else: a golden-ratio step spreads its laps over the width.
    x = (rng.uniform(0, 1, count) + lap * 0.618034) % 1.0 * (width + 0.35 * height) - 0.35 * height * max(lean, 0)
    x = x + lean * y
    tail = np.stack([x + lean * length * depth, y + length * depth], 1)
    return np.stack([np.stack([x, y], 1), tail], 1).round().astype(np.int32)


@lru_cache(4)
def _flakes(
    height: int,
    width: int,
    mean: float,
    sd: float,
    zoom: float,
    threshold: float,
    radius: int,
    sigma: float,
    *,
    key: int,
) -> Plane:
    # Only the middle of the layer survives the zoom, so only that is drawn.
    small = normal_plane(math.ceil(height / zoom), math.ceil(width / zoom), key, mean, sd)
    layer = stretched(small, height, width, zoom)
    _leave_flakes(layer, np.float32(threshold))
    angle = Draws(key_for(key, "fall")).uniform(*FALLS)
    layer = correlate_plane(layer, *motion_trail(radius, sigma, angle))
    return np.asarray(np.rint(layer * 255), np.float32)


# What varies by pixel is worked out once for its three channels, which are written out: the compiler then takes the
# channels of many pixels apart at once and puts them together again. A loop over channels is five times slower, and to
# spread what varies over rows of values first takes twice as long.


@inlined
def _fog_gain(rows: Frame, thickness: np.float32) -> tuple[np.float32, np.float32]:
    """Return the factors of frame and fog that preserve the level of the brightest pixel."""
    most = np.uint8(0)
    for y in range(rows.shape[0]):
        for x in range(rows.shape[1]):
            most = max(most, rows[y, x])
    brightest = np.float32(most) / np.float32(255)
    gain = brightest / (brightest + thickness)
    return gain, np.float32(255) * thickness * gain


@kernel
def _lay_fog(rows: Frame, out: Frame, raw: Plane, low: np.float32, span: np.float32, thickness: np.float32) -> None:
    gain, lift = _fog_gain(rows, thickness)
    bank = np.empty(rows.shape[1] // 3, np.float32)
    for y in range(len(rows)):
        source = raw[y]
        for x in range(len(bank)):
            bank[x] = (source[x] - low) / span
        _fogged(rows[y], out[y], bank, gain, lift)


@kernel
def _lay_kept_fog(rows: Frame, out: Frame, plane: Plane, dy: int, dx: int, thickness: np.float32) -> None:
    gain, lift = _fog_gain(rows, thickness)
    width, side = rows.shape[1] // 3, len(plane)
    # The plane is a torus: a row that leaves it on the right comes in again on the left.
    right = min(width, side - dx)
    for y in range(len(rows)):
        source = plane[(y + dy) % side]
        _fogged(rows[y, : 3 * right], out[y], source[dx:], gain, lift)
        _fogged(rows[y, 3 * right :], out[y, 3 * right :], source, gain, lift)


@inlined
def _fogged(clean: Frame, out: Frame, bank: Plane, gain: np.float32, lift: np.float32) -> None:
    # The gain keeps this below 256.
    for x in range(len(clean) // 3):
        fog_level = bank[x] * lift
        out[3 * x] = np.uint8(np.int32(np.float32(clean[3 * x]) * gain + fog_level))
        out[3 * x + 1] = np.uint8(np.int32(np.float32(clean[3 * x + 1]) * gain + fog_level))
        out[3 * x + 2] = np.uint8(np.int32(np.float32(clean[3 * x + 2]) * gain + fog_level))


@kernel
def _leave_flakes(layer: Plane, threshold: np.float32) -> None:
    """Set values below the threshold to 0, and clip the others at 1."""
    for y in range(len(layer)):
        line = layer[y]
        for x in range(len(line)):
            line[x] = min(line[x], np.float32(1)) if line[x] >= threshold else np.float32(0)


@kernel
def _with_turned(flakes: Plane) -> Plane:
    """Return the flakes combined with the same flakes turned upside down."""
    height, width = flakes.shape
    out = np.empty((height, width), np.float32)
    for y in range(height):
        line, turned, both = flakes[y], flakes[height - 1 - y], out[y]
        for x in range(width):
            both[x] = line[x] + turned[width - 1 - x]
    return out


@kernel
def _lay_snow(rows: Frame, out: Frame, fallen: Plane, mix: np.float32) -> None:
    rest = np.float32(1) - mix
    for y in range(len(rows)):
        clean, snowed, flakes = rows[y], out[y], fallen[y]
        for x in range(len(flakes)):
            red, green, blue = np.float32(clean[3 * x]), np.float32(clean[3 * x + 1]), np.float32(clean[3 * x + 2])
            grey = np.float32(0.299) * red + np.float32(0.587) * green + np.float32(0.114) * blue
            white = grey * np.float32(1.5) + np.float32(127.5)
            snowed[3 * x] = _cut(mix * red + rest * max(red, white) + flakes[x])
            snowed[3 * x + 1] = _cut(mix * green + rest * max(green, white) + flakes[x])
            snowed[3 * x + 2] = _cut(mix * blue + rest * max(blue, white) + flakes[x])


@inlined
def _cut(level: np.float32) -> np.uint8:
    return np.uint8(np.int32(min(level, np.float32(255))))


@kernel
def _blend(rows: Frame, texture: Frame, out: Frame, share: np.int32, texture_share: np.int32) -> None:
    height, width = rows.shape
    for y in range(height):
        clean, ice_line, frosted = rows[y], texture[y], out[y]
        for x in range(width):
            # Every step is kept within 32 bits: with 64, half as many values are processed at a time.
            part, rest = np.int32(np.int32(clean[x]) * share), np.int32(np.int32(ice_line[x]) * texture_share)
            level = np.int32(np.int32(part + rest) >> np.int32(14))
            frosted[x] = np.uint8(min(level, np.int32(255)))


@kernel
def _cover(rows: Frame, out: Frame, plane: Plane, colour: Array, opaque: np.float32) -> None:
    """Add a colour in proportion to `plane`; what is opaque hides the frame in the same proportion."""
    red, green, blue = colour[0], colour[1], colour[2]
    for y in range(len(rows)):
        clean, covered, cover = rows[y], out[y], plane[y]
        for x in range(len(cover)):
            transparency = np.float32(1) - opaque * cover[x]
            covered[3 * x] = _cut(np.float32(clean[3 * x]) * transparency + cover[x] * red)
            covered[3 * x + 1] = _cut(np.float32(clean[3 * x + 1]) * transparency + cover[x] * green)
            covered[3 * x + 2] = _cut(np.float32(clean[3 * x + 2]) * transparency + cover[x] * blue)
