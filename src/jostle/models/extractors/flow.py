"""Optical flow: TV-L1 compiled by Numba, and resizing of pictures.

Every number is a float32 and written as one, so that nothing is widened on the way. Plus, times, divided by and the
square root are rounded in one way everywhere, and no sum depends on how a processor groups it. Quotients are written
`np.divide`: behind a slash hides a question whether to raise, for which loops are not done four numbers at a time.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import torch

from jostle.core.kernels import kernel
from jostle.models.input_spec import Frames
from jostle.models.preprocessing.geometry import pillow_resize

Plane = npt.NDArray[np.float32]

# Zach, Pock and Bischof's names for them, with the values that public flow was computed with.
THETA = np.float32(0.3)  # how far the two halves of the problem may lie apart
PULL = np.float32(0.15 * 0.3)  # lambda times theta: the longest step towards equal brightness
STEP = np.float32(0.25 / 0.3)  # tau over theta: of the dual variables
WARPS, ITERATIONS, LOOK_EVERY = 5, 300, 10
ENOUGH = 0.01 * 0.01  # mean square of a step, in pixels, after which there is no further one

ZERO, HALF, ONE, FLAT = np.float32(0), np.float32(0.5), np.float32(1), np.float32(1e-9)


@kernel
def _between(plane: Plane, y: np.float32, x: np.float32) -> np.float32:
    """A plane at a place between its pixels; beyond the edge it goes on as it is there."""
    high, wide = plane.shape[0] - 1, plane.shape[1] - 1
    y = ZERO if y < ZERO else (np.float32(high) if y > np.float32(high) else y)
    x = ZERO if x < ZERO else (np.float32(wide) if x > np.float32(wide) else x)
    top, left = int(y), int(x)
    below, right = min(top + 1, high), min(left + 1, wide)
    down, across = y - np.float32(top), x - np.float32(left)
    upper = plane[top, left] + (plane[top, right] - plane[top, left]) * across
    lower = plane[below, left] + (plane[below, right] - plane[below, left]) * across
    return np.float32(upper + (lower - upper) * down)


@kernel
def at_size(plane: Plane, made: Plane) -> None:
    """Resize `plane` to the size of `made`, in place."""
    tall = np.divide(np.float32(plane.shape[0]), np.float32(made.shape[0]))
    wide = np.divide(np.float32(plane.shape[1]), np.float32(made.shape[1]))
    for i in range(made.shape[0]):
        for j in range(made.shape[1]):
            y = (np.float32(i) + HALF) * tall - HALF
            x = (np.float32(j) + HALF) * wide - HALF
            made[i, j] = _between(plane, y, x)


@kernel
def slopes(plane: Plane, down: Plane, across: Plane) -> None:
    """Compute central differences; a pixel at the edge is its own neighbour."""
    height, width = plane.shape
    for y in range(height):
        above, below = max(y - 1, 0), min(y + 1, height - 1)
        for x in range(width):
            down[y, x] = (plane[below, x] - plane[above, x]) * HALF
            across[y, x] = (plane[y, min(x + 1, width - 1)] - plane[y, max(x - 1, 0)]) * HALF


@kernel
def linearise(first: Plane, second: Plane, down: Plane, across: Plane, flow: Plane, model: Plane) -> None:
    """Brightness around where the flow leads: its slopes, what is left at no flow, and how far a step may go."""
    for y in range(first.shape[0]):
        for x in range(first.shape[1]):
            u, v = flow[0, y, x], flow[1, y, x]
            to_y, to_x = np.float32(y) + v, np.float32(x) + u
            a, b = _between(across, to_y, to_x), _between(down, to_y, to_x)
            square = a * a + b * b
            model[0, y, x], model[1, y, x] = a, b
            model[2, y, x] = _between(second, to_y, to_x) - a * u - b * v - first[y, x]
            model[3, y, x] = np.divide(ONE, square) if square > FLAT else ZERO


@kernel
def solve(flow: Plane, model: Plane, dual: Plane) -> None:
    """The flow that is smooth and agrees with the model, from the one that is given, in place."""
    _, height, width = flow.shape
    before = np.empty((2, width), np.float32)
    for turn in range(ITERATIONS):
        looking = turn % LOOK_EVERY == LOOK_EVERY - 1
        moved = 0.0
        for y in range(height + 1):
            if y < height:
                u, v = flow[0, y], flow[1, y]
                for x in range(width):
                    before[0, x], before[1, x] = u[x], v[x]
                _pull(u, v, model[:, y])
                _spread(u, dual[0, y], dual[1, y], dual[1, max(y - 1, 0)], ONE if y > 0 else ZERO)
                _spread(v, dual[2, y], dual[3, y], dual[3, max(y - 1, 0)], ONE if y > 0 else ZERO)
                if looking:
                    for x in range(width):
                        moved += (u[x] - before[0, x]) ** 2 + (v[x] - before[1, x]) ** 2
            if y > 0:  # the dual variables of a row wait until the row below has moved
                below = min(y, height - 1)
                for way in range(2):
                    _smooth(flow[way, y - 1], flow[way, below], dual[2 * way, y - 1], dual[2 * way + 1, y - 1])
        if looking and moved <= ENOUGH * height * width:
            break


@kernel
def _pull(u: Plane, v: Plane, model: Plane) -> None:
    """A row of the flow, towards equal brightness."""
    gx, gy, rest, inverse = model[0], model[1], model[2], model[3]
    for x in range(len(u)):
        k = -(rest[x] + gx[x] * u[x] + gy[x] * v[x]) * inverse[x]
        k = PULL if k > PULL else k
        k = -PULL if k < -PULL else k
        u[x] += k * gx[x]
        v[x] += k * gy[x]


@kernel
def _spread(u: Plane, across: Plane, down: Plane, above: Plane, inside: np.float32) -> None:
    """A row of the flow, towards smoothness; `inside` is 0 for the first row, which has none above it."""
    u[0] += THETA * (across[0] + down[0] - inside * above[0])
    for x in range(1, len(u)):
        u[x] += THETA * (across[x] - across[x - 1] + down[x] - inside * above[x])


@kernel
def _smooth(u: Plane, below: Plane, across: Plane, down: Plane) -> None:
    """A row of the dual variables, which tell how the flow may bend there."""
    last = len(u) - 1
    for x in range(last):
        a, b = u[x + 1] - u[x], below[x] - u[x]
        scale = np.divide(ONE, ONE + STEP * np.sqrt(a * a + b * b))
        across[x] = (across[x] + STEP * a) * scale
        down[x] = (down[x] + STEP * b) * scale
    b = below[last] - u[last]
    scale = np.divide(ONE, ONE + STEP * abs(b))
    across[last] *= scale
    down[last] = (down[last] + STEP * b) * scale


Flow = npt.NDArray[np.uint8]

LEVELS, SHRINK, LEAST_SIDE = 5, 0.8, 16
REACH = 20.0  # pixels: further is as far as that
STILL = 128  # no movement; 127.5 rounds there
_GREY = np.array([4899, 9617, 1868])  # of red, green and blue, in parts of 2 ** 14


def flow_between(first: Frames, second: Frames, size: tuple[int, int] | None = None, *, threads: int = 1) -> Flow:
    """Return (N, H, W, 2) uint8 from two stacks (N, H, W, 3) uint8: across and down, -20 pixels at 0 and +20 at 255.

    Args:
        size: (height, width) that frames are brought to first; None for their own.
        threads: pairs at once; the bytes do not depend on it.

    >>> frames = np.zeros((1, 20, 20, 3), np.uint8)
    >>> np.unique(flow_between(frames, frames)).tolist()
    [128]
    """
    before, after = grey(first, size), grey(second, size)
    if len(before) < 2 or threads < 2:
        made = [_pair(*pair) for pair in zip(before, after, strict=True)]
    else:
        with ThreadPoolExecutor(threads) as pool:
            made = list(pool.map(_pair, before, after))
    return np.stack(made) if made else np.empty((0, *before.shape[1:], 2), np.uint8)


def grey(frames: Frames, size: tuple[int, int] | None = None) -> npt.NDArray[np.uint8]:
    """Return (N, H, W) uint8: brightness in whole numbers, at another size where one is given."""
    summed = (np.asarray(frames, np.int32) * _GREY.astype(np.int32)).sum(-1, dtype=np.int32) + (1 << 13)
    made = np.asarray(summed >> 14, np.uint8)
    if size is None or made.shape[1:] == size:
        return made
    return np.asarray(pillow_resize(torch.from_numpy(made), size, "bilinear").contiguous().numpy())


def tv_l1(first: npt.NDArray[np.uint8], second: npt.NDArray[np.uint8]) -> Plane:
    """Return (2, H, W) float32, in pixels: across and down, from one picture (H, W) uint8 to the next."""
    pictures = [(first.astype(np.float32), second.astype(np.float32))]
    for level in range(1, LEVELS):
        shape = tuple(round(side * SHRINK**level) for side in first.shape)
        if min(shape) < LEAST_SIDE:
            break
        smaller = np.empty((2, *shape), np.float32)
        for picture, made in zip(pictures[-1], smaller, strict=True):
            at_size(picture, made)
        pictures.append((smaller[0], smaller[1]))
    flow = np.zeros((2, *pictures[-1][0].shape), np.float32)
    for here, there in reversed(pictures):
        flow = _refined(here, there, _enlarged(flow, here.shape))
    return flow


def _pair(first: npt.NDArray[np.uint8], second: npt.NDArray[np.uint8]) -> Flow:
    if np.array_equal(first, second):  # no step of the method would leave zero
        return np.full((*first.shape, 2), STILL, np.uint8)
    moved = np.clip(tv_l1(first, second), np.float32(-REACH), np.float32(REACH)).astype(np.float64)
    return np.ascontiguousarray(np.rint((moved + REACH) * (255 / (2 * REACH))).astype(np.uint8).transpose(1, 2, 0))


def _refined(first: Plane, second: Plane, flow: Plane) -> Plane:
    down, across = np.empty_like(second), np.empty_like(second)
    slopes(second, down, across)
    model, dual = np.empty((4, *first.shape), np.float32), np.zeros((4, *first.shape), np.float32)
    for _ in range(WARPS):
        linearise(first, second, down, across, flow, model)
        solve(flow, model, dual)
    return flow


def _enlarged(flow: Plane, shape: tuple[int, ...]) -> Plane:
    """Return a flow at the size of the next level, its pixels counted as they are there."""
    if flow.shape[1:] == shape:
        return flow
    made = np.empty((2, *shape), np.float32)
    for axis, (small, large) in enumerate(zip(flow, made, strict=True)):
        at_size(small, large)
        large *= np.float32(shape[1 - axis] / small.shape[1 - axis])
    return made
