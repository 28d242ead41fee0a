"""What the rules of a stream know of one frame: its descriptor in signed numbers, some pixels, and their sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel
from jostle.core.types.clip import Frame
from jostle.mending.block_edges import EdgeShares, block_edges
from jostle.mending.descriptor import sample_points
from jostle.mending.descriptor_layout import CELLS, COLOUR, DETAIL, FINEST, LIGHT, POINTS, TOP, Descriptor

SIDE = 2 * CELLS * POINTS  # sample points along each side of a frame
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


def frame_facts(frame: Frame, descriptor: Descriptor) -> FrameFacts:
    """Collect the facts of a frame.

    Args:
        descriptor: of this frame.
    """
    quarters = descriptor[LIGHT].reshape(2, 2, CELLS, CELLS).transpose(2, 0, 3, 1)
    lights = quarters.reshape(2 * CELLS, 2 * CELLS).astype(np.int16)
    rows, columns, _, _ = sample_points(*frame.shape[:2])
    mean = float(lights.mean())
    ordered = np.sort(lights, axis=None)
    colours, detail = descriptor[COLOUR].astype(np.int16), descriptor[DETAIL].astype(np.int16)
    blue, red = colours.mean((1, 2))
    return FrameFacts(
        lights,
        colours,
        detail,
        frame.take(rows, 0).take(columns, 1),
        mean,
        float(detail[BEND].mean()),
        (float(blue), float(red)),
        float(np.abs(lights - mean).mean()),
        int(ordered[EDGE]),
        int(ordered[-1 - EDGE]),
        descriptor[LIGHT].mean(0, dtype=np.float32),
        block_edges(frame),
    )


def cell_changes(one: FrameFacts, other: FrameFacts) -> npt.NDArray[np.float32]:
    """Return (CELLS, CELLS) the mean absolute difference of the pixels of two frames, in grey levels."""
    sums = np.zeros((CELLS, CELLS), np.int32)
    sum_changes(one.samples, other.samples, sums)
    means: npt.NDArray[np.float32] = sums.astype(np.float32) / np.float32(3 * PER_CELL * PER_CELL)
    return means


@kernel
def sum_changes(one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8], sums: npt.NDArray[np.int32]) -> None:
    """Add the absolute differences of two frames' samples to the sums of their cells."""
    a, b = one.reshape(SIDE, CELLS, 3 * PER_CELL), other.reshape(SIDE, CELLS, 3 * PER_CELL)
    for y in range(SIDE):
        for cell in range(CELLS):
            change = np.int32(0)
            for number in range(3 * PER_CELL):
                change += abs(np.int32(a[y, cell, number]) - np.int32(b[y, cell, number]))
            sums[y // PER_CELL, cell] += change


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


@kernel
def mean_change(one: Values, other: Values) -> float:
    """Return the mean absolute difference of two flat arrays."""
    total = np.int64(0)
    for number in range(len(one)):
        total += abs(np.int64(one[number]) - np.int64(other[number]))
    return total / len(one)
