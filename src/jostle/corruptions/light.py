"""Light and colour: too bright, too flat, too pale or gone.

Brightness and saturation depend only on a pixel and on the brightest and darkest of its three channels, so they are
tables over those: the corruptions of Hendrycks and Dietterich (2019) in closed form, without the trip through HSV.
"""

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
from jostle.corruptions.kernels.filters import rows_of, towards_mean

Table = npt.NDArray[Any]


@corruption(level="frame", scale=(0.1, 0.2, 0.3, 0.4, 0.5), cites="hendrycks2019")
def brightness(frame: Frame, added: float, at: FrameContext) -> Frame:
    """The value channel of HSV raised by `added` of full range."""
    out = at.canvas(frame)
    _by_maximum(np.ascontiguousarray(frame), out, _brightness_table(added))
    return out


@corruption(level="frame", scale=((1.5, 0.0), (2.0, 0.0), (3.0, 0.05), (5.0, 0.1), (20.0, 0.2)), cites="hendrycks2019")
def saturate(frame: Frame, factors: tuple[float, float], at: FrameContext) -> Frame:
    """The saturation channel of HSV multiplied by the first factor, then raised by the second."""
    out = at.canvas(frame)
    _by_range(np.ascontiguousarray(frame), out, _saturation_table(*factors))
    return out


@corruption(level="frame", scale=(0.4, 0.3, 0.2, 0.1, 0.05), cites="hendrycks2019")
def contrast(frame: Frame, factor: float, at: FrameContext) -> Frame:
    """Each channel drawn towards its mean over the frame; `factor` of the distance is left."""
    return towards_mean(frame, factor, at.canvas(frame))


@corruption(level="frame", scale=(40, 70, 100, 140, 180), cites="zeng2024")
def overexposure(frame: Frame, added: int, at: FrameContext, *, stretch: bool = False) -> Frame:
    """All three channels raised by `added` grey levels and cut off at white.

    Args:
        stretch: count `added` on a scale where the brightest value of the frame is 255, as the released I3D program
            does; a dark frame is then hardly touched. Its division by zero on a black frame gives black here.
    """
    out = at.canvas(frame)
    if not stretch:
        _add(rows_of(frame), rows_of(out), np.uint8(added))
        return out
    brightest = int(frame.max())
    if brightest == 0:
        return np.array(frame)
    gain = 255 / brightest
    table = np.minimum(np.arange(256) * gain + added, 255) / gain
    return np.asarray(cv2.LUT(frame, table.astype(np.uint8), dst=out), np.uint8)


@corruption(
    level="frame",
    scale=(0, 0, 0, 0, 0),
    placements=("centre:1%", "centre:5%", "centre:10%", "centre:20%", "centre:40%"),
    cites="zeng2024",
)
def black_frame(frame: Frame, level: int, at: FrameContext) -> Frame:
    """A black frame, as after a dropped connection; severity is the share of each action that is lost."""
    out = at.canvas(frame)
    out.fill(level)
    return out


@lru_cache(16)
def _brightness_table(added: float) -> Table:
    top = np.arange(256)[:, None] / 255  # the brightest channel
    value = np.arange(256)[None, :] / 255
    raised = np.clip(top + added, 0, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.where(top > 0, value * (raised / top), raised)
    scaled[np.diag_indices(256)] = raised[:, 0]
    return (np.clip(scaled, 0, 1) * 255).astype(np.uint8)


@lru_cache(16)
def _saturation_table(factor: float, added: float) -> Table:
    """Return the factor of the distance from the brightest channel, by brightest and darkest.

    A grey pixel has no such distance and hue 0, red: with `added` above 0 it turns reddish. Its entry is the new
    saturation itself, below 0 to tell it from the rest.
    """
    top = np.arange(256)[:, None] / 255
    low = np.arange(256)[None, :] / 255
    with np.errstate(divide="ignore", invalid="ignore"):
        saturation = np.where(top > 0, (top - low) / top, 0)
        scaled = np.clip(saturation * factor + added, 0, 1)
        table = np.where(saturation > 0, scaled / saturation, -np.clip(added, 0, 1))
    return table.astype(np.float32)


@kernel
def _add(rows: Frame, out: Frame, added: np.uint8) -> None:
    height, width = rows.shape
    most = np.uint8(255) - added
    for y in range(height):
        for x in range(width):
            out[y, x] = min(rows[y, x], most) + added


@kernel
def _by_maximum(frame: Frame, out: Frame, table: Table) -> None:
    height, width, _ = frame.shape
    for y in range(height):
        for x in range(width):
            red, green, blue = frame[y, x, 0], frame[y, x, 1], frame[y, x, 2]
            top = max(red, max(green, blue))
            out[y, x, 0] = table[top, red]
            out[y, x, 1] = table[top, green]
            out[y, x, 2] = table[top, blue]


@kernel
def _by_range(frame: Frame, out: Frame, table: Table) -> None:
    height, width, _ = frame.shape
    rows, result = frame.reshape(height, width * 3), out.reshape(height, width * 3)
    factors = table.reshape(table.size)
    place, factor = np.empty(width, np.uint16), np.empty(width, np.float32)
    for y in range(height):
        # Only the look-ups are done one by one, in a loop of their own.
        clean, vivid = rows[y], result[y]
        for x in range(width):
            red, green, blue = clean[3 * x], clean[3 * x + 1], clean[3 * x + 2]
            most, least = max(red, max(green, blue)), min(red, min(green, blue))
            place[x] = np.uint16(np.uint16(most) * np.uint16(256)) + np.uint16(least)
        grey = False
        for x in range(width):
            factor[x] = factors[place[x]]
            grey |= factor[x] < 0
        for x in range(width):
            red, green, blue = np.float32(clean[3 * x]), np.float32(clean[3 * x + 1]), np.float32(clean[3 * x + 2])
            top = max(red, max(green, blue))
            # A hair above, so that a result that is a whole number is not cut to the one below by rounding.
            above = top + np.float32(1e-3)
            vivid[3 * x] = np.uint8(np.int32(above - (top - red) * factor[x]))
            vivid[3 * x + 1] = np.uint8(np.int32(above - (top - green) * factor[x]))
            vivid[3 * x + 2] = np.uint8(np.int32(above - (top - blue) * factor[x]))
        if grey:
            for x in range(width):
                if factor[x] < 0:
                    red = np.float32(clean[3 * x])
                    other = np.uint8(red * (np.float32(1) + factor[x]) + np.float32(1e-3))
                    vivid[3 * x] = clean[3 * x]
                    vivid[3 * x + 1] = vivid[3 * x + 2] = other
