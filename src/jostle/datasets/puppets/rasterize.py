"""From shapes to pixels: capsules, rounded polygons and soft glows, painted back to front over a drifting texture.

Shapes arrive in whole 256ths of a pixel. What the kernels do with them is plain arithmetic and square roots, in a
fixed order, so the bytes do not depend on the machine, whatever its sines did in the last bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import inlined, kernel

CAPSULE, POLYGON, GLOW = 0, 1, 2
CORNERS = 6  # of a polygon, at most
WIDTH = 2 * CORNERS + 1  # numbers that describe a shape
UNIT = 256  # steps in a pixel
DEPTH = 64  # steps in a grey level while layers are mixed
FAR = -4096.0  # where a shape lies that is not to be seen, in pixels

Ints = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]


def fixed(values: npt.NDArray[Any]) -> Ints:
    """Pixels in whole 256ths, kept well inside 32 bits."""
    steps: Ints = np.rint(np.clip(values, FAR, -FAR) * UNIT).astype(np.int32)
    return steps


@inlined
def _capsule(x: float, y: float, shape: Ints) -> float:
    """Return the coverage of the pixel at (x, y) by a tapered capsule: x1, y1, r1, x2, y2, r2."""
    dx = float(shape[3] - shape[0])
    dy = float(shape[4] - shape[1])
    px = x - shape[0]
    py = y - shape[1]
    length = dx * dx + dy * dy
    along = 0.0
    if length > 0.0:
        along = min(max((px * dx + py * dy) / length, 0.0), 1.0)
    radius = shape[2] + (shape[5] - shape[2]) * along
    px -= dx * along
    py -= dy * along
    square = px * px + py * py
    outer = radius + 128.0
    if square >= outer * outer:
        return 0.0
    inner = radius - 128.0
    if inner > 0.0 and square <= inner * inner:
        return 1.0
    return float(min((outer - math.sqrt(square)) / 256.0, 1.0))


@inlined
def _glow(x: float, y: float, shape: Ints) -> float:
    """A soft spot that fades to its rim: x, y, half width, half height, strength in 256ths."""
    px = (x - shape[0]) / max(shape[2], 1)
    py = (y - shape[1]) / max(shape[3], 1)
    left = 1.0 - px * px - py * py
    if left <= 0.0:
        return 0.0
    return float(min(left * 1.5, 1.0) * shape[4] / 256.0)


@kernel
def _edges(shape: Ints, corners: int, edges: npt.NDArray[np.float64]) -> None:
    """A convex polygon's sides as (normal x, normal y, offset), pointing outwards whichever way it winds."""
    area = 0.0
    for i in range(corners):
        j = (i + 1) % corners
        area += float(shape[2 * i]) * shape[2 * j + 1] - float(shape[2 * j]) * shape[2 * i + 1]
    turn = 1.0 if area >= 0.0 else -1.0
    for i in range(corners):
        j = (i + 1) % corners
        dx = float(shape[2 * j] - shape[2 * i])
        dy = float(shape[2 * j + 1] - shape[2 * i + 1])
        length = math.sqrt(dx * dx + dy * dy)
        if length == 0.0:
            length = 1.0
        edges[i, 0] = turn * dy / length
        edges[i, 1] = -turn * dx / length
        edges[i, 2] = edges[i, 0] * shape[2 * i] + edges[i, 1] * shape[2 * i + 1]


@inlined
def _polygon(x: float, y: float, rounding: float, corners: int, edges: npt.NDArray[np.float64]) -> float:
    """Return the coverage of the pixel at (x, y) by a convex polygon."""
    depth = -1e9
    for i in range(corners):
        depth = max(depth, edges[i, 0] * x + edges[i, 1] * y - edges[i, 2])
    return min(max((rounding + 128.0 - depth) / 256.0, 0.0), 1.0)


