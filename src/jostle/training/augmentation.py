"""Colour and rotation augmentation of clips, the same for all frames of a clip.

As BasicTAD and E2E-TAD were trained. Everything is computed in float32 pixel by pixel and rounded to bytes at the end,
so that it is the same on every processor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel
from jostle.core.types.clip import Frames

ZERO, ONE, HALF, MOST = np.float32(0), np.float32(1), np.float32(0.5), np.float32(255)
SIXTH, TURN = np.float32(60), np.float32(360)


@dataclass(frozen=True)
class ClipTransform:
    """Transform of the frames of a clip.

    Attributes:
        recoloured: whether any of the next five applies.
        brightness: added to grey levels.
        contrast: factor of grey levels.
        contrast_first: whether contrast comes before the change of colours, or after it.
        saturation: factor of the colours' strength.
        hue: rotation of the hue in degrees.
        order: permutation of the channels.
        angle: rotation of the picture in degrees; what lies beyond the edge is mirrored.

    >>> ClipTransform(recoloured=True, brightness=5.0).apply(np.full((1, 1, 1, 3), 7, np.uint8)).tolist()
    [[[[12, 12, 12]]]]
    """

    recoloured: bool = False
    brightness: float = 0.0
    contrast: float = 1.0
    contrast_first: bool = True
    saturation: float = 1.0
    hue: float = 0.0
    order: tuple[int, int, int] = (0, 1, 2)
    angle: float = 0.0

    def apply(self, frames: Frames) -> Frames:
        """Transform (T, H, W, 3) uint8 frames; frames without a change are returned as they are."""
        if self.recoloured:
            out = np.empty(frames.shape, np.uint8)
            contrast = np.float32(self.contrast)
            before, after = (contrast, ONE) if self.contrast_first else (ONE, contrast)
            colour = (np.float32(self.brightness), before, np.float32(self.saturation), np.float32(self.hue), after)
            _recolour(np.ascontiguousarray(frames), *colour, np.array(self.order, np.int64), out)
            frames = out
        if self.angle:
            # Rounded, because libraries differ in the last digit of a cosine.
            cosine, sine = (np.float32(round(f(math.radians(self.angle)), 6)) for f in (math.cos, math.sin))
            out = np.empty(frames.shape, np.uint8)
            _rotate(np.ascontiguousarray(frames), cosine, sine, out)
            frames = out
        return frames


def draw_transform(rng: np.random.Generator, recolour: float, rotate: float) -> ClipTransform:
    """Draw a transform: recolour a share `recolour` of clips, rotate half of them by up to `rotate` degrees."""
    transform = ClipTransform()
    if recolour and rng.random() < recolour:
        transform = ClipTransform(
            recoloured=True,
            brightness=float(rng.uniform(-32, 32)) if rng.random() < 0.5 else 0.0,
            contrast=float(rng.uniform(0.5, 1.5)) if rng.random() < 0.5 else 1.0,
            contrast_first=bool(rng.random() < 0.5),
            saturation=float(rng.uniform(0.5, 1.5)) if rng.random() < 0.5 else 1.0,
            hue=float(rng.uniform(-18, 18)),
            order=_order(rng) if rng.random() < 0.5 else (0, 1, 2),
        )
    if rotate and rng.random() < 0.5:
        transform = replace(transform, angle=float(rng.uniform(-rotate, rotate)))
    return transform


def _order(rng: np.random.Generator) -> tuple[int, int, int]:
    one, two, three = rng.permutation(3).tolist()
    return one, two, three


@kernel
def _recolour(
    frames: Frames,
    brightness: np.float32,
    before: np.float32,
    saturation: np.float32,
    hue: np.float32,
    after: np.float32,
    order: npt.NDArray[np.int64],
    out: Frames,
) -> None:
    count, height, width, _ = frames.shape
    rgb = np.empty(3, np.float32)
    for t in range(count):
        for y in range(height):
            for x in range(width):
                for c in range(3):
                    rgb[c] = (np.float32(frames[t, y, x, c]) + brightness) * before
                high = max(rgb[0], max(rgb[1], rgb[2]))
                low = min(rgb[0], min(rgb[1], rgb[2]))
                apart = high - low
                if apart > ZERO and high > ZERO:
                    if high == rgb[0]:
                        angle = np.divide(rgb[1] - rgb[2], apart) * SIXTH
                    elif high == rgb[1]:
                        angle = np.divide(rgb[2] - rgb[0], apart) * SIXTH + SIXTH + SIXTH
                    else:
                        angle = np.divide(rgb[0] - rgb[1], apart) * SIXTH + SIXTH * np.float32(4)
                    angle = angle + hue
                    angle = angle + TURN if angle < ZERO else (angle - TURN if angle >= TURN else angle)
                    apart = apart * saturation
                    for c in range(3):
                        # How far a colour is from the one that the angle points at, in sixths of the circle.
                        near = abs(np.divide(angle, SIXTH) - np.float32(2 * c))
                        near = min(near, np.float32(6) - near)
                        less = min(max(near - ONE, ZERO), ONE)
                        rgb[c] = high - apart * less
                for c in range(3):
                    value = rgb[order[c]] * after
                    value = min(max(value, ZERO), MOST)
                    out[t, y, x, c] = np.uint8(value + HALF)


@kernel
def _rotate(frames: Frames, cosine: np.float32, sine: np.float32, out: Frames) -> None:
    count, height, width, _ = frames.shape
    middle_y, middle_x = np.float32(height - 1) * HALF, np.float32(width - 1) * HALF
    for y in range(height):
        for x in range(width):
            down, across = np.float32(y) - middle_y, np.float32(x) - middle_x
            from_y = middle_y + (sine * across + cosine * down)
            from_x = middle_x + (cosine * across - sine * down)
            floor_y, floor_x = np.floor(from_y), np.floor(from_x)
            late, right = from_y - floor_y, from_x - floor_x
            y0, y1 = _mirror_index(int(floor_y), height), _mirror_index(int(floor_y) + 1, height)
            x0, x1 = _mirror_index(int(floor_x), width), _mirror_index(int(floor_x) + 1, width)
            for t in range(count):
                for c in range(3):
                    a, b = np.float32(frames[t, y0, x0, c]), np.float32(frames[t, y0, x1, c])
                    d, e = np.float32(frames[t, y1, x0, c]), np.float32(frames[t, y1, x1, c])
                    upper, lower = a + (b - a) * right, d + (e - d) * right
                    out[t, y, x, c] = np.uint8(upper + (lower - upper) * late + HALF)


@kernel
def _mirror_index(index: int, size: int) -> int:
    """Mirror an index beyond the edge at the middle of the outermost pixel."""
    if size == 1:
        return 0
    index = abs(index) % (2 * size - 2)
    return index if index < size else 2 * size - 2 - index
