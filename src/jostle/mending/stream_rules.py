"""Plain rules for a stream that look at whole frames: one colour, frozen, out of order.

Each is causal: it sees frames one by one, keeps a bounded past and returns findings, which may reach back to frames
before the present one; whoever waits for later frames can still use them. Each says which damage it misses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from statistics import median
from typing import Protocol

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel
from jostle.mending.frame_facts import (
    DEVIATION,
    LIGHTS,
    FrameFacts,
    Mask,
    Values,
    cell_changes,
    correlation,
    detail_code,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Span of frames that a rule takes for damaged; with the kind "clean", one that it takes back.

    Attributes:
        first: first frame of the span.
        last: last frame of the span, inclusive.
        kind: one of `jostle.mending.verdicts.KINDS`.
        strength: where several rules find damage in a frame, the strongest names it.
    """

    first: int
    last: int
    kind: str
    strength: float


class Rule(Protocol):
    """Rule that sees the frames of a stream one by one."""

    def push(self, index: int, time: float, facts: FrameFacts) -> list[Finding]:
        """Add a frame and return what it shows."""
        ...


ONE_COLOUR_RANGE = 6  # largest range of lights and colours in a frame of one colour, the outermost left out
ONE_COLOUR_DETAIL = detail_code(1.0)  # largest median deviation within its cells: a codec's trace
DARK, DARK_RANGE = 34, 9  # brightest light and range of a dark frame, whose noise may be of any size
SPREADS, MIN_SPREADS = 8, 4  # frames before a blank one that say whether the picture faded, and of them at least
EDIT_FRAMES, OTHER_SCENE = 12, 0.3  # longest black of an edit, and correlation of lights under which a scene is another
MIN_SPREAD = 3.0  # grey levels of mean deviation; a flatter picture may become blank without an abrupt edge
ABRUPT = 0.7  # share of the typical spread that one of the last two frames must have
WHITE, FLASH = 235, 3  # lights of a white frame; white frames that may be a flash
DARK_SECONDS = 5.0  # after which a picture that faded away is missed, and one that never came


class OneColourRule:
    """Rule for frames of one colour from edge to edge: `black`, or `one_colour` for any other.

    A picture that vanishes from one frame to the next (`ABRUPT`) is damage at once, until another picture comes; two
    white frames may be a flash. Where the picture faded, or the stream began without one, it is damage after
    `DARK_SECONDS`. If another scene follows black or white within the look-ahead, it was an edit, and the finding is
    taken back.

    Misses: a fade to black that is followed by a picture within `DARK_SECONDS`; white of one or two frames; a loss
    after which another scene follows. False: a hard cut to black without look-ahead to the scene after it.
    """

    def __init__(self) -> None:
        self._spreads: deque[float] = deque(maxlen=SPREADS)
        self._before: FrameFacts | None = None
        self._first = -1  # first frame of the blank run, or -1
        self._since, self._abrupt, self._kind = 0.0, False, ""

    def push(self, index: int, time: float, facts: FrameFacts) -> list[Finding]:
        """Add a frame and return what it shows."""
        if not is_one_colour(facts):
            findings = [] if self._first < 0 else self._end_run(index, facts)
            self._first, self._before = -1, facts
            self._since, self._abrupt, self._kind = 0.0, False, ""
            self._spreads.append(facts.spread)
            return findings
        if self._first < 0:
            self._first, self._since = index, time
            self._kind = "black" if facts.high <= DARK and _is_grey(facts) else "one_colour"
            self._abrupt = len(self._spreads) >= MIN_SPREADS and max(list(self._spreads)[-2:]) >= max(
                ABRUPT * median(self._spreads), MIN_SPREAD
            )
        if self._abrupt and (facts.low < WHITE or index - self._first >= FLASH - 1):
            return [Finding(self._first, index, self._kind, 0.98)]
        if time - self._since >= DARK_SECONDS:
            return [Finding(self._first, index, self._kind, 0.9)]
        return []

    def _end_run(self, index: int, facts: FrameFacts) -> list[Finding]:
        """Take an edit back: another scene after black or white."""
        edit = index - self._first <= EDIT_FRAMES and self._before is not None and is_other_scene(self._before, facts)
        if self._abrupt and edit and (self._kind == "black" or facts.low >= WHITE):
            return [Finding(self._first, index - 1, "clean", 0.8)]
        return []


