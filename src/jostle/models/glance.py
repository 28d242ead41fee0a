"""What the inspector keeps of a frame: a small copy, and how much detail its native pixels have, cell by cell.

Only so many pixels are looked at, whatever the size of the picture, and all sums are of whole numbers, so that a glance
has the same bytes on every machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from itertools import islice

import numpy as np

from jostle.models.glance_layout import CELLS, CHANNELS, FINEST, PATCH, POINTS, TOP, Glance, Glances, Places
from jostle.types.clip import Frame, Frames

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
    from jostle.compiled import fixed  # compiled; networks are trained where no compiler is
    from jostle.models.glance_kernels import look, look_at_small

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
