"""What the rules of a stream know of one frame: its descriptor in signed numbers, some pixels, and their sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel, read_only
from jostle.core.types.clip import Frame
from jostle.mending.block_edges import EdgeShares, block_edges
from jostle.mending.descriptor import sample_points
from jostle.mending.descriptor_layout import CELLS, COLOUR, DETAIL, FINEST, POINTS, TOP, Descriptor, Indices

SIDE = 2 * CELLS * POINTS  # sample points along each side of a frame
LIGHTS = (2 * CELLS, 2 * CELLS)  # of a frame
PER_CELL = SIDE // CELLS  # of them along each side of a cell
EDGE = 12  # of 576 lights, or 3 of 144 colours, at each end that the range of a frame leaves out
STEPS, BEND, DEVIATION = slice(0, 2), 2, 3  # measures of detail: steps to the right and down, bends, deviation

Values = npt.NDArray[np.int16]
Mask = npt.NDArray[np.bool_]


def detail_code(levels: float) -> int:
    """Return the byte that stands for a detail of so many grey levels.

    >>> detail_code(0.25), detail_code(10)
    (26, 137)
    """
    return round(float(np.log1p(FINEST * levels)) * TOP)


@dataclass(frozen=True, eq=False, slots=True)
class FrameFacts:
    """Facts of one frame, 40 kB whatever its size.

    Attributes:
        lights: (2 CELLS, 2 CELLS) grey levels, as they lie in the frame.
        colours: (2, CELLS, CELLS) blue and red less light, halved.
        detail: (5, CELLS, CELLS) codes of `detail_code`.
        samples: (SIDE, SIDE, 3) single pixels.
        mean: of the lights.
        bend: mean code of the bends.
        tints: means of the two colours.
        spread: mean absolute deviation of the lights.
        low: darkest light but `EDGE`.
        high: brightest light but `EDGE`.
        cell_lights: (CELLS, CELLS) mean lights of the cells.
        block_edges: (PERIOD,) shares of edges by their distance from a codec's block grid.
    """

    lights: Values
    colours: Values
    detail: Values
    samples: npt.NDArray[np.uint8]
    mean: float
    bend: float
    tints: tuple[float, float]
    spread: float
    low: int
    high: int
    cell_lights: npt.NDArray[np.float32]
    block_edges: EdgeShares


def frame_facts(frame: Frame, descriptor: Descriptor, samples: npt.NDArray[np.uint8] | None = None) -> FrameFacts:
    """Collect the facts of a frame.

    Args:
        descriptor: of this frame.
        samples: array for the samples; by default a new one.
    """
    rows, columns, _, _ = sample_points(*frame.shape[:2])
    lights, cell_lights = np.empty(LIGHTS, np.int16), np.empty((CELLS, CELLS), np.float32)
    colours, detail = descriptor[COLOUR].astype(np.int16), descriptor[DETAIL].astype(np.int16)
    samples = np.empty((SIDE, SIDE, 3), np.uint8) if samples is None else samples
    total, bend, blue, red, low, high = collect_facts(
        read_only(frame), rows, columns, read_only(descriptor), lights, cell_lights, samples
    )
    mean = total / lights.size
    return FrameFacts(
        lights,
        colours,
        detail,
        samples,
        mean,
        bend / cell_lights.size,
        (blue / cell_lights.size, red / cell_lights.size),
        float(np.abs(lights - mean).mean()),
        low,
        high,
        cell_lights,
        block_edges(frame),
    )


@kernel
def collect_facts(
    frame: Frame,
    rows: Indices,
    columns: Indices,
    descriptor: Descriptor,
    lights: Values,
    cell_lights: npt.NDArray[np.float32],
    samples: npt.NDArray[np.uint8],
) -> tuple[int, int, int, int, int, int]:
    """Fill in lights and samples; return sums of lights, bends and the two colours, and the ends of the lights."""
    for y in range(SIDE):
        for x in range(SIDE):
            for channel in range(3):
                samples[y, x, channel] = frame[rows[y], columns[x], channel]
    counts = np.zeros(256, np.int64)
    total = bend = blue = red = 0
    for y in range(CELLS):
        for x in range(CELLS):
            light = 0
            for quarter in range(4):
                value = descriptor[quarter, y, x]
                lights[2 * y + quarter // 2, 2 * x + quarter % 2] = value
                counts[value] += 1
                light += value
            cell_lights[y, x] = light / 4
            total += light
            blue += descriptor[4, y, x]
            red += descriptor[5, y, x]
            bend += descriptor[6 + BEND, y, x]
    low, below = 0, counts[0]
    while below <= EDGE:
        low += 1
        below += counts[low]
    high, above = 255, counts[255]
    while above <= EDGE:
        high -= 1
        above += counts[high]
    return total, bend, blue, red, low, high


def cell_changes(one: FrameFacts, other: FrameFacts) -> npt.NDArray[np.float32]:
    """Return (CELLS, CELLS) the mean absolute difference of the pixels of two frames, in grey levels."""
    sums = np.empty((CELLS, CELLS), np.int32)
    sum_changes(one.samples, other.samples, sums)
    means: npt.NDArray[np.float32] = sums.astype(np.float32) / np.float32(3 * PER_CELL * PER_CELL)
    return means


@kernel
def sum_changes(one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8], sums: npt.NDArray[np.int32]) -> None:
    """Sum the absolute differences of two frames' samples over each cell."""
    a, b = one.reshape(SIDE, 3 * SIDE), other.reshape(SIDE, 3 * SIDE)
    line = np.empty(3 * SIDE, np.int16)  # short numbers, and rows before columns, for the processor's vectors
    for row in range(CELLS):
        for x in range(3 * SIDE):
            line[x] = 0
        for y in range(PER_CELL * row, PER_CELL * (row + 1)):
            for x in range(3 * SIDE):
                p, q = a[y, x], b[y, x]
                line[x] += max(p, q) - min(p, q)
        for cell in range(CELLS):
            total = 0
            for x in range(3 * PER_CELL * cell, 3 * PER_CELL * (cell + 1)):
                total += line[x]
            sums[row, cell] = total


def correlation(one: Values, other: Values) -> float:
    """Return the correlation of two arrays; 0 where one of them is constant."""
    value: float = correlate(one.ravel(), other.ravel())
    return value


@kernel
def correlate(one: Values, other: Values) -> float:
    """Return the correlation of two flat arrays; 0 where one of them is constant."""
    a = b = aa = bb = ab = np.int64(0)
    for number in range(len(one)):
        x, y = np.int64(one[number]), np.int64(other[number])
        a, b, aa, bb, ab = a + x, b + y, aa + x * x, bb + y * y, ab + x * y
    count = len(one)
    scale = float(count * aa - a * a) * float(count * bb - b * b)
    return (count * ab - a * b) / np.sqrt(scale) if scale > 0 else 0.0