@kernel
def _box(kind: int, corners: int, shape: Ints, height: int, width: int, box: Ints) -> None:
    """Return the pixels a shape can touch, as half-open rows and columns inside the picture."""
    if kind == POLYGON:
        left = right = shape[0]
        top = bottom = shape[1]
        for i in range(1, corners):
            left, right = min(left, shape[2 * i]), max(right, shape[2 * i])
            top, bottom = min(top, shape[2 * i + 1]), max(bottom, shape[2 * i + 1])
        rim = shape[12] + 256
        left, right, top, bottom = left - rim, right + rim, top - rim, bottom + rim
    elif kind == GLOW:
        left, right = shape[0] - shape[2], shape[0] + shape[2]
        top, bottom = shape[1] - shape[3], shape[1] + shape[3]
    else:
        rim = max(shape[2], shape[5]) + 256
        left, right = min(shape[0], shape[3]) - rim, max(shape[0], shape[3]) + rim
        top, bottom = min(shape[1], shape[4]) - rim, max(shape[1], shape[4]) + rim
    box[0], box[1] = max(top >> 8, 0), min((bottom >> 8) + 1, height)
    box[2], box[3] = max(left >> 8, 0), min((right >> 8) + 1, width)


@kernel
def paint(canvas: Ints, kinds: Ints, colours: Ints, shapes: Ints) -> None:
    """Paint shapes over a canvas (H, W, 3) whose grey levels count in 64ths, the first one rearmost.

    Args:
        kinds: (S, 2): which shape, and how many corners if it is a polygon.
        colours: (S, 3).
        shapes: (S, 13), in 256ths of a pixel.
    """
    edges = np.zeros((CORNERS, 3), np.float64)
    box = np.zeros(4, np.int32)
    height, width = canvas.shape[0], canvas.shape[1]
    for s in range(len(kinds)):
        kind, corners, shape = kinds[s, 0], kinds[s, 1], shapes[s]
        _box(kind, corners, shape, height, width, box)
        if box[0] >= box[1] or box[2] >= box[3]:
            continue
        if kind == POLYGON:
            _edges(shape, corners, edges)
        red, green, blue = colours[s, 0] * DEPTH, colours[s, 1] * DEPTH, colours[s, 2] * DEPTH
        for row in range(box[0], box[1]):
            y = row * 256.0 + 128.0
            for column in range(box[2], box[3]):
                x = column * 256.0 + 128.0
                if kind == CAPSULE:
                    cover = _capsule(x, y, shape)
                elif kind == POLYGON:
                    cover = _polygon(x, y, float(shape[12]), corners, edges)
                else:
                    cover = _glow(x, y, shape)
                share = int(cover * 256.0 + 0.5)
                if share > 0:
                    pixel = canvas[row, column]
                    pixel[0] += ((red - pixel[0]) * share) >> 8
                    pixel[1] += ((green - pixel[1]) * share) >> 8
                    pixel[2] += ((blue - pixel[2]) * share) >> 8


@kernel
def _backdrop(texture: Bytes, camera: Ints, horizon: int, canvas: Ints) -> None:
    """Fill the canvas with the texture under the camera; above the horizon the wall has its own offset."""
    rows, columns = texture.shape[0], texture.shape[1]
    height, width = canvas.shape[0], canvas.shape[1]
    for row in range(height):
        v = camera[2] + (row * camera[3] >> 8)
        v = min(max(v, 0), (rows - 1) * 256 - 1)
        top, down = v >> 8, v & 255
        start = camera[0] if top < horizon else camera[1]
        for column in range(width):
            u = start + (column * camera[3] >> 8)
            left = u & 255
            first = (u >> 8) % columns
            right = first + 1 if first + 1 < columns else 0
            a, b = (256 - left) * (256 - down), left * (256 - down)
            c, d = (256 - left) * down, left * down
            for channel in range(3):
                total = a * texture[top, first, channel] + b * texture[top, right, channel]
                total += c * texture[top + 1, first, channel] + d * texture[top + 1, right, channel]
                canvas[row, column, channel] = total >> 10


