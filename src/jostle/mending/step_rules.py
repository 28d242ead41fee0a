"""Plain rule for a stream that finds sudden changes of the picture of one scene: light, colour or detail.

A cut changes everything, motion changes a little at a time. A camera or link that fails changes one thing in one frame
while the scene behind it goes on: the light, the colours, the sharpness or the noise.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel
from jostle.mending.descriptor_layout import CELLS
from jostle.mending.frame_facts import BEND, FrameFacts, Mask, Values, correlation, detail_code
from jostle.mending.stream_rules import Finding

LAGS = (1, 2)  # clean frames before the present one that it is compared with: the first may be a blend
STEADY = 3  # frames that a change must last, longer than a flash or a blended frame
SUDDEN = 3.5  # times the largest change from frame to frame in the last `CALM` ones that a sudden change has
CALM, MIN_CALM = 8, 3  # and of them at least
LASTING, LASTING_CUT = 0.5, 0.8  # share of the change that a frame must have to belong to it, and one after a cut
FLASH, FLASH_LEFT = 8, 0.75  # frames after a rise of the light in which more of it must be left, else it is a flash
CUT = 0.5  # correlation of lights with the frame before under which the scene has changed
HISTORY, SEEN = 64, 0.7  # clean frames before; share of the change in one of them: the picture comes back
STEP_SECONDS = 60.0  # after which the new look is taken for the picture as it is

SAME_SCENE = 0.85  # correlation of lights with the frame before
NOISE_STEP, NOISE_CELLS = 22, 0.8  # rise of the mean code of bends, and share of cells where it rises by half of it
BLUR_STEP, BLUR_CELLS = 26, 0.8  # fall, over cells with a detail of
TEXTURE = detail_code(1.5)
TEXTURED = 0.1  # share of the cells that must have it
BLUR_SCENE = 0.9  # correlation that a blurred picture keeps
BRIGHT, BRIGHT_STEP, BRIGHT_SHARE = 244, 22.0, 0.12  # white cells, rise of the mean, and of the share of white cells
BRIGHT_SCENE = 0.55  # correlation of the lights that are not white
DIM_SHARE, DIM_FROM = 0.62, 25.0  # share of the light that is left, of at least so many grey levels
CAST_STEP, CAST_EVEN = 12.0, 0.8  # shift of a colour's mean (half grey levels), and its size against its spread
CAST_GAIN = 1.45  # of one channel against another; a camera that sets its white balance anew changes them by less
SWAP_STEP, SWAPPED = 4.0, 0.35  # mean change of colours, and share of it that is left if red and blue change places
SWAP_CELLS = 4  # half grey levels between red and blue in the cells that show whether they are back


@dataclass(frozen=True, eq=False, slots=True)
class SceneChange:
    """Sudden change that goes on.

    Attributes:
        kind: one of `jostle.mending.verdicts.KINDS`.
        first: first frame that has it.
        since: time of that frame.
        cells: (CELLS, CELLS) where it is.
        before: what `measure` gave for the frame before it.
        after: what `measure` gives for a frame that has it.
    """

    kind: str
    first: int
    since: float
    cells: Mask
    before: float
    after: float

    def lasts(self, facts: FrameFacts, last: FrameFacts | None) -> bool:
        """Return whether a frame is nearer to the frames that have the change than to those before it."""
        if last is not None and correlation(last.lights, facts.lights) < CUT:
            return self.kind != "blurred" and self.left(facts) >= LASTING_CUT
        return self.left(facts) >= LASTING

    def left(self, facts: FrameFacts) -> float:
        """Return the share of the change that a frame has."""
        return (measure(self.kind, facts, self.cells) - self.before) / (self.after - self.before)


class StepRule:
    """Rule for sudden changes: `noisy`, `blurred`, `overexposed`, `underexposed`, `colour_cast`.

    The frame is compared with clean ones shortly before it. The lights of the scene must stay where they are (their
    correlation) while one measure jumps. A change that lasts `STEADY` frames is damage until the measure is back half
    way, or for `STEP_SECONDS`. Where a frame of the last seconds looked as after the change, a change ends.

    Misses: what is there from the first frame; what comes slowly, as defocus or dusk; weak changes, and a change of
    colour that a camera's white balance could make (`CAST_GAIN`). False: lamps that are switched, stage lights, a
    white balance far off.
    """

    def __init__(self) -> None:
        self._clean: deque[FrameFacts] = deque(maxlen=HISTORY)
        self._calm: deque[Changes] = deque(maxlen=CALM)  # between clean frames
        self._last: FrameFacts | None = None
        self._step: SceneChange | None = None

    def push(self, index: int, time: float, facts: FrameFacts) -> list[Finding]:
        """Add a frame and return what it shows."""
        last, self._last = self._last, facts
        step = self._step
        if step is not None:
            if step.lasts(facts, last) and time - step.since < STEP_SECONDS:
                if step.kind == "overexposed" and index - step.first < FLASH and step.left(facts) < FLASH_LEFT:
                    self._step, self._calm = None, deque(maxlen=CALM)
                    return []
                steady = index - step.first + 1 >= STEADY
                return [Finding(step.first, index, step.kind, 0.9)] if steady else []
            self._step = None
            self._clean.clear()
        self._step = self._find_step(index, time, facts)
        if self._step is None:
            if self._clean and correlation(self._clean[-1].lights, facts.lights) < CUT:
                self._calm.clear()
            elif self._clean:
                self._calm.append(measure_changes(self._clean[-1], facts))
            self._clean.append(facts)
        return []

    def _find_step(self, index: int, time: float, facts: FrameFacts) -> SceneChange | None:
        if len(self._calm) < MIN_CALM:
            return None
        for lag in range(1, min(max(LAGS), len(self._clean)) + 1):
            before = self._clean[-lag]
            step = find_step(before, facts)
            if step is None:
                continue
            kind, cells = step
            number = MEASURES[kind]
            calm = [changes[number] for changes in self._calm][: len(self._calm) - lag + 1]
            if measure_changes(before, facts)[number] >= SUDDEN * max(calm):
                values = [measure(kind, one, cells) for one in (before, facts)]
                change = SceneChange(kind, index, time, cells, values[0], values[1])
                return None if self._comes_back(change, facts) else change
        return None

    def _comes_back(self, change: SceneChange, facts: FrameFacts) -> bool:
        """Return whether a clean frame before looked so: this is the end of a change, not its beginning."""
        return any(
            change.left(earlier) >= SEEN and correlation(earlier.lights, facts.lights) >= SAME_SCENE
            for earlier in list(self._clean)[: -max(LAGS)]
        )


Changes = tuple[float, float, float]
MEASURES = {  # which of `measure_changes` a kind moves
    "overexposed": 0,
    "underexposed": 0,
    "noisy": 1,
    "blurred": 1,
    "colour_cast": 2,
}


def measure_changes(before: FrameFacts, facts: FrameFacts) -> Changes:
    """Return by how much the mean light, the mean detail and a mean colour change."""
    (blue, red), (blue_before, red_before) = facts.tints, before.tints
    colour = max(abs(blue - blue_before), abs(red - red_before))
    return abs(facts.mean - before.mean), abs(facts.bend - before.bend), colour


def find_step(before: FrameFacts, facts: FrameFacts) -> tuple[str, Mask] | None:
    """Return the kind of a sudden change between two frames, and its cells; None where there is none."""
    if _is_overexposed(before, facts):
        return "overexposed", np.ones((CELLS, CELLS), np.bool_)
    dimmer = facts.mean <= DIM_SHARE * before.mean and before.mean >= DIM_FROM
    tinted = measure_changes(before, facts)[MEASURES["colour_cast"]] >= CAST_STEP
    noisier = facts.bend - before.bend >= NOISE_STEP
    softened, recoloured = compare_details(before.detail, facts.detail, before.colours, facts.colours)
    softer = softened >= BLUR_CELLS * TEXTURED * CELLS * CELLS
    swapped = recoloured >= SWAP_STEP and _are_colours_swapped(before, facts)
    if not (dimmer or tinted or swapped or noisier or softer):  # most frames
        return None
    everywhere, finer = np.ones((CELLS, CELLS), np.bool_), facts.detail[BEND] - before.detail[BEND]
    scene = correlation(before.lights, facts.lights)
    if scene >= SAME_SCENE:
        if noisier and (finer >= NOISE_STEP / 2).mean() >= NOISE_CELLS:
            return "noisy", everywhere
        if dimmer:
            return "underexposed", everywhere
        textured = before.detail[BEND] >= TEXTURE
        if scene >= BLUR_SCENE and textured.mean() >= TEXTURED:
            falls = -finer[textured]
            if falls.mean() >= BLUR_STEP and (falls >= BLUR_STEP / 2).mean() >= BLUR_CELLS:
                return "blurred", textured
        if swapped:
            return "colour_cast", before.colours[1] - before.colours[0] >= SWAP_CELLS
        if not tinted:
            return None
        shift = (facts.colours - before.colours).reshape(2, -1)
        means, spreads = np.abs(shift.mean(1)), shift.std(1)
        even = (means >= np.maximum(CAST_STEP, CAST_EVEN * spreads)).any()
        if even and measure_channel_gain(before, facts) >= CAST_GAIN:
            return "colour_cast", everywhere
    return None


def measure_channel_gain(before: FrameFacts, facts: FrameFacts) -> float:
    """Return how many times as much the mean of one channel grew as that of another."""
    gains = channel_means(facts) / channel_means(before)
    return float(gains.max() / gains.min())


def channel_means(facts: FrameFacts) -> npt.NDArray[np.float64]:
    """Return the means of red, green and blue, one grey level at least."""
    blue, red = (facts.mean + 2 * (tint - 128) for tint in facts.tints)
    green = (256 * facts.mean - 77 * red - 29 * blue) / 150  # the light is 77 red + 150 green + 29 blue, over 256
    means: npt.NDArray[np.float64] = np.maximum(np.array([red, green, blue]), 1.0)
    return means


@kernel
def compare_details(
    detail_before: Values, detail: Values, colours_before: Values, colours: Values
) -> tuple[int, float]:
    """Return the number of cells that lost detail, and the mean change of the colours."""
    softened, change = 0, 0
    for y in range(CELLS):
        for x in range(CELLS):
            softened += detail[BEND, y, x] - detail_before[BEND, y, x] <= -BLUR_STEP / 2
            for number in range(2):
                change += abs(colours[number, y, x] - colours_before[number, y, x])
    return softened, change / colours.size


def _are_colours_swapped(before: FrameFacts, facts: FrameFacts) -> bool:
    """Return whether red and blue changed places, as where a program takes one order of channels for the other."""
    if not (before.colours[1] - before.colours[0] >= SWAP_CELLS).any():
        return False
    changes = np.abs(facts.colours - before.colours).mean()
    return bool(np.abs(facts.colours[::-1] - before.colours).mean() <= SWAPPED * changes)


def _is_overexposed(before: FrameFacts, facts: FrameFacts) -> bool:
    """Return whether the light rose into white while what is not white stays in place."""
    if facts.mean - before.mean < BRIGHT_STEP:
        return False
    white = facts.lights >= BRIGHT
    if (
        white.mean() - (before.lights >= BRIGHT).mean() < BRIGHT_SHARE
        or (facts.lights < before.lights - 6).mean() > 0.03
    ):
        return False
    # What is white now was bright before, as a gain makes it; the rest stays in place.
    rest = ~white
    if rest.any() and np.median(before.lights[white]) <= np.median(before.lights[rest]):
        return False
    if rest.mean() < 0.1:
        return True
    return correlation(before.lights[rest], facts.lights[rest]) >= BRIGHT_SCENE


def measure(kind: str, facts: FrameFacts, cells: Mask) -> float:
    """Return the number that a kind of change moves."""
    values: npt.NDArray[np.generic]
    if kind in ("noisy", "blurred"):
        values = facts.detail[BEND][cells]
    elif kind == "colour_cast" and not cells.all():
        values = (facts.colours[1] - facts.colours[0])[cells]
    elif kind == "colour_cast":
        blue, red = facts.tints
        return blue if abs(blue - 128) >= abs(red - 128) else red
    else:
        values = facts.lights
    return float(values.mean())
