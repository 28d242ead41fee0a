"""Things to hold, and things to sit on or push about: each a few shapes around the point where it is held."""

from __future__ import annotations

import numpy as np

from jostle.datasets.puppets.figure import shaded
from jostle.datasets.puppets.shapes import Colour, Pile, Point, Points, Reals

BALL = "ball"
# Every prop with the colour it usually has, and how far its lowest point lies below the hand (in its own units).
PROPS: dict[str, tuple[Colour, float]] = {
    BALL: ((226, 72, 56), 2.6),
    "book": ((58, 92, 168), 5.0),
    "bottle": ((60, 150, 92), 5.0),
    "box": ((206, 158, 92), 4.6),
    "cup": ((244, 244, 238), 4.0),
    "flag": ((232, 190, 40), 8.0),
    "flower": ((220, 90, 150), 6.0),
    "lantern": ((250, 206, 90), 9.0),
    "umbrella": ((130, 70, 160), 5.0),
}
UNIT = 0.0155  # of the holder's height
WOOD: Colour = (150, 104, 66)
STEEL: Colour = (90, 96, 108)


def draw_prop(pile: Pile, kind: str, colour: Colour, at: Points, angle: Reals, unit: float) -> None:
    """Add a prop held at `at`, turned by `angle` radians; `unit` is its scale in pixels."""
    turn = unit * np.exp(1j * angle)

    def spot(x: float, y: float) -> Points:
        step: Points = at + turn * complex(x, y)
        return step

    def corners(*points: tuple[float, float]) -> list[Point]:
        return [spot(x, y) for x, y in points]

    dark, pale = shaded(colour, 0.72), shaded(colour, 1.5)
    match kind:
        case "ball":
            pile.disc(spot(0, -2.0), 4.6 * unit, colour)
            pile.capsule(spot(-2.4, 0.4), spot(2.4, 0.4), 1.1 * unit, 1.1 * unit, dark)
            pile.disc(spot(1.5, -3.8), 1.3 * unit, pale)
        case "book":
            pile.polygon(corners((-3.4, -4), (3.8, -4), (3.8, 4.4), (-3.4, 4.4)), 0.6 * unit, dark)
            pile.polygon(corners((-2.6, -4), (4, -4.2), (4, 3.4), (-2.6, 3.4)), 0.4 * unit, colour)
            pile.capsule(spot(-0.4, -1.6), spot(2.4, -1.6), 0.5 * unit, 0.5 * unit, pale)
        case "bottle":
            pile.capsule(spot(0, -1), spot(0, 2.8), 2.2 * unit, 2.2 * unit, colour)
            pile.capsule(spot(0, -6.5), spot(0, -1.5), 0.9 * unit, 1.3 * unit, dark)
            pile.capsule(spot(-0.8, 0.4), spot(0.8, 0.4), 1.3 * unit, 1.3 * unit, pale)
        case "box":
            pile.polygon(corners((-4.6, -4), (4.6, -4), (4.6, 4), (-4.6, 4)), 0.6 * unit, colour)
            pile.polygon(corners((-0.8, -4.4), (0.8, -4.4), (0.8, 4.4), (-0.8, 4.4)), 0.2 * unit, dark)
            pile.capsule(spot(-4.6, -2.2), spot(4.6, -2.2), 0.4 * unit, 0.4 * unit, pale)
        case "cup":
            pile.capsule(spot(2.6, -0.4), spot(2.6, 0.8), 1.6 * unit, 1.4 * unit, dark)
            pile.polygon(corners((-2.4, -3.4), (2.4, -3.4), (1.9, 3.2), (-1.9, 3.2)), 0.7 * unit, colour)
            pile.capsule(spot(-2.2, -3.4), spot(2.2, -3.4), 0.7 * unit, 0.7 * unit, (110, 70, 46))
        case "flag":
            pile.capsule(spot(0, -15), spot(0, 7), 0.6 * unit, 0.6 * unit, WOOD)
            pile.polygon(corners((0.6, -14.6), (9, -12.6), (9, -8), (0.6, -7.4)), 0.4 * unit, colour)
            pile.polygon(corners((0.6, -11.6), (9, -10.8), (9, -9.6), (0.6, -9.9)), 0.1 * unit, pale)
        case "flower":
            pile.capsule(spot(0, -5), spot(0, 5.4), 0.6 * unit, 0.6 * unit, (70, 140, 66))
            pile.capsule(spot(0, 1), spot(2.4, -1), 0.9 * unit, 0.4 * unit, (86, 160, 76))
            for x, y in ((-1.9, -7), (1.9, -7), (0, -8.8), (0, -5.4)):
                pile.disc(spot(x, y), 1.9 * unit, colour)
            pile.disc(spot(0, -7), 1.3 * unit, (250, 220, 90))
        case "lantern":
            pile.glow(spot(0, 5), 9.0 * unit, 9.0 * unit, 0.5, (255, 236, 160))
            pile.capsule(spot(0, 0), spot(0, 2), 0.5 * unit, 0.5 * unit, STEEL)
            pile.polygon(corners((-2.2, 2.4), (2.2, 2.4), (2.6, 7.8), (-2.6, 7.8)), 0.6 * unit, colour)
            pile.capsule(spot(-2.4, 2.2), spot(2.4, 2.2), 0.8 * unit, 0.8 * unit, STEEL)
            pile.capsule(spot(-2.6, 8), spot(2.6, 8), 0.8 * unit, 0.8 * unit, STEEL)
        case "umbrella":
            pile.capsule(spot(0, -15), spot(0, 4), 0.6 * unit, 0.6 * unit, WOOD)
            pile.polygon(corners((-9, -12), (-6, -16.4), (0, -18.4), (6, -16.4), (9, -12)), 0.5 * unit, colour)
            pile.polygon(corners((-3.2, -12), (-1.8, -16.6), (0, -18.2), (1.8, -16.6), (3.2, -12)), 0.3 * unit, dark)