def is_one_colour(facts: FrameFacts) -> bool:
    """Return whether a frame is of one colour from edge to edge, or dark with nothing but noise in it."""
    if facts.high <= DARK and facts.high - facts.low <= DARK_RANGE and _is_grey(facts):
        return True
    if facts.high - facts.low > ONE_COLOUR_RANGE:
        return False
    colours = np.sort(facts.colours.reshape(2, -1))
    even = bool((colours[:, -4] - colours[:, 3] <= ONE_COLOUR_RANGE).all())
    return even and float(np.median(facts.detail[DEVIATION])) <= ONE_COLOUR_DETAIL


def is_other_scene(one: FrameFacts, other: FrameFacts) -> bool:
    """Return whether two frames show different scenes: lights in other cells, and other lights and colours at all."""
    if correlation(one.lights, other.lights) >= OTHER_SCENE:
        return False
    moved = np.abs(np.sort(one.lights, axis=None) - np.sort(other.lights, axis=None)).mean()
    tints = np.abs(np.sort(one.colours.reshape(2, -1)) - np.sort(other.colours.reshape(2, -1))).mean()
    return float(moved + 4 * tints) > 0.8 * max(min(one.spread, other.spread), 1.0)


def _is_grey(facts: FrameFacts) -> bool:
    return bool((np.abs(facts.colours.mean((1, 2)) - 128) <= 6).all())


STILL = 0.4  # grey levels by which the pixels of a cell that stands still may change, the trace of a codec
STILL_CELLS = 2  # cells that may change nevertheless
REFINED, REFINED_SO_FAR = 2.2, 4.0  # grey levels by which a codec refines a cell of a still picture, at once and in all
QUIET, LIVELY_CHANGE = 0.2, 3.0  # share of the change of lively frames that this may be, and grey levels of the latter
OVERLAY_CELLS, OVERLAY_BOX = 16, 24  # cells that change under a clock, and those of the box around them
ACTIVE_CELLS = 8  # cells that usually change where a picture without change is unusual,
ACTIVE_UNDER_OVERLAY = 40  # and where a picture that changes in one corner only is
ACTIVITY = 50  # frames whose median says what is typical; of them at least
MIN_ACTIVITY = 6
FREEZE_FRAMES, FREEZE_SECONDS = 5, 0.2  # shortest freeze
FREEZE_SPREAD = 6.0  # grey levels of mean deviation that a picture must have to be judged
PULLDOWN = 3  # a freeze is longer than so many of the still runs that the stream had before
RUNS_SECONDS = 20.0  # for which those are remembered
TITLE_CHANGE, TITLE_RATIO = 5.0, 2.0  # grey levels of a cut, and times the change of lively frames: a title follows,
TITLE_SCENE = 0.5  # correlation of lights across a cut
LIVELY = 0.8  # quantile of the changes of lively frames
TITLE_SECONDS = 10.0  # for so long


