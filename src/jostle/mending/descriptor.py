"""How a glance is laid out: cells, points and channels."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from itertools import islice

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import inlined, kernel
from jostle.core.types.clip import Frame, Frames

CELLS = 12  # along each side
PATCH = 8  # native pixels along each side of what is looked at closely in a cell
POINTS = 4  # along each side of a quarter of a cell, spread over it, for the small copy
LIGHT, COLOUR, DETAIL = slice(0, 4), slice(4, 6), slice(6, 11)  # channels
CHANNELS = 11
FINEST = 4  # detail is kept as log(1 + FINEST * v), v in grey levels
TOP = float(255 / np.log1p(FINEST * 255))

Glance = npt.NDArray[np.uint8]  # (CHANNELS, CELLS, CELLS)
Glances = npt.NDArray[np.uint8]  # (T, CHANNELS, CELLS, CELLS)
Places = npt.NDArray[np.int64]


SIDE = 2 * CELLS * POINTS  # points along each side of a frame


@kernel
def look(
    frames: Frames, rows: Places, columns: Places, top: Places, left: Places, log: npt.NDArray[np.uint8], out: Glances
) -> None:
    """Frames that patches fit into: every loop has a length that the compiler knows."""
    _look(frames, rows, columns, top, left, log, out, PATCH, PATCH)


@kernel
def look_at_small(
    frames: Frames, rows: Places, columns: Places, top: Places, left: Places, log: npt.NDArray[np.uint8], out: Glances
) -> None:
    """Frames smaller than a patch. They are rare, and nobody waits for this to be compiled who has none."""
    down, across = min(PATCH, frames.shape[1]), min(PATCH, frames.shape[2])
    _look(frames, rows, columns, top, left, log, out, down, across)


@inlined
def _look(
    frames: Frames,
    rows: Places,
    columns: Places,
    top: Places,
    left: Places,
    log: npt.NDArray[np.uint8],
    out: Glances,
    down: int,
    across: int,
) -> None:
    reds, greens, blues = np.empty(SIDE, np.int32), np.empty(SIDE, np.int32), np.empty(SIDE, np.int32)
    close = np.zeros((PATCH, PATCH), np.int32)
    for n in range(len(frames)):
        for i in range(2 * CELLS):
            reds[:] = 0
            greens[:] = 0
            blues[:] = 0
            for y in rows[POINTS * i : POINTS * (i + 1)]:
                for k in range(SIDE):
                    x = columns[k]
                    reds[k] += frames[n, y, x, 0]
                    greens[k] += frames[n, y, x, 1]
                    blues[k] += frames[n, y, x, 2]
            for j in range(2 * CELLS):
                red, green, blue = np.int64(0), np.int64(0), np.int64(0)
                for k in range(POINTS * j, POINTS * (j + 1)):
                    red += reds[k]
                    green += greens[k]
                    blue += blues[k]
                light = (77 * red + 150 * green + 29 * blue) // (256 * POINTS * POINTS)
                out[n, 2 * (i % 2) + j % 2, i // 2, j // 2] = light
                if i % 2 == 0 and j % 2 == 0:  # colours change slowly: a quarter of the cell tells them
                    out[n, 4, i // 2, j // 2] = (blue // (POINTS * POINTS) - light) // 2 + 128
                    out[n, 5, i // 2, j // 2] = (red // (POINTS * POINTS) - light) // 2 + 128
        for i in range(CELLS):
            for j in range(CELLS):
                total, y0, x0 = np.int32(0), top[i], left[j]
                for y in range(down):
                    for x in range(across):
                        seen = frames[n, y0 + y, x0 + x, 0], frames[n, y0 + y, x0 + x, 1], frames[n, y0 + y, x0 + x, 2]
                        grey = (77 * np.int32(seen[0]) + 150 * np.int32(seen[1]) + 29 * np.int32(seen[2])) >> 8
                        close[y, x] = grey
                        total += grey
                right, below, bend, apart, span = _detail(close, total, down, across)
                out[n, 6, i, j] = log[64 * right // max(down * (across - 1), 1)]
                out[n, 7, i, j] = log[64 * below // max((down - 1) * across, 1)]
                out[n, 8, i, j] = log[32 * bend // max(down * (across - 2), 1)]
                out[n, 9, i, j] = log[64 * apart // (down * across)]
                out[n, 10, i, j] = log[64 * span]


@inlined
def _detail(close: npt.NDArray[np.int32], total: np.int32, down: int, across: int) -> tuple[np.int32, ...]:
    """Sums of steps to the right and down, of bends, of what is apart from the mean; and from darkest to lightest."""
    mean = np.int32(total // (down * across))
    right, below, bend, apart, low, high = (
        np.int32(0),
        np.int32(0),
        np.int32(0),
        np.int32(0),
        np.int32(255),
        np.int32(0),
    )
    for y in range(down):
        for x in range(across):
            grey = close[y, x]
            apart += abs(grey - mean)
            low, high = min(low, grey), max(high, grey)
        for x in range(across - 1):
            right += abs(close[y, x + 1] - close[y, x])
        for x in range(1, across - 1):
            bend += abs(2 * close[y, x] - close[y, x - 1] - close[y, x + 1])
    for y in range(down - 1):
        for x in range(across):
            below += abs(close[y + 1, x] - close[y, x])
    return right, below, bend, apart, high - low


TASK = 8  # frames that a thread glances at in one go,
ARRAY_TASK = 32  # and of an array, which is there already

# Detail in 64ths of a grey level becomes a byte by this table: steps that a processor's logarithm cannot move.
_LOG = np.floor(np.log1p(FINEST * np.arange(256 * 64 + 1) / 64) * TOP + 0.5 + 1e-9).astype(np.uint8)


def glance(frame: Frame) -> Glance:
    """What is kept of one frame: four parts of each cell's light, its two colours, and five measures of its detail.

    Args:
        frame: (H, W, 3) uint8 RGB of any size.

    >>> glance(np.full((90, 160, 3), 200, np.uint8))[:, 0, 0].tolist()
    [200, 200, 200, 200, 128, 128, 0, 0, 0, 0, 0]
    """
    one: Glance = _of_block(frame[None])[0]
    return one


def glances(frames: Iterable[Frame]) -> Glances:
    """(T, CHANNELS, CELLS, CELLS) of frames."""
    if isinstance(frames, np.ndarray):
        return _of_block(frames)
    made = [glance(frame) for frame in frames]
    return np.stack(made) if made else np.zeros((0, CHANNELS, CELLS, CELLS), np.uint8)


def glances_ahead(frames: Iterable[Frame], jobs: int) -> Iterator[Glances]:
    """Glances of some frames at a time, in order, made by threads.

    Two tasks each are under way, so that memory does not grow. Frames in one array are not taken out of it one by one,
    and threads hardly ever wait for each other.
    """
    with ThreadPoolExecutor(jobs) as pool:
        under_way: deque[Future[Glances]] = deque()
        for some in _tasks(frames):
            under_way.append(pool.submit(glances, some))
            if len(under_way) > 2 * jobs:
                yield under_way.popleft().result()
        for task in under_way:
            yield task.result()


def _tasks(frames: Iterable[Frame]) -> Iterator[Frames | list[Frame]]:
    if isinstance(frames, np.ndarray):
        yield from (frames[lo : lo + ARRAY_TASK] for lo in range(0, len(frames), ARRAY_TASK))
        return
    coming = iter(frames)
    while some := list(islice(coming, TASK)):
        yield some


def _of_block(frames: Frames) -> Glances:
    from jostle.core.kernels import fixed  # compiled; networks are trained where no compiler is

    out = np.empty((len(frames), CHANNELS, CELLS, CELLS), np.uint8)
    fits = min(frames.shape[1:3]) >= PATCH
    (look if fits else look_at_small)(fixed(frames), *_places(*frames.shape[1:3]), _LOG, out)
    return out


@lru_cache(32)
def _places(height: int, width: int) -> tuple[Places, Places, Places, Places]:
    """Rows and columns of the points, then the first ones of the patches."""
    many = 2 * CELLS * POINTS
    rows, columns = ((2 * np.arange(many) + 1) * side // (2 * many) for side in (height, width))
    top, left = (
        np.clip((2 * np.arange(CELLS) + 1) * side // (2 * CELLS) - PATCH // 2, 0, max(side - PATCH, 0))
        for side in (height, width)
    )
    return rows, columns, top, left
