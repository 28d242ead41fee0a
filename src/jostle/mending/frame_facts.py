"""What the rules of a stream know of one frame: its descriptor in signed numbers, some pixels, and their sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
    return FrameFacts(
        lights,
        descriptor[COLOUR].astype(np.int16),
        descriptor[DETAIL].astype(np.int16),
        frame[rows[:, None], columns],
        mean,
        float(np.abs(lights - mean).mean()),
        int(ordered[EDGE]),
        int(ordered[-1 - EDGE]),
        descriptor[LIGHT].mean(0, dtype=np.float32),
        block_edges(frame),
    )


def cell_changes(one: FrameFacts, other: FrameFacts) -> npt.NDArray[np.float32]:
    """Return (CELLS, CELLS) the mean absolute difference of the pixels of two frames, in grey levels."""
    difference = np.abs(one.samples.astype(np.int16) - other.samples)
    means: npt.NDArray[np.float32] = difference.reshape(CELLS, PER_CELL, CELLS, -1).mean((1, 3), dtype=np.float32)
    return means


def correlation(one: Values, other: Values) -> float:
    """Return the correlation of two arrays; 0 where one of them is constant."""
    a, b = one - np.float32(one.mean()), other - np.float32(other.mean())
    scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / scale if scale > 0 else 0.0
