"""Scenery: distinct textures that tile seamlessly and move with the camera."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.datasets.puppets.parameters import Difficulty
from jostle.datasets.puppets.props import PROPS, draw_prop
from jostle.datasets.puppets.rasterize import render
from jostle.datasets.puppets.scene import Lens, lens_of
from jostle.datasets.puppets.scenery import COLUMNS, HORIZON, ROWS, texture_of
from jostle.datasets.puppets.shapes import Pile


@pytest.mark.parametrize("clutter", [0.0, 1.0])
def test_textures_differ_from_film_to_film(clutter: float) -> None:
    textures = [texture_of(0, f"place {number}", clutter) for number in range(12)]
    assert all(texture.shape == (ROWS, COLUMNS, 3) for texture in textures)
    assert len({texture.tobytes() for texture in textures}) == 12
    assert np.array_equal(textures[0], texture_of(0, "place 0", clutter))


def test_a_texture_repeats_without_a_seam() -> None:
    for number in range(12):
        texture = texture_of(0, f"place {number}", 0.7).astype(int)
        steps = np.abs(texture - np.roll(texture, 1, axis=1)).mean(axis=(0, 2))
        assert steps[0] <= steps.max() * 1.01 + 1


@pytest.mark.parametrize("zoom", [0.8, 1.0, 1.3])
def test_shapes_and_texture_share_one_world(zoom: float) -> None:
    texture = np.zeros((ROWS, COLUMNS, 3), np.uint8)
    texture[80, 140] = 255  # its middle is at (140.5, 80.5)
    centre, middle = np.array([131.3 + 77.8j]), 56 + 56j
    light = np.array([[256, 256, 256, 0]], np.int32)
    lens = Lens(centre, np.array([zoom]), np.zeros(1), light)
    out = np.zeros((1, 112, 112, 3), np.uint8)
    nothing = Pile(1).seen_by(centre, lens.zoom, middle)
    render(
        texture, lens.windows((112, 112)), HORIZON, nothing.kinds, nothing.colours, nothing.shapes, light, out
    )  # fmt: skip
    weight = out[0, :, :, 0].astype(float)
    rows, columns = np.mgrid[:112, :112] + 0.5
    centroid = complex((columns * weight).sum(), (rows * weight).sum()) / weight.sum()
    expected = (140.5 + 80.5j - centre[0]) * zoom + middle
    assert abs(centroid - expected) < 0.35


def test_a_calm_camera_does_not_move_by_itself() -> None:
    still = lens_of(0, "film", Difficulty(camera=0.0, light=0.0), np.full(200, 128.0), 200)
    assert np.ptp(still.centre.real) < 1e-9
    assert np.ptp(still.zoom) == 0
    assert (still.light == [256, 256, 256, 0]).all()
    lively = lens_of(0, "film", Difficulty(), np.full(200, 128.0), 200)
    assert np.ptp(lively.centre.real) > 1


@pytest.mark.parametrize("kind", sorted(PROPS))
def test_every_prop_has_a_shape_that_stands_on_the_floor(kind: str) -> None:
    pile = Pile(1)
    draw_prop(pile, kind, PROPS[kind][0], np.array([20 - 1j * PROPS[kind][1]]), np.zeros(1), 1.0)
    assert len(pile) >= 2
    drawing = pile.seen_by(np.zeros(1, complex), np.ones(1), 0j)
    assert abs(lowest(drawing.kinds, drawing.shapes[0] / 256)) < 1.6


def lowest(kinds: np.ndarray, shapes: np.ndarray) -> float:
    rows = []
    for (kind, corners), shape in zip(kinds, shapes, strict=True):
        if kind == 0:
            rows += [shape[1] + shape[2], shape[4] + shape[5]]
        elif kind == 1:
            rows.append(shape[1 : 2 * corners : 2].max() + shape[12])
    return float(max(rows))