class FrozenRule:
    """Rule for pictures that stop while time goes on: `frozen`.

    What is typical decides: the cells that changed in the last frames, and how long the picture stood still before. A
    stream of 24 frames played at 30 has still runs of one frame, drawn films of two to four; a camera whose codec skips
    an empty room has long ones, and is left alone. A codec may refine a still picture (`REFINED`) where frames were
    lively before. A still after a cut is a title.

    Misses: the first frames of a freeze without look-ahead; a freeze of a scene in which hardly anything moved and
    that has no noise; one that begins the stream, for `TITLE_SECONDS`. False: a freeze frame as an effect.
    """

    def __init__(self) -> None:
        self._last: FrameFacts | None = None
        self._anchor: FrameFacts | None = None  # first frame of the still run
        self._activity: deque[int] = deque(maxlen=ACTIVITY)  # cells that moved
        self._changes: deque[float] = deque(maxlen=ACTIVITY)  # mean changes in grey levels
        self._runs: deque[tuple[float, int]] = deque(maxlen=256)  # end and length of still runs
        self._run, self._since, self._begin = 0, 0.0, 0
        self._title, self._alarmed = False, False

    def push(self, index: int, time: float, facts: FrameFacts) -> list[Finding]:
        """Add a frame and return what it shows."""
        last, self._last = self._last, facts
        if last is None or self._anchor is None or facts.spread < FREEZE_SPREAD:  # faded or blank
            self._anchor, self._since, self._begin = facts, time, index
            return []
        changes = cell_changes(facts, last)
        moving, change = changes > STILL, float(changes.mean())
        typical = median(self._activity) if len(self._activity) >= MIN_ACTIVITY else 0
        lively = quantile(self._changes, LIVELY) if self._changes else 0.0
        still = self._stands_still(moving, typical)
        refined = (
            lively >= LIVELY_CHANGE and change <= QUIET * lively and np.count_nonzero(changes > REFINED) <= STILL_CELLS
        )
        if still or refined:
            so_far = cell_changes(facts, self._anchor)
            if (still and self._stands_still(so_far > 3 * STILL, typical)) or (
                refined and np.count_nonzero(so_far > REFINED_SO_FAR) <= STILL_CELLS
            ):
                self._run += 1
                return self._judge(index, time, typical)
        if self._run and not self._alarmed:
            self._runs.append((time, self._run))
        while self._runs and self._runs[0][0] < time - RUNS_SECONDS:
            self._runs.popleft()
        self._activity.append(int(np.count_nonzero(moving)))
        self._title = change >= max(TITLE_CHANGE, TITLE_RATIO * lively) or (
            change >= TITLE_CHANGE and correlation(last.lights, facts.lights) < TITLE_SCENE
        )
        self._changes.append(change)
        self._anchor, self._since, self._begin = facts, time, index
        self._run, self._alarmed = 0, False
        return []

    def _stands_still(self, moving: Mask, typical: float) -> bool:
        count = int(np.count_nonzero(moving))
        if count <= STILL_CELLS:
            return True
        if count > OVERLAY_CELLS or typical < ACTIVE_UNDER_OVERLAY:
            return False
        rows, columns = np.flatnonzero(moving.any(1)), np.flatnonzero(moving.any(0))
        return bool((rows[-1] - rows[0] + 1) * (columns[-1] - columns[0] + 1) <= OVERLAY_BOX)

    def _judge(self, index: int, time: float, typical: float) -> list[Finding]:
        seconds = time - self._since
        if self._title or typical < ACTIVE_CELLS:
            frozen = seconds >= TITLE_SECONDS and not any(run >= self._run / PULLDOWN for _, run in self._runs)
        else:
            longest = max((run for _, run in self._runs), default=0)
            frozen = seconds >= FREEZE_SECONDS - 1e-6 and self._run >= max(FREEZE_FRAMES, PULLDOWN * longest + 2)
        if not frozen:
            return []
        self._alarmed = True
        return [Finding(self._begin + 1, index, "frozen", 0.9 if typical < ACTIVE_CELLS else 0.98)]


ORDER_WINDOW = 8  # frames whose order is judged
DETOUR = 1.35  # length of the way through them as they come, against the shortest tree that joins them
LIGHT_RANGE = 10.0  # grey levels; where the mean light changes by more, as by flashes, the order is not judged
MOVED = 1.0  # grey levels from frame to frame that the way must have
OUTLIER = 3.0  # times the typical distance to the nearest other frame from which a frame is a flash, and left out
USUAL_DETOUR, DETOURS, MIN_DETOURS = 1.1, 40, 6  # nine tenths of the ways before are under it; how many, at least
STEADY_DETOUR = 4  # frames in a row with a detour

Lights = npt.NDArray[np.int16]  # (ORDER_WINDOW, *LIGHTS)


