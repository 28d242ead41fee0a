"""Plain rule for a stream that finds something before the lens: a hand, a finger, a board, a dark soft spot."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel
from jostle.mending.descriptor_layout import CELLS
from jostle.mending.frame_facts import DEVIATION, FrameFacts, Mask, Values, detail_code
from jostle.mending.stream_rules import Finding

STEADY = 5  # frames that a cover must stay
LEAST = {1: 9, 2: 14, 6: 20}  # cells that hang together, by the frames in which the cover comes in
COVER_LIGHT, COVER_TINT = 18.0, 9  # change of the light or of a colour of a covered cell
SMOOTH = detail_code(3.0)  # largest deviation within a covered cell: nothing before the lens is in focus
FALL = 20  # code by which its deviation falls,
CONTRAST = 60.0  # or change of its light where there was nothing to see before
GLARE = 230.0  # light of a cell from which on it is dazzled, not covered
EVEN = 12.0  # grey levels of standard deviation of the lights of covered cells
REST = 8.0  # grey levels by which the median cell elsewhere may change
LEAST_REST = 0.1  # share of the picture that is not covered
LOOK, STILL_SMOOTH = 22.0, detail_code(5.0)  # change of the light, and deviation, of a cell that remains covered
REMAINS = 0.5  # share of the covered cells that must remain covered
BEGUN = 0.2  # share of them that are covered in the first frame of a cover that comes in
HISTORY = 64  # frames before, in which cells that looked as they do now were not covered then,
SEEN, SEEN_CELLS = 9.0, 0.7  # by the change of their light, and the share of the cells: something went away
COVER_SECONDS = 60.0  # after which a cover is taken for part of the picture


@dataclass(frozen=True, eq=False, slots=True)
class Cover:
    """Cover that a stream has.

    Attributes:
        cells: (CELLS, CELLS) where it is.
        lights: (CELLS, CELLS) light of its cells.
        first: first frame that has it.
        since: time of the frame in which it was found.
    """

    cells: Mask
    lights: Values
    first: int
    since: float

    def remains(self, facts: FrameFacts) -> bool:
        """Return whether most of its cells look as they did."""
        same = np.abs(facts.cell_lights - self.lights) <= LOOK
        smooth = facts.detail[DEVIATION] <= STILL_SMOOTH
        return float((same & smooth)[self.cells].mean()) >= REMAINS


class CoverRule:
    """Rule for something that comes before the lens and stays: `covered`.

    Cells that hang together change their light or colour within one, two or six frames (`LEAST`), lose their detail,
    are all alike, and stay so for `STEADY` frames, while the rest of the picture goes on. The cover lasts until half of
    its cells look otherwise, or for `COVER_SECONDS`. Cells that look as they did in the last seconds are uncovered.

    Misses: what takes longer than six frames to come in or is there from the first frame; covers of less than a
    sixteenth of the picture, with a texture in focus (a sheet of print), or of a plain wall in its own colour; covers
    while the camera pans fast; tape, drops and threads, which are smaller. False: a person in plain clothes who steps
    close to the lens.
    """

    def __init__(self) -> None:
        self._past: deque[FrameFacts] = deque(maxlen=HISTORY)
        self._cover: Cover | None = None

    def push(self, index: int, time: float, facts: FrameFacts) -> list[Finding]:
        """Add a frame and return what it shows."""
        self._past.append(facts)
        if self._cover is not None:
            if self._cover.remains(facts) and time - self._cover.since < COVER_SECONDS:
                return [Finding(index, index, "covered", 0.9)]
            self._cover = None
            self._past.clear()
            self._past.append(facts)
            return []
        self._cover = self._find(index, time)
        return [] if self._cover is None else [Finding(self._cover.first, index, "covered", 0.9)]

    def _find(self, index: int, time: float) -> Cover | None:
        onset = len(self._past) - STEADY  # frame from which on the cover is there
        for lag, least in LEAST.items():
            if onset < lag:
                return None
            before = self._past[onset - lag]
            cells = covered_cells(before, self._past[-1])
            if np.count_nonzero(cells) < least:  # most frames
                continue
            past = list(self._past)
            for facts in past[onset:-1]:
                cells &= covered_cells(before, facts)
            if np.count_nonzero(cells) < least:
                continue
            cells = _largest_part(cells)
            if cells.sum() >= least and _is_cover(before, past[onset], cells):
                if any(_look_alike(earlier, past[-1], cells) for earlier in past[: onset - lag]):
                    return None
                coming = past[onset - lag + 1 :]
                begun = [float(covered_cells(before, facts)[cells].mean()) >= BEGUN for facts in coming]
                first = index - len(coming) + 1 + begun.index(True)
                return Cover(cells, past[-1].cell_lights.astype(np.int16), first, time)
        return None


def covered_cells(before: FrameFacts, facts: FrameFacts) -> Mask:
    """Return (CELLS, CELLS) the cells that changed and became smooth since an earlier frame."""
    covered = np.zeros((CELLS, CELLS), np.bool_)
    mark_covered(
        before.cell_lights, facts.cell_lights, before.colours, facts.colours, before.detail, facts.detail, covered
    )
    return covered


@kernel
def mark_covered(
    lights_before: npt.NDArray[np.float32],
    lights: npt.NDArray[np.float32],
    colours_before: Values,
    colours: Values,
    detail_before: Values,
    detail: Values,
    covered: Mask,
) -> None:
    """Mark the cells that changed and became smooth."""
    for y in range(CELLS):
        for x in range(CELLS):
            deviation = detail[DEVIATION, y, x]
            if deviation > SMOOTH or lights[y, x] >= GLARE:
                continue
            change = abs(lights[y, x] - lights_before[y, x])
            tint = max(abs(colours[0, y, x] - colours_before[0, y, x]), abs(colours[1, y, x] - colours_before[1, y, x]))
            lost = detail_before[DEVIATION, y, x] - deviation >= FALL or change >= CONTRAST
            covered[y, x] = lost and (change >= COVER_LIGHT or tint >= COVER_TINT)


def _is_cover(before: FrameFacts, facts: FrameFacts, cells: Mask) -> bool:
    """Return whether covered cells are alike and the rest of the picture goes on."""
    if float(facts.cell_lights[cells].std()) > EVEN:
        return False
    rest = cv2.dilate(cells.astype(np.uint8), np.ones((3, 3), np.uint8)) == 0
    change = np.abs(facts.cell_lights - before.cell_lights)
    return float(rest.mean()) >= LEAST_REST and float(np.median(change[rest])) <= REST


def _look_alike(earlier: FrameFacts, facts: FrameFacts, cells: Mask) -> bool:
    """Return whether most of some cells look as they did in an earlier frame."""
    change = np.abs(facts.cell_lights[cells] - earlier.cell_lights[cells])
    return float((change <= SEEN).mean()) >= SEEN_CELLS


def _largest_part(cells: Mask) -> Mask:
    """Return the largest part of some cells that hangs together."""
    count, labels, numbers, _ = cv2.connectedComponentsWithStats(cells.astype(np.uint8), connectivity=8)
    if count < 2:
        return np.zeros((CELLS, CELLS), np.bool_)
    largest: Mask = labels == 1 + int(numbers[1:, cv2.CC_STAT_AREA].argmax())
    return largest
