"""Rasterised shapes cover their geometric area, with identical bytes on every machine."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest

from jostle.datasets.puppets.rasterize import DEPTH, paint, render, visible
from jostle.datasets.puppets.shapes import Pile, ShapeArrays

RED = (200, 0, 0)
BLUE = (0, 0, 200)


def arrays_of(pile: Pile) -> ShapeArrays:
    return pile.seen_by(np.zeros(pile.frames, complex), np.ones(pile.frames), 0j)


def paint_pile(pile: Pile) -> np.ndarray:
    canvas = np.zeros((40, 40, 3), np.int32)
    drawing = arrays_of(pile)
    paint(canvas, drawing.kinds, drawing.colours, drawing.shapes[0])
    return canvas / DEPTH


CORNERS = [10.5 + 10j, 30.5 + 10j, 30.5 + 22j, 10.5 + 22j]


@pytest.mark.parametrize(
    ("shape", "arguments", "area"),
    [
        ("disc", (19.3 + 20.7j, 9.5), math.pi * 9.5**2),
        ("capsule", (10 + 10j, 10 + 25j, 4.0, 4.0), math.pi * 16 + 8 * 15),
        ("polygon", (CORNERS, 0.0), 20 * 12),
        ("polygon", (CORNERS[::-1], 0.0), 20 * 12),
    ],
)
def test_a_shape_covers_its_area(shape: str, arguments: tuple, area: float) -> None:
    pile = Pile(1)
    getattr(pile, shape)(*arguments, RED)
    assert paint_pile(pile)[..., 0].sum() / 200 == pytest.approx(area, rel=0.01)


def test_the_last_shape_is_on_top() -> None:
    pile = Pile(1)
    pile.disc(20 + 20j, 8.0, RED)
    pile.disc(20 + 20j, 4.0, BLUE)
    canvas = paint_pile(pile)
    assert canvas[20, 20].tolist() == [0, 0, 200]
    assert canvas[20, 26].tolist() == [200, 0, 0]


def test_a_hidden_shape_leaves_no_trace() -> None:
    pile = Pile(2)
    pile.disc(20 + 20j, 8.0, RED)
    pile.polygon([1 + 1j, 9 + 1j, 9 + 9j], 1.0, RED)
    pile.glow(20 + 20j, 8.0, 8.0, 1.0, RED)
    pile.hide(0, np.array([True, False]))
    drawing = arrays_of(pile)
    canvas = np.zeros((40, 40, 3), np.int32)
    paint(canvas, drawing.kinds, drawing.colours, drawing.shapes[0])
    assert not canvas.any()
    paint(canvas, drawing.kinds, drawing.colours, drawing.shapes[1])
    assert canvas.any()


def test_visible_area_excludes_hidden_parts() -> None:
    pile = Pile(2)
    pile.disc(20 + 20j, 8.0, RED)
    cover = np.array([100 + 20j, 20 + 20j])  # beside it, then right over it
    pile.disc(cover, 8.0, BLUE)
    drawing = arrays_of(pile)
    watched = np.array([[1, 0], [1, 0]], np.int32)
    area = np.zeros(2)
    visible(drawing.kinds, drawing.shapes, watched, 40, 40, area)
    assert area[0] == pytest.approx(math.pi * 64, rel=0.01)
    assert area[1] < 8


def test_the_camera_moves_texture_and_shapes_together() -> None:
    rng = np.random.default_rng(3)
    texture = rng.integers(0, 256, (40, 64, 3), np.uint8)
    pile = Pile(1)
    light = np.array([[256, 256, 256, 0]], np.int32)
    pictures = []
    for shift in (0, 5):
        drawing = pile.seen_by(np.array([complex(shift, 0)]), np.ones(1), 0j)
        camera = np.array([[shift * 256, shift * 256, 0, 65536]], np.int32)
        out = np.zeros((1, 30, 30, 3), np.uint8)
        render(texture, camera, 20, drawing.kinds, drawing.colours, drawing.shapes, light, out)
        pictures.append(out[0])
    assert np.array_equal(pictures[0], texture[:30, :30])
    assert np.array_equal(pictures[0][:, 5:], pictures[1][:, :-5])


def test_bytes_are_the_same_on_every_machine() -> None:
    pile = Pile(1)
    pile.capsule(7.1 + 9.3j, 31.7 + 22.2j, 3.3, 6.1, (211, 97, 53))
    pile.polygon([4.2 + 30.1j, 22.6 + 18.4j, 35.9 + 33.3j], 1.4, (31, 140, 205))
    pile.glow(20.2 + 15.9j, 14.0, 9.0, 0.6, (250, 240, 190))
    canvas = np.rint(paint_pile(pile) * DEPTH).astype("<i4")
    assert hashlib.sha256(canvas.tobytes()).hexdigest()[:16] == "ea24757c225fde4d"