def draw_stool(pile: Pile, at: Points, height: float, back: int, colour: Colour) -> None:
    """Add a stool whose seat is `height` above the floor; `back` is the side of a chair's back, 0 for none."""
    half, dark = 0.42 * height, shaded(colour, 0.7)
    top = at - 1j * height
    pile.glow(at, 1.6 * half, 0.16 * height, 0.45, (20, 20, 30))
    for side in (-0.55, 0.55):
        pile.capsule(top + side * half, at + 1.5 * side * half, 0.07 * height, 0.06 * height, dark)
    if back:
        pile.capsule(top + back * half, top + back * 1.15 * half - 0.95j * height, 0.08 * height, 0.08 * height, dark)
        pile.capsule(
            top + back * 1.1 * half - 0.55j * height, top + back * 1.15 * half - 1j * height,
            0.12 * height, 0.12 * height, colour,
        )  # fmt: skip
    pile.capsule(top - half, top + half, 0.1 * height, 0.1 * height, colour)


def draw_crate(pile: Pile, at: Points, width: float, height: float, colour: Colour) -> None:
    """Add a crate to push, standing on the floor at `at`."""
    dark, pale = shaded(colour, 0.75), shaded(colour, 1.25)
    half = width / 2
    pile.glow(at, 0.75 * width, 0.12 * height, 0.5, (20, 20, 30))
    pile.polygon([at - half, at + half, at + half - 1j * height, at - half - 1j * height], 0.6, dark)
    for row in (0.2, 0.5, 0.8):
        middle = at - 1j * height * row
        pile.capsule(middle - 0.8 * half, middle + 0.8 * half, 0.1 * height, 0.1 * height, colour)
    pile.capsule(at - 0.86 * half - 0.1j * height, at + 0.86 * half - 0.9j * height, 1.2, 1.2, pale)
