"""A pile of shapes over time, in world pixels; points are complex numbers, x to the right and y downwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.datasets.puppets.rasterize import CAPSULE, CORNERS, FAR, GLOW, POLYGON, WIDTH, Ints, fixed

Points = npt.NDArray[Any]  # (T,), complex
Reals = npt.NDArray[np.float64]  # (T,)
Colour = tuple[int, int, int]
Real = float | Reals
Point = complex | Points


@dataclass(frozen=True, eq=False)
class ShapeArrays:
    """Shapes ready for the kernels: kinds (S, 2), colours (S, 3), shapes (T, S, 13)."""

    kinds: Ints
    colours: Ints
    shapes: Ints


class Pile:
    """Shapes in the order they are painted; each may move from frame to frame.

    Attributes:
        frames: how many frames every shape has.
    """

    def __init__(self, frames: int) -> None:
        self.frames = frames
        self._kinds: list[tuple[int, int]] = []
        self._colours: list[Colour] = []
        self._shapes: list[Reals] = []

    def __len__(self) -> int:
        return len(self._kinds)

    def _add(self, kind: int, colour: Colour, points: Sequence[Point], sizes: Sequence[Real]) -> None:
        shape = np.zeros((self.frames, WIDTH))
        across, along, others = _columns(kind)
        for x, y, point in zip(across, along, points, strict=False):
            place = np.asarray(point, complex)
            shape[:, x], shape[:, y] = place.real, place.imag
        for column, size in zip(others, sizes, strict=True):
            shape[:, column] = size
        self._kinds.append((kind, len(points)))
        self._colours.append(colour)
        self._shapes.append(shape)

    def capsule(self, start: Point, end: Point, radius: Real, end_radius: Real, colour: Colour) -> None:
        """Add a limb: two discs and the area between them."""
        self._add(CAPSULE, colour, [start, end], [radius, end_radius])

    def disc(self, centre: Point, radius: Real, colour: Colour) -> None:
        """Add a filled circle to the pile."""
        self.capsule(centre, centre, radius, radius, colour)

    def polygon(self, corners: Sequence[Point], rounding: Real, colour: Colour) -> None:
        """Add a convex polygon of at most six corners, grown by `rounding`."""
        self._add(POLYGON, colour, corners, [rounding])

    def glow(self, centre: Point, half_width: Real, half_height: Real, strength: Real, colour: Colour) -> None:
        """Add a soft spot; strength 1 hides what is below its centre."""
        self._add(GLOW, colour, [centre], [half_width, half_height, strength])

    def hide(self, first: int, gone: npt.NDArray[np.bool_]) -> None:
        """Hide the shapes from `first` on in the frames where `gone`."""
        for kind, shape in zip(self._kinds[first:], self._shapes[first:], strict=True):
            for column in _columns(kind[0])[0]:
                shape[gone, column] = FAR

    def seen_by(self, centre: Points, zoom: Reals, middle: complex) -> ShapeArrays:
        """Return the pile in the coordinates of a camera at `centre`, displayed at `middle` of the picture."""
        shapes = np.zeros((self.frames, len(self), WIDTH))
        offset = middle - centre * zoom
        for number, (kind, shape) in enumerate(zip(self._kinds, self._shapes, strict=True)):
            across, along, others = _columns(kind[0])
            shapes[:, number] = shape * zoom[:, None]
            shapes[:, number, across] += offset.real[:, None]
            shapes[:, number, along] += offset.imag[:, None]
            if kind[0] == GLOW:  # nearer is not stronger
                shapes[:, number, others[-1]] = shape[:, others[-1]]
        kinds = np.array(self._kinds, np.int32).reshape(-1, 2)
        return ShapeArrays(kinds, np.array(self._colours, np.int32).reshape(-1, 3), fixed(shapes))


def _columns(kind: int) -> tuple[list[int], list[int], list[int]]:
    """Return which numbers of a shape are horizontal and vertical positions, and which are sizes."""
    if kind == CAPSULE:
        return [0, 3], [1, 4], [2, 5]
    if kind == GLOW:
        return [0], [1], [2, 3, 4]
    return list(range(0, 2 * CORNERS, 2)), list(range(1, 2 * CORNERS, 2)), [2 * CORNERS]
