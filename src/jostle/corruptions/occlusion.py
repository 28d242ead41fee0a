"""Occlusion of the lens by a hand with its forearm, drawn here."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel
from jostle.core.types.clip import Frame
from jostle.corruptions.engine.context import FrameContext
from jostle.corruptions.engine.corruption import corruption
from jostle.corruptions.kernels.median import median_of_seven
from jostle.corruptions.kernels.smooth_motion import sway

# The published overlay is 787 by 442 pixels, a dark, back-lit hand over 26.7 % of them; ours has the same size, colour
# and cover.
CANVAS = (787, 442)
SKIN = (45.8, 33.5, 23.6)

# Bones as (from, to, width at either end), in pixels of the canvas.
BONES = (
    ((-60, 470), (285, 268), 180, 125),  # forearm
    ((270, 280), (352, 214), 130, 158),  # heel of the hand
    ((345, 235), (402, 166), 165, 141),  # palm
    ((352, 150), (330, 62), 48, 40),  # thumb, two bones
    ((330, 62), (352, 18), 40, 29),
    ((398, 128), (452, 40), 44, 32),  # fingers
    ((420, 138), (526, 52), 46, 32),
    ((436, 160), (552, 108), 45, 32),
    ((436, 190), (530, 174), 40, 29),
)


@corruption(level="frame", scale=(0.45, 0.65, 0.85, 1.05, 1.25), cites="zeng2024")
def occlusion(
    frame: Frame, scale: float, at: FrameContext, *, moving: bool = True, median: int = 0, swapped: bool = False
) -> Frame:
    """A hand and forearm from the lower left, `scale` times as large as fits the frame.

    Args:
        moving: the hand sways a little; otherwise it keeps to the corner.
        median: size of a median filter over the whole frame afterwards, which the released program applies.
        swapped: red and blue of the overlay exchanged, as in the released program.
    """
    height, width = frame.shape[:2]
    hand, cover = _hand(height, width, scale, swapped)
    top, left = height - hand.shape[0], 0
    if moving:
        reach = 0.04 * height
        top += round(reach * (1 + sway(at, "down", 0.7)) / 2)
        left -= round(reach * (1 + sway(at, "right", 0.7)) / 2)
    out = at.canvas(frame)
    pasted = np.empty(frame.shape, np.uint8) if median else out
    pasted[:] = frame
    _paste(pasted, hand, cover, top, left)
    if median == 7:
        return median_of_seven(pasted, out)
    return np.asarray(cv2.medianBlur(pasted, median, dst=out), np.uint8) if median else out


@lru_cache(16)
def _hand(height: int, width: int, scale: float, swapped: bool) -> tuple[Frame, npt.NDArray[np.uint8]]:
    size = min(height / CANVAS[1], width / CANVAS[0]) * scale
    shape = (max(int(CANVAS[0] * size), 1), max(int(CANVAS[1] * size), 1))
    picture, cover = drawn_hand()
    if swapped:
        picture = picture[..., ::-1].copy()
    small = np.asarray(cv2.resize(picture, shape, interpolation=cv2.INTER_LINEAR), np.uint8)
    return small, np.asarray(cv2.resize(cover, shape, interpolation=cv2.INTER_LINEAR), np.uint8)


@lru_cache(1)
def drawn_hand() -> tuple[Frame, npt.NDArray[np.uint8]]:
    """Draw the overlay: colours (442, 787, 3) and cover (442, 787), 0 or 255."""
    cover = np.zeros((CANVAS[1], CANVAS[0]), np.uint8)
    light = np.zeros((CANVAS[1], CANVAS[0]), np.float32)
    for start, end, wide, narrow in BONES:
        _bone(cover, light, np.array(start, float), np.array(end, float), wide, narrow)
    # Back-lit: nearly flat, a shade lighter towards the middle of each limb.
    light = np.asarray(cv2.GaussianBlur(light, (0, 0), 6), np.float32)
    inside = cover > 0
    shade = 0.75 + 0.5 * light / max(float(light.max()), 1e-6)
    shade /= shade[inside].mean()
    colour = np.clip(shade[..., None] * np.array(SKIN, np.float32), 0, 255)
    return np.asarray(colour, np.uint8), cover


def _bone(cover: Any, light: Any, start: Any, end: Any, wide: float, narrow: float) -> None:
    """Draw a limb between two points: discs along the line with changing width."""
    for share in np.linspace(0, 1, 60):
        place = start + (end - start) * share
        radius = (wide + (narrow - wide) * share) / 2
        where = tuple(int(v) for v in np.round(place))
        cv2.circle(cover, where, round(radius), 255, -1)
        cv2.circle(light, where, round(radius * 0.5), 1.0, -1)


@kernel
def _paste(frame: Frame, picture: Frame, cover: npt.NDArray[np.uint8], top: int, left: int) -> None:
    for y in range(max(top, 0), min(top + len(picture), len(frame))):
        for x in range(max(left, 0), min(left + picture.shape[1], frame.shape[1])):
            if cover[y - top, x - left]:
                frame[y, x, 0] = picture[y - top, x - left, 0]
                frame[y, x, 1] = picture[y - top, x - left, 1]
                frame[y, x, 2] = picture[y - top, x - left, 2]
