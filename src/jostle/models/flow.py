"""Optical flow as bytes: how far each pixel moves to the next frame, as the flow networks were trained to see it.

Zach, Pock and Bischof, "A Duality Based Approach for Realtime TV-L1 Optical Flow", DAGM 2007, with the settings of
public features. It is our own, because OpenCV's wheels have no TV-L1, and because its other methods are written for the
vector instructions of each processor; here every number is rounded in one way, so that bytes are the same everywhere.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import torch

from jostle.models.flow_kernels import WARPS, Plane, at_size, linearise, slopes, solve
from jostle.models.input_spec import Frames
from jostle.models.preparing.pillow_resize import pillow_resized

Flow = npt.NDArray[np.uint8]

LEVELS, SHRINK, LEAST_SIDE = 5, 0.8, 16
REACH = 20.0  # pixels: further is as far as that
STILL = 128  # no movement; 127.5 rounds there
_GREY = np.array([4899, 9617, 1868])  # of red, green and blue, in parts of 2 ** 14


def flow_between(first: Frames, second: Frames, size: tuple[int, int] | None = None, *, threads: int = 1) -> Flow:
    """(N, H, W, 2) uint8 from two stacks (N, H, W, 3) uint8: across and down, -20 pixels at 0 and +20 at 255.

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
    """(N, H, W) uint8: brightness in whole numbers, at another size where one is given."""
    summed = (np.asarray(frames, np.int32) * _GREY.astype(np.int32)).sum(-1, dtype=np.int32) + (1 << 13)
    made = np.asarray(summed >> 14, np.uint8)
    if size is None or made.shape[1:] == size:
        return made
    return np.asarray(pillow_resized(torch.from_numpy(made), size, "bilinear").contiguous().numpy())


def tv_l1(first: npt.NDArray[np.uint8], second: npt.NDArray[np.uint8]) -> Plane:
    """(2, H, W) float32, in pixels: across and down, from one picture (H, W) uint8 to the next."""
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
    """A flow at the size of the next level, its pixels counted as they are there."""
    if flow.shape[1:] == shape:
        return flow
    made = np.empty((2, *shape), np.float32)
    for axis, (small, large) in enumerate(zip(flow, made, strict=True)):
        at_size(small, large)
        large *= np.float32(shape[1 - axis] / small.shape[1 - axis])
    return made
