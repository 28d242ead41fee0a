"""Places for films: wall or sky, floor, and what stands about, painted once as a texture that repeats sideways."""

from __future__ import annotations

import colorsys
from collections.abc import Callable

import numpy as np

from jostle.core.random import rng_for
from jostle.datasets.puppets.figure import bright, shaded
from jostle.datasets.puppets.rasterize import DEPTH, Bytes, paint
from jostle.datasets.puppets.shapes import Colour, Pile

ROWS, COLUMNS = 160, 256
HORIZON = 100  # the row where the floor begins

Rng = np.random.Generator
Place = Callable[[Rng, "TextureBoard", float], None]
_PLACES: dict[str, Place] = {}


def _place(function: Place) -> Place:
    _PLACES[function.__name__.strip("_")] = function
    return function


class TextureBoard:
    """A texture in progress, painted step by step."""

    def __init__(self, rng: Rng) -> None:
        self.canvas = np.zeros((ROWS, COLUMNS, 3), np.int32)
        self._rng = rng

    def wash(self, top: int, bottom: int, upper: Colour, lower: Colour) -> None:
        """Fill rows with a colour gradient."""
        share = np.linspace(0.0, 1.0, bottom - top)[:, None]
        rows = np.array(upper) * (1 - share) + np.array(lower) * share
        self.canvas[top:bottom] = np.rint(rows * DEPTH).astype(np.int32)[:, None]

    def lay(self, pile: Pile) -> None:
        """Paint a pile, wrapped round at the sides."""
        for shift in (-COLUMNS, 0, COLUMNS):
            drawing = pile.seen_by(np.zeros(1, complex), np.ones(1), complex(shift, 0))
            paint(self.canvas, drawing.kinds, drawing.colours, drawing.shapes[0])

    def grain(self, top: int, bottom: int, size: float, across: int = 1) -> None:
        """Roughen rows; `across` stretches the grain sideways, as in wood."""
        noise = self._rng.normal(0.0, size, (bottom - top, COLUMNS))
        noise = sum(np.roll(noise, step, axis=1) for step in range(across)) / np.sqrt(across)
        self.canvas[top:bottom] += np.rint(noise[:, :, None] * DEPTH).astype(np.int32)

    def texture(self) -> Bytes:
        """Return the finished texture as bytes."""
        return np.clip((self.canvas + DEPTH // 2) // DEPTH, 0, 255).astype(np.uint8)


def texture_of(seed: int, name: str, clutter: float) -> Bytes:
    """Return the texture (160, 256, 3) of a film's location."""
    rng = rng_for(seed, name, "scenery")
    board = TextureBoard(rng)
    kinds = sorted(_PLACES)
    _PLACES[kinds[rng.integers(len(kinds))]](rng, board, clutter)
    board.grain(0, ROWS, 1.2)
    return board.texture()


def _pale(rng: Rng, low: float = 0.7, high: float = 0.95, full: float = 0.35) -> Colour:
    red, green, blue = colorsys.hsv_to_rgb(rng.random(), rng.uniform(0.08, full), rng.uniform(low, high))
    return round(red * 255), round(green * 255), round(blue * 255)


def _spots(rng: Rng, count: float, spread: float = 0.5) -> list[float]:
    """Return roughly even positions across the width."""
    number = max(0, round(count))
    return [float((k + rng.uniform(-spread, spread) * 0.8) * COLUMNS / number) for k in range(number)]


def _plank(x: float, y: float, width: float, height: float) -> list[complex]:
    return [complex(x, y), complex(x + width, y), complex(x + width, y + height), complex(x, y + height)]


def _planks(rng: Rng, board: TextureBoard, colour: Colour) -> None:
    """A wooden floor whose boards widen towards the viewer."""
    board.wash(HORIZON, ROWS, shaded(colour, 0.82), colour)
    board.grain(HORIZON, ROWS, 3.0, 12)
    pile, y, gap = Pile(1), float(HORIZON), 4.0
    while y < ROWS:
        pile.capsule(complex(0, y), complex(COLUMNS, y), 0.35, 0.35, shaded(colour, 0.66))
        for x in _spots(rng, 4):
            pile.capsule(complex(x, y), complex(x, y + gap), 0.3, 0.3, shaded(colour, 0.66))
        y, gap = y + gap, gap * 1.3
    board.lay(pile)


@_place
def _room(rng: Rng, board: TextureBoard, clutter: float) -> None:
    wall = _pale(rng)
    board.wash(0, HORIZON, shaded(wall, 0.94), wall)
    pile = Pile(1)
    step = COLUMNS / rng.integers(14, 30)
    if rng.random() < 0.5:
        for k in range(round(COLUMNS / step)):
            pile.polygon(_plank(k * step, 0, step / 2, HORIZON), 0.0, shaded(wall, 0.93))
    else:
        for k in range(round(COLUMNS / step)):
            for row in range(7):
                spot = complex((k + 0.5 * (row % 2)) * step, 6 + row * 14)
                pile.disc(spot, rng.uniform(1.2, 1.4), shaded(wall, 0.86))
    for x in _spots(rng, 1 + 4 * clutter):
        width, height = rng.uniform(14, 30), rng.uniform(14, 26)
        y = rng.uniform(24, 50)
        pile.polygon(_plank(x, y, width, height), 1.6, shaded(bright(rng, 0.3, 0.6), 0.9))
        pile.polygon(_plank(x + 1, y + 1, width - 2, height - 2), 0.0, _pale(rng, 0.6, 0.9, 0.6))
        pile.disc(complex(x + width * 0.4, y + height * 0.6), height * 0.25, bright(rng))
    for x in _spots(rng, 2.5 * clutter):
        _plant(rng, pile, x, HORIZON + 2)
    pile.polygon(_plank(0, HORIZON - 4, COLUMNS, 4), 0.0, shaded(wall, 1.6))
    board.lay(pile)
    _planks(rng, board, shaded((176, 128, 84), rng.uniform(0.7, 1.3)))


def _plant(rng: Rng, pile: Pile, x: float, floor: float) -> None:
    green, pot = (62, 128 + int(rng.integers(30)), 74), shaded((190, 104, 70), rng.uniform(0.8, 1.2))
    for lean in (-9, -5, 0, 5, 9):
        top = complex(x + lean, floor - 34 + abs(lean))
        pile.capsule(complex(x, floor - 10), top, 1.2, 2.4, shaded(green, rng.uniform(0.75, 1.2)))
    pile.polygon(
        [complex(x - 6, floor - 12), complex(x + 6, floor - 12), complex(x + 4, floor), complex(x - 4, floor)], 0.6, pot
    )


@_place
def _street(rng: Rng, board: TextureBoard, clutter: float) -> None:
    sky = _pale(rng, 0.8, 0.98)
    board.wash(0, HORIZON, sky, shaded(sky, 1.3))
    pile, x = Pile(1), 0.0
    while x < COLUMNS - 12:
        width = min(rng.uniform(30, 56), COLUMNS - x)
        top = rng.uniform(6, 46)
        house = _pale(rng, 0.45, 0.85, 0.5)
        pile.polygon(_plank(x, top, width - 1, HORIZON - top), 0.0, house)
        pile.polygon(_plank(x, top - 3, width - 1, 4), 0.0, shaded(house, 0.7))
        pane = shaded((250, 236, 170), rng.uniform(0.5, 1.2)) if rng.random() < 0.5 else (120, 150, 176)
        for row in range(int((HORIZON - 26 - top) / 15)):
            for column in range(int((width - 8) / 11)):
                pile.polygon(_plank(x + 5 + column * 11, top + 6 + row * 15, 5.5, 8), 0.5, shaded(pane, 0.95))
        pile.polygon(_plank(x + width * 0.4, HORIZON - 17, 8, 17), 0.5, bright(rng, 0.3, 0.6))
        x += width
    board.lay(pile)
    board.grain(0, HORIZON, 1.6)
    stone = shaded((150, 150, 156), rng.uniform(0.75, 1.2))
    board.wash(HORIZON, ROWS, shaded(stone, 0.9), stone)
    board.grain(HORIZON, ROWS, 3.4)
    pile = Pile(1)
    pile.polygon(_plank(0, HORIZON, COLUMNS, 2), 0.0, shaded(stone, 1.4))
    for x in _spots(rng, 10):
        pile.capsule(complex(x, HORIZON + 2), complex(x - 12, ROWS), 0.4, 0.6, shaded(stone, 0.8))
    for x in _spots(rng, 3 * clutter):
        pile.capsule(complex(x, HORIZON + 3), complex(x, 22), 1.3, 1.0, (70, 74, 84))
        pile.capsule(complex(x, 22), complex(x + 9, 20), 1.0, 1.0, (70, 74, 84))
        pile.glow(complex(x + 9, 23), 8.0, 8.0, 0.7, (255, 240, 190))
    board.lay(pile)


@_place
def _meadow(rng: Rng, board: TextureBoard, clutter: float) -> None:
    board.wash(
        0, HORIZON, shaded((112, 178, 226), rng.uniform(0.9, 1.3)), shaded((206, 232, 240), rng.uniform(0.9, 1.2))
    )
    pile = Pile(1)
    for x in _spots(rng, 3 + 3 * clutter):
        y = rng.uniform(12, 44)
        for step in (-9, 0, 8):
            pile.disc(complex(x + step, y - abs(step) * -0.3), rng.uniform(5, 8), (246, 248, 250))
    hill = shaded((120, 172, 110), rng.uniform(0.8, 1.15))
    for x in _spots(rng, 4):
        pile.capsule(complex(x - 20, HORIZON + 10), complex(x + 20, HORIZON + 12), rng.uniform(22, 40), 20.0,
                     shaded(hill, rng.uniform(0.85, 1.1)))  # fmt: skip
    for x in _spots(rng, 2 + 5 * clutter):
        _tree(rng, pile, x, HORIZON + 1)
    board.lay(pile)
    grass = shaded((112, 168, 76), rng.uniform(0.75, 1.15))
    board.wash(HORIZON, ROWS, shaded(grass, 0.9), grass)
    board.grain(HORIZON, ROWS, 4.0)
    pile = Pile(1)
    for _ in range(90):
        spot = complex(rng.uniform(0, COLUMNS), rng.uniform(HORIZON + 3, ROWS))
        pile.capsule(spot, spot + complex(rng.uniform(-2, 2), -3), 0.5, 0.3, shaded(grass, rng.uniform(0.7, 1.3)))
    for _ in range(round(26 * clutter)):
        pile.disc(complex(rng.uniform(0, COLUMNS), rng.uniform(HORIZON + 6, ROWS)), 1.2, bright(rng, 0.8, 1.0))
    board.lay(pile)


def _tree(rng: Rng, pile: Pile, x: float, floor: float) -> None:
    leaf = shaded((74, 140, 78), rng.uniform(0.75, 1.2))
    size = rng.uniform(9, 16)
    pile.capsule(complex(x, floor), complex(x, floor - 2.2 * size), 2.2, 1.6, (116, 82, 58))
    for step in (-0.7, 0.7, 0.0):
        height = 2.4 if step else 3.1
        pile.disc(complex(x + step * size, floor - height * size), size, shaded(leaf, 1.0 - 0.12 * abs(step)))


@_place
def _gym(rng: Rng, board: TextureBoard, clutter: float) -> None:
    wall = _pale(rng, 0.65, 0.9, 0.25)
    lower = bright(rng, 0.4, 0.75)
    board.wash(0, HORIZON, wall, shaded(wall, 0.92))
    pile = Pile(1)
    pile.polygon(_plank(0, HORIZON - 34, COLUMNS, 34), 0.0, lower)
    pile.polygon(_plank(0, HORIZON - 36, COLUMNS, 2), 0.0, shaded(lower, 1.6))
    for x in _spots(rng, 5, 0.0):
        pile.polygon(_plank(x, 12, 26, 20), 1.0, (190, 214, 226))
        pile.capsule(complex(x + 13, 12), complex(x + 13, 32), 0.6, 0.6, shaded(wall, 0.7))
    for x in _spots(rng, 2.5 * clutter):
        for rung in range(9):
            y = 30 + rung * 8
            pile.capsule(complex(x, y), complex(x + 24, y), 1.0, 1.0, (196, 148, 92))
        for side in (0, 24):
            pile.capsule(complex(x + side, 26), complex(x + side, HORIZON), 1.3, 1.3, (160, 112, 66))
    board.lay(pile)
    _planks(rng, board, shaded((214, 170, 110), rng.uniform(0.85, 1.15)))
    pile = Pile(1)
    line = bright(rng, 0.6, 1.0)
    pile.polygon(_plank(0, HORIZON + 26, COLUMNS, 1.6), 0.0, line)
    for x in _spots(rng, 2):
        pile.capsule(complex(x, HORIZON + 1), complex(x - 30, ROWS), 0.7, 1.0, shaded(line, 1.3))
    board.lay(pile)


@_place
def _beach(rng: Rng, board: TextureBoard, clutter: float) -> None:
    dusk = rng.random() < 0.4
    board.wash(0, 62, (246, 178, 130) if dusk else (120, 190, 232), (252, 222, 170) if dusk else (208, 236, 244))
    board.wash(62, HORIZON, (60, 120, 160), (96, 176, 190))
    pile = Pile(1)
    pile.disc(complex(rng.uniform(40, 210), 40), 10.0, (255, 240, 190))
    for _ in range(40):
        spot = complex(rng.uniform(0, COLUMNS), rng.uniform(65, HORIZON - 2))
        pile.capsule(spot, spot + rng.uniform(3, 9), 0.45, 0.45, (170, 214, 222))
    for x in _spots(rng, 3 * clutter):
        pile.polygon([complex(x, 40), complex(x + 13, 60), complex(x, 60)], 0.3, _pale(rng, 0.8, 1.0, 0.5))
        pile.polygon(
            [complex(x - 8, 62), complex(x + 14, 62), complex(x + 10, 67), complex(x - 5, 67)], 0.4, bright(rng)
        )
    board.lay(pile)
    sand = shaded((232, 208, 156), rng.uniform(0.85, 1.1))
    board.wash(HORIZON, ROWS, shaded(sand, 0.93), sand)
    board.grain(HORIZON, ROWS, 3.2)
    pile = Pile(1)
    pile.capsule(complex(0, HORIZON), complex(COLUMNS, HORIZON), 1.6, 1.6, (244, 246, 244))
    for x in _spots(rng, 3 * clutter):
        _parasol(rng, pile, x, HORIZON + 5)
    for _ in range(round(20 * clutter)):
        spot = complex(rng.uniform(0, COLUMNS), rng.uniform(HORIZON + 6, ROWS))
        pile.disc(spot, rng.uniform(0.6, 1.2), shaded(sand, rng.uniform(0.7, 1.2)))
    board.lay(pile)


def _parasol(rng: Rng, pile: Pile, x: float, floor: float) -> None:
    colour = bright(rng, 0.6, 1.0)
    pile.capsule(complex(x, floor), complex(x, floor - 44), 1.0, 1.0, (230, 224, 210))
    top = floor - 44
    pile.polygon([complex(x - 22, top + 8), complex(x - 12, top - 3), complex(x, top - 7), complex(x + 12, top - 3),
                  complex(x + 22, top + 8)], 0.6, colour)  # fmt: skip
    pile.polygon([complex(x - 7, top + 8), complex(x - 4, top - 4), complex(x, top - 7), complex(x + 4, top - 4),
                  complex(x + 7, top + 8)], 0.4, (248, 244, 236))  # fmt: skip


@_place
def _library(rng: Rng, board: TextureBoard, clutter: float) -> None:
    wall = _pale(rng, 0.5, 0.85, 0.4)
    board.wash(0, HORIZON, wall, shaded(wall, 0.9))
    pile = Pile(1)
    wood = shaded((128, 84, 52), rng.uniform(0.75, 1.25))
    for x in _spots(rng, 2 + 2 * clutter, 0.3):
        width = rng.uniform(34, 52)
        pile.polygon(_plank(x, 18, width, HORIZON - 18), 1.0, wood)
        for level in range(4):
            y = 22 + level * 19
            pile.polygon(_plank(x + 2, y, width - 4, 15), 0.0, shaded(wood, 0.6))
            at = x + 3.0
            while at < x + width - 7:
                thick, tall = rng.uniform(2.0, 4.2), rng.uniform(9, 13)
                pile.polygon(_plank(at, y + 15 - tall, thick, tall), 0.0, bright(rng, 0.35, 0.8))
                at += thick + 0.4
    board.lay(pile)
    rug = bright(rng, 0.35, 0.7)
    board.wash(HORIZON, ROWS, shaded(rug, 0.85), rug)
    board.grain(HORIZON, ROWS, 4.0, 3)
    pile = Pile(1)
    for y in (HORIZON + 8, HORIZON + 38):
        pile.polygon(_plank(0, y, COLUMNS, 1.6), 0.0, shaded(rug, 1.4))
    for x in _spots(rng, 12, 0.0):
        pile.disc(complex(x, HORIZON + 22), 3.0, shaded(rug, 1.25))
    board.lay(pile)
