"""AFSD's lesson without labels: which background is moved into which action of a clip."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from jostle.detectors.blocks.triplet import Cut


def drawn_cut(
    segments: npt.NDArray[np.float32], frames: int, rng: np.random.Generator, *, activitynet: bool = False
) -> Cut | None:
    """An action of a clip of so many frames, a place in it, and as much background as its shortest action is long.

    On ActivityNet, where actions are long, it is a quarter of that.

    Args:
        segments: (M, 2) actions in frames of the clip.

    Returns:
        None if no action is long enough to be cut, or no background to be moved.
    """
    lengths = segments[:, 1] - segments[:, 0]
    shortest = float(lengths.min())
    moved = int(shortest) // 4 if activitynet else math.ceil(shortest)
    long = np.flatnonzero(lengths >= 2 * moved if activitynet else lengths > 2 * moved)
    gaps = [(a, b) for a, b in between(segments, frames) if b - a > moved]
    if moved < 2 or not len(long) or not gaps:  # of less than two frames there is no inside
        return None
    start, end = segments[rng.choice(long)].tolist()
    low, high = math.ceil(start + moved), math.floor(end - moved)
    first, last = gaps[int(rng.integers(len(gaps)))]
    if high < low:
        return None
    at = int(rng.integers(low, high + 1))
    return Cut(start, end, at, int(rng.integers(first, last - moved + 1)), moved)


def between(segments: npt.NDArray[np.float32], frames: int) -> list[tuple[int, int]]:
    """Stretches of whole frames that no action touches, as (first, one beyond the last).

    >>> between(np.array([[8.0, 12.5], [3.2, 5.0], [4.0, 6.0]]), 20)
    [(0, 3), (6, 8), (13, 20)]
    """
    made, reached = [], 0
    for start, end in sorted(segments.tolist()):
        if math.floor(start) > reached:
            made.append((reached, math.floor(start)))
        reached = max(reached, math.ceil(end))
    return [*made, (reached, frames)] if reached < frames else made
