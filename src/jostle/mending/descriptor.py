"""Frame descriptors of the inspector."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from itertools import islice

import numpy as np

from jostle.core.types.clip import Frame, Frames
from jostle.mending.descriptor_layout import (
    CELLS,
    CHANNELS,
    FINEST,
    PATCH,
    POINTS,
    TOP,
    Descriptor,
    Descriptors,
    Indices,
)

TASK = 8  # frames per task of a thread,
ARRAY_TASK = 32  # and per task of an array, which is in memory already

# Detail in 64ths of a grey level is mapped to a byte by this table, so that no processor's logarithm changes a step.
_LOG = np.floor(np.log1p(FINEST * np.arange(256 * 64 + 1) / 64) * TOP + 0.5 + 1e-9).astype(np.uint8)


def describe_frame(frame: Frame) -> Descriptor:
    """Describe one frame: four lights, two colours and five measures of detail for each cell.

    >>> describe_frame(np.full((90, 160, 3), 200, np.uint8))[:, 0, 0].tolist()
    [200, 200, 200, 200, 128, 128, 0, 0, 0, 0, 0]
    """
    descriptor: Descriptor = _describe_array(frame[None])[0]
    return descriptor


def describe_frames(frames: Iterable[Frame]) -> Descriptors:
    """Return the (T, CHANNELS, CELLS, CELLS) descriptors of frames."""
    if isinstance(frames, np.ndarray):
        return _describe_array(frames)
    descriptors = [describe_frame(frame) for frame in frames]
    return np.stack(descriptors) if descriptors else np.zeros((0, CHANNELS, CELLS, CELLS), np.uint8)


def stream_descriptors(frames: Iterable[Frame], jobs: int) -> Iterator[Descriptors]:
    """Compute descriptors in a thread pool and yield them in order, several frames at a time.

    At most two tasks per thread are queued, so that memory is bounded. Frames in one array are sliced, not copied one
    by one.
    """
    with ThreadPoolExecutor(jobs) as pool:
        futures: deque[Future[Descriptors]] = deque()
        for some in _split_tasks(frames):
            futures.append(pool.submit(describe_frames, some))
            if len(futures) > 2 * jobs:
                yield futures.popleft().result()
        for task in futures:
            yield task.result()


def _split_tasks(frames: Iterable[Frame]) -> Iterator[Frames | list[Frame]]:
    if isinstance(frames, np.ndarray):
        yield from (frames[lo : lo + ARRAY_TASK] for lo in range(0, len(frames), ARRAY_TASK))
        return
    remaining = iter(frames)
    while task := list(islice(remaining, TASK)):
        yield task


def _describe_array(frames: Frames) -> Descriptors:
    from jostle.core.kernels import read_only  # inspectors are also trained where descriptors are only read
    from jostle.mending.descriptor_kernels import describe_block, describe_small_block

    out = np.empty((len(frames), CHANNELS, CELLS, CELLS), np.uint8)
    fits = min(frames.shape[1:3]) >= PATCH
    (describe_block if fits else describe_small_block)(read_only(frames), *sample_points(*frames.shape[1:3]), _LOG, out)
    return out


@lru_cache(32)
def sample_points(height: int, width: int) -> tuple[Indices, Indices, Indices, Indices]:
    """Return the rows and columns of the sample points, then the top and left edges of the patches."""
    count = 2 * CELLS * POINTS
    rows, columns = ((2 * np.arange(count) + 1) * side // (2 * count) for side in (height, width))
    top, left = (
        np.clip((2 * np.arange(CELLS) + 1) * side // (2 * CELLS) - PATCH // 2, 0, max(side - PATCH, 0))
        for side in (height, width)
    )
    return rows, columns, top, left