@kernel
def render(
    texture: Bytes, cameras: Ints, horizon: int, kinds: Ints, colours: Ints, shapes: Ints, light: Ints, out: Bytes
) -> None:
    """Draw frames into `out` (T, H, W, 3).

    Args:
        texture: (rows, columns, 3); it repeats sideways.
        cameras: (T, 4): left edge of the wall and of the floor and the top edge, in 256ths of a texel, and the texels
            a pixel takes, in 65536ths.
        horizon: the texture's row where the floor begins.
        light: (T, 4): gain of red, green and blue in 256ths, and how much the gain grows over the width.
    """
    height, width = out.shape[1], out.shape[2]
    canvas = np.empty((height, width, 3), np.int32)
    gains = np.empty((width, 3), np.int32)
    for t in range(len(out)):
        _backdrop(texture, cameras[t], horizon, canvas)
        paint(canvas, kinds, colours, shapes[t])
        for column in range(width):
            for channel in range(3):
                gains[column, channel] = light[t, channel] + light[t, 3] * (2 * column - width) // (2 * width)
        for row in range(height):
            for column in range(width):
                for channel in range(3):
                    value = (canvas[row, column, channel] * gains[column, channel] + 8192) >> 14
                    out[t, row, column, channel] = min(max(value, 0), 255)


@kernel
def outlines(kinds: Ints, shapes: Ints, owners: Ints, height: int, width: int, result: Ints) -> None:
    """Compute the visible pixels of each object, frame by frame, and their bounding box.

    Args:
        owners: (S,): the thing that a shape is a part of, or -1.
        found: (T, K, 5), filled: pixels, then left, top, right and bottom, the last two one beyond.
    """
    edges = np.zeros((CORNERS, 3), np.float64)
    box = np.zeros(4, np.int32)
    owner = np.empty((height, width), np.int32)
    for t in range(len(result)):
        for row in range(height):
            for column in range(width):
                owner[row, column] = -1
        for s in range(len(kinds)):
            kind, corners, shape = kinds[s, 0], kinds[s, 1], shapes[t, s]
            if kind == GLOW:
                continue
            _box(kind, corners, shape, height, width, box)
            if kind == POLYGON:
                _edges(shape, corners, edges)
            for row in range(box[0], box[1]):
                for column in range(box[2], box[3]):
                    x, y = column * 256.0 + 128.0, row * 256.0 + 128.0
                    if kind == CAPSULE:
                        cover = _capsule(x, y, shape)
                    else:
                        cover = _polygon(x, y, float(shape[12]), corners, edges)
                    if cover >= 0.5:
                        owner[row, column] = owners[s]
        for k in range(result.shape[1]):
            result[t, k, 0], result[t, k, 1], result[t, k, 2], result[t, k, 3], result[t, k, 4] = 0, width, height, 0, 0
        for row in range(height):
            for column in range(width):
                k = owner[row, column]
                if k >= 0:
                    result[t, k, 0] += 1
                    result[t, k, 1] = min(result[t, k, 1], column)
                    result[t, k, 2] = min(result[t, k, 2], row)
                    result[t, k, 3] = max(result[t, k, 3], column + 1)
                    result[t, k, 4] = max(result[t, k, 4], row + 1)


@kernel
def visible(kinds: Ints, shapes: Ints, watched: Ints, height: int, width: int, area: npt.NDArray[np.float64]) -> None:
    """Count the visible pixels of the watched shapes, frame by frame.

    Args:
        watched: (T, S): 1 for a shape that is watched in that frame.
        area: (T,), filled.
    """
    edges = np.zeros((CORNERS, 3), np.float64)
    box = np.zeros(4, np.int32)
    counts = np.empty((height, width), np.float64)
    for t in range(len(area)):
        counts[:] = 0.0
        begun = False
        for s in range(len(kinds)):
            begun = begun or watched[t, s] == 1
            kind, corners, shape = kinds[s, 0], kinds[s, 1], shapes[t, s]
            if not begun or kind == GLOW:
                continue
            _box(kind, corners, shape, height, width, box)
            if kind == POLYGON:
                _edges(shape, corners, edges)
            for row in range(box[0], box[1]):
                for column in range(box[2], box[3]):
                    x, y = column * 256.0 + 128.0, row * 256.0 + 128.0
                    if kind == CAPSULE:
                        cover = _capsule(x, y, shape)
                    else:
                        cover = _polygon(x, y, float(shape[12]), corners, edges)
                    counts[row, column] += (watched[t, s] - counts[row, column]) * cover
        area[t] = counts.sum()
