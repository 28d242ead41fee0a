"""Detection of blank frames that stand in for lost ones, and the bitwise median of bytes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from jostle.mending.descriptor_layout import CELLS, COLOUR, DETAIL, LIGHT, Descriptors


def median(values: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the median of an odd number of bytes along the second axis, computed bit by bit.

    There is no sorting and no rounding; it takes a fifth of the time of a sort.

    >>> median(np.array([[[3], [200], [7]]], np.uint8)).tolist()
    [[7]]
    """
    half = values.shape[1] // 2
    result = np.zeros((len(values), *values.shape[2:]), np.uint8)
    for bit in (128, 64, 32, 16, 8, 4, 2, 1):
        candidate = result | np.uint8(bit)
        above = np.add.reduce(values >= candidate[:, None], axis=1, dtype=np.uint8)
        np.copyto(result, candidate, where=above > half)
    return result


BLANK = 4  # largest range of grey levels in a frame of one colour, after a codec
SMOOTH = 25  # largest detail of its cells: a quarter of a grey level,
ROUGH = 12  # except in this many of 144 cells, where a codec may leave a trace of the previous picture
MAX_GAP = 96  # longest run of blank frames that is judged; bounds the latency
CONTEXT = 8  # frames to each side that show whether the picture faded
MIN_SPREAD = 4  # grey levels of mean deviation; frames with less cannot be compared
ABRUPT = (3, 4)  # share of the median spread beside the gap that its nearest frames must reach
MAX_DISTANCE = (4, 5)  # share of a picture's spread by which two pictures of one scene may differ

Mask = npt.NDArray[np.bool_]
Sums = npt.NDArray[np.int64]
CellValues = npt.NDArray[np.uint8]  # (T, CHANNELS, ...): descriptors, their cells in any order


def find_blank(descriptors: Descriptors) -> Mask:
    """Return (T,) the frames of one colour from edge to edge.

    >>> from jostle.mending.descriptor import describe_frames
    >>> frames = np.stack([np.zeros((90, 160, 3), np.uint8), np.full((90, 160, 3), 200, np.uint8)])
    >>> find_blank(describe_frames(frames)).tolist()
    [True, True]
    """
    lights = descriptors[:, LIGHT].reshape(len(descriptors), LIGHT.stop * CELLS * CELLS)
    blank = np.asarray(lights.max(1) - lights.min(1) <= BLANK)
    candidates = descriptors[blank]  # few frames need the closer test
    colour = candidates[:, COLOUR]
    same_colour = (colour.max((2, 3)) - colour.min((2, 3)) <= BLANK).all(1)
    blank[blank] = same_colour & ((candidates[:, DETAIL] > SMOOTH).any(1).sum((1, 2)) <= ROUGH)
    return blank


def find_lost(blank: Mask, descriptors: Callable[[int, int], CellValues]) -> Mask:
    """Return (T,) the blank frames that replace a lost picture, after which the same scene goes on.

    The result for a frame depends on `MAX_GAP + CONTEXT` frames to each side. Longer gaps, and gaps at the start or end
    of a video, are not marked.

    Args:
        blank: (T,) mask of blank frames.
        descriptors: function that returns the descriptors from a frame up to another.
    """
    lost = np.zeros(len(blank), np.bool_)
    edges = np.flatnonzero(np.diff(blank.astype(np.int8))) + 1
    if len(blank) and blank[0]:
        edges = edges[1:]
    for lo, hi in edges[: len(edges) // 2 * 2].reshape(-1, 2).tolist():
        if hi - lo <= MAX_GAP:
            first, stop = max(lo - CONTEXT, 0), min(hi + CONTEXT, len(blank))
            before, after = (descriptors(a, b)[~blank[a:b]] for a, b in ((first, lo), (hi, stop)))
            lost[lo:hi] = _scene_resumes(before[::-1], after)
    return lost


def find_lost_in_video(blank: Mask, descriptors: Callable[[int, int], CellValues]) -> Mask:
    """Apply `find_lost` to a complete video: if every frame is blank, all of them were lost."""
    return blank if blank.all() else find_lost(blank, descriptors)


class RecentFrames:
    """Descriptors of the last frames of a stream, as many as `find_lost` needs, and which of them are blank."""

    def __init__(self) -> None:
        self._values = np.zeros((0, COLOUR.stop, CELLS, CELLS), np.uint8)  # from `_first` on; light and colours
        self._blank = np.zeros(0, np.bool_)
        self._first = 0

    def add(self, descriptors: Descriptors) -> None:
        self._values = np.concatenate([self._values, descriptors[:, : COLOUR.stop]])
        self._blank = np.concatenate([self._blank, find_blank(descriptors)])

    def lost(self, lo: int, hi: int) -> list[int]:
        """Return the lost frames among `lo` to `hi` (exclusive), counted from `lo`."""
        drop = lo - MAX_GAP - CONTEXT - self._first
        if drop > 0:
            self._values, self._blank, self._first = self._values[drop:], self._blank[drop:], self._first + drop
        if not self._blank.any():
            return []
        lost = find_lost(self._blank, lambda a, b: self._values[a:b])
        return np.flatnonzero(lost[lo - self._first : hi - self._first]).tolist()


def _scene_resumes(before: CellValues, after: CellValues) -> bool:
    """Return whether the scene before a gap resumes after it, with abrupt edges on both sides.

    Args:
        before: frames before the gap, the nearest first; `after` those behind it.
    """
    here, there = _lights(before), _lights(after)
    spreads = [_spread(lights) for lights in (here, there)]
    least = min(int(spread[0]) for spread in spreads)
    if least < MIN_SPREAD * here.shape[1]:
        return False
    if any(ABRUPT[1] * spread[0] < ABRUPT[0] * np.sort(spread)[len(spread) // 2] for spread in spreads):
        return False
    if np.abs(here[0] - there[0]).sum() <= least:  # the same picture
        return True
    # Otherwise the camera may have moved: compare the lights and colours wherever they are. Colours are stored at half
    # scale and are half as many; they count twice, since they separate scenes.
    distance = np.abs(np.sort(here[0]) - np.sort(there[0])).sum()
    distance += 8 * np.abs(_sorted_colours(before[0]) - _sorted_colours(after[0])).sum()
    return bool(MAX_DISTANCE[1] * distance <= MAX_DISTANCE[0] * least)


def _lights(values: CellValues) -> Sums:
    return values[:, LIGHT].reshape(len(values), -1).astype(np.int64)


def _spread(lights: Sums) -> Sums:
    """Return (T,) the summed absolute deviation of each frame's lights from their mean."""
    return np.asarray(np.abs(lights - lights.sum(1, keepdims=True) // lights.shape[1]).sum(1))


def _sorted_colours(values: CellValues) -> Sums:
    return np.sort(values[COLOUR].reshape(2, -1)).astype(np.int64)