class OrderRule:
    """Rule for frames that repeat or come in another order: `out_of_order`.

    In a picture that moves, neighbours in time are the most alike: the way from frame to frame is as short as the
    shortest tree that joins all of `ORDER_WINDOW` frames. In another order it is longer (`DETOUR`). Where it was longer
    before, things swing or the camera shakes, and nothing is said. An alarm goes on with lesser detours.

    Misses: frames exchanged where little moves (`MOVED`) or in a picture that shakes or flickers; single frames late
    by one. False: shaking or swinging that begins suddenly.
    """

    def __init__(self) -> None:
        self._means: deque[float] = deque(maxlen=ORDER_WINDOW)  # of the lights of the last frames
        self._lights = np.zeros((ORDER_WINDOW, *LIGHTS), np.int16)
        self._distances = np.zeros((ORDER_WINDOW, ORDER_WINDOW))  # between those
        self._usual: deque[float] = deque(maxlen=DETOURS)
        self._since = 0  # frames in a row with a detour
        self._until = -1  # last frame up to which a lesser detour goes on with an alarm

    def push(self, index: int, time: float, facts: FrameFacts) -> list[Finding]:
        """Add a frame and return what it shows."""
        self._means.append(facts.mean)
        add_lights(self._lights, self._distances, facts.lights)
        if index > self._until:
            self._until = -1
        if len(self._means) < ORDER_WINDOW or max(self._means) - min(self._means) > LIGHT_RANGE:
            return []
        late, detour, moved = find_detour(self._distances)
        if moved < MOVED:
            self._since = 0
            return []
        if index <= self._until and detour >= USUAL_DETOUR:
            self._until = index + ORDER_WINDOW
            return [Finding(index - 1, index, "out_of_order", 0.9)]
        if detour < DETOUR or len(self._usual) < MIN_DETOURS or quantile(self._usual, 0.9) > USUAL_DETOUR:
            self._usual.append(min(detour, 2 * DETOUR))
            self._since = 0
            return []
        self._since += 1
        if self._since < STEADY_DETOUR or late < 0:
            return []
        self._until = index + ORDER_WINDOW
        return [Finding(max(index - ORDER_WINDOW + late, 0), index, "out_of_order", 0.9)]


@kernel
def add_lights(past: Lights, distances: npt.NDArray[np.float64], lights: Values) -> None:
    """Move the lights of past frames and the distances between them by one, and add those of another frame."""
    last, (height, width) = len(past) - 1, lights.shape  # loops, as copies of arrays take seconds to compile
    for a in range(last):
        for b in range(last):
            distances[a, b] = distances[a + 1, b + 1]
    for a in range(last + 1):
        total = 0
        for y in range(height):
            for x in range(width):
                past[a, y, x] = past[a + 1, y, x] if a < last else lights[y, x]
                total += abs(past[a, y, x] - lights[y, x])
        distances[last, a] = distances[a, last] = total / (height * width)


@kernel
def find_detour(distances: npt.NDArray[np.float64]) -> tuple[int, float, float]:
    """Return the first frame that is late, or -1, the detour and the mean step of a way through frames."""
    count = len(distances)
    nearest = np.empty(count)
    for a in range(count):
        nearest[a] = np.inf
        for b in range(count):
            if a != b:
                nearest[a] = min(nearest[a], distances[a, b])
    # Sorting by hand and loops in place of NumPy's functions, which take seconds to compile.
    ordered = np.empty(count)
    for a in range(count):
        position = a
        while position > 0 and ordered[position - 1] > nearest[a]:
            ordered[position] = ordered[position - 1]
            position -= 1
        ordered[position] = nearest[a]
    typical = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    kept, number = np.empty(count, np.int64), 0
    for a in range(count):
        if nearest[a] <= OUTLIER * max(typical, 0.25):
            kept[number] = a
            number += 1
    if number < ORDER_WINDOW // 2:
        return -1, 1.0, 0.0
    way, late = 0.0, -1
    for t in range(1, number):
        step = distances[kept[t], kept[t - 1]]
        way += step
        shortest = np.inf
        for earlier in range(t - 1):
            shortest = min(shortest, distances[kept[t], kept[earlier]])
        if late < 0 and t >= 2 and step > DETOUR * shortest:
            late = kept[t]
    tree, reach = 0.0, nearest
    for one in range(number):
        reach[one] = distances[kept[0], kept[one]]
    reach[0] = -1.0  # in the tree
    for _ in range(number - 1):
        next_one = -1
        for one in range(number):
            if reach[one] >= 0 and (next_one < 0 or reach[one] < reach[next_one]):
                next_one = one
        tree += reach[next_one]
        reach[next_one] = -1.0
        for one in range(number):
            reach[one] = min(reach[one], distances[kept[next_one], kept[one]])
    return late, way / max(tree, 1e-6), way / (number - 1)


def quantile(values: Collection[float], share: float) -> float:
    """Return a quantile, between two values in proportion.

    >>> quantile([3.0, 1.0, 2.0], 0.75)
    2.5
    """
    ordered = sorted(values)
    rank = share * (len(ordered) - 1)
    low = int(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (rank - low) * (ordered[high] - ordered[low])
