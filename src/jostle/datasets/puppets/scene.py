"""Scene of a film: its camera and light, and all of its shapes in all of its frames, as the camera sees them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.core.random import rng_for
from jostle.datasets.puppets.casting import FilmStage
from jostle.datasets.puppets.figure import draw_figure
from jostle.datasets.puppets.motion import Motion, Track, act_out, crate_track, follow, wander
from jostle.datasets.puppets.parameters import Difficulty
from jostle.datasets.puppets.props import UNIT, draw_crate, draw_prop, draw_stool
from jostle.datasets.puppets.rasterize import Bytes, Ints
from jostle.datasets.puppets.rig import Joint
from jostle.datasets.puppets.scenery import texture_of
from jostle.datasets.puppets.shapes import Pile, Points, Reals, ShapeArrays

MIDDLE = complex(128.0, 78.0)  # of the stage, in world pixels
FOLLOWING_S = 1.6  # how slowly the camera follows the main puppet


@dataclass(frozen=True, eq=False)
class Lens:
    """Camera centre in every frame, its zoom, the drift of the wall, and the light (T, 4)."""

    centre: Points
    zoom: Reals
    drift: Reals
    light: Ints

    def windows(self, size: tuple[int, int]) -> Ints:
        """Return the backdrop's left edges of wall and floor, top edge (256ths), texels a pixel (65536ths)."""
        height, width = size
        step = np.rint(65536 / self.zoom)
        left = (self.centre.real * 256) - (width - 1) / 512 * step
        top = (self.centre.imag * 256) - (height - 1) / 512 * step
        rows = np.stack([left + 256 * self.drift, left, top, step], axis=1)
        rows[:, :3] -= 128  # a texel's colour is that of its middle
        windows: Ints = np.rint(rows).astype(np.int32)
        return windows


def lens_of(seed: int, name: str, difficulty: Difficulty, main: Reals, frames: int) -> Lens:
    """Create the camera and the light of a film; `main` is the position of the main puppet."""
    rng = rng_for(seed, name, "camera")
    size = difficulty.camera
    follows = rng.uniform(0.25, 0.85)
    span = round(FOLLOWING_S * 24)
    padded = np.pad(main, span, mode="edge")
    sums = np.cumsum(np.concatenate(([0.0], padded)))
    width = 2 * span + 1
    calm = (sums[width:] - sums[:-width]) / width
    shake = rng.uniform(0.0, 0.9) ** 2 * size
    x = (
        MIDDLE.real
        + follows * (calm - MIDDLE.real)
        + size * (5.0 * wander(rng, frames, 0.01, 0.08) + rng.uniform(-8.0, 8.0))
    )
    y = MIDDLE.imag + size * (2.0 * wander(rng, frames, 0.01, 0.08) + rng.uniform(-4.0, 4.0))
    x += shake * wander(rng, frames, 1.0, 4.0)
    y += shake * wander(rng, frames, 1.0, 4.0)
    zoom = np.exp(size * (0.045 * wander(rng, frames, 0.01, 0.07) + rng.uniform(-0.1, 0.12)))
    drift = -rng.uniform(0.05, 0.2) * (x - MIDDLE.real) + size * rng.uniform(-0.5, 0.5) * np.arange(frames) / 24
    rng = rng_for(seed, name, "light")
    size = difficulty.light
    glow = 1.0 + size * (rng.uniform(-0.22, 0.12) + 0.1 * wander(rng, frames, 0.01, 0.12))
    glow += size * rng.uniform(0.0, 0.03) * wander(rng, frames, 1.0, 5.0)
    tints = [
        glow * (1.0 + size * (rng.uniform(-0.08, 0.08) + 0.03 * wander(rng, frames, 0.01, 0.06))) for _ in range(3)
    ]
    slope = size * (rng.uniform(-0.25, 0.25) + 0.12 * wander(rng, frames, 0.01, 0.06))
    light = np.stack([*tints, slope], axis=1)
    light[:, :3] = np.clip(light[:, :3], 0.35, 1.5)
    return Lens(x + 1j * y, zoom, drift, np.rint(np.clip(light, -0.6, 1.5) * 256).astype(np.int32))


@dataclass(frozen=True, eq=False)
class FilmScene:
    """Input of the drawing kernels, and the stage it was made from."""

    texture: Bytes
    windows: Ints  # the part of the texture that each frame shows
    drawing: ShapeArrays
    lens: Lens
    motions: tuple[Motion, ...]
    tracks: tuple[Track, ...]
    owned: tuple[tuple[int, int], ...]  # for each prop, which shapes are its own, from and up to
    figures: tuple[tuple[int, int], ...]  # for each puppet, which shapes are its own and those of its props


def scene_of(
    seed: int, name: str, difficulty: Difficulty, stage: FilmStage, frames: int, size: tuple[int, int]
) -> FilmScene:
    """Compute the scene of a stage, always for the whole film: poses are cheap, and chunking cannot change a frame."""
    motions = tuple(
        act_out(part, frames, difficulty.fidget, rng_for(seed, name, "fidget", number))
        for number, part in enumerate(stage.parts)
    )
    tracks = tuple(
        follow(number, prop, stage.parts[prop.owner], motions[prop.owner], frames)
        for number, prop in enumerate(stage.props)
    )
    lens = lens_of(seed, name, difficulty, motions[0].body.hip.real, frames)
    pile = Pile(frames)
    owned: dict[int, tuple[int, int]] = {}
    figures: dict[int, tuple[int, int]] = {}
    for number in sorted(range(len(motions)), key=lambda number: stage.parts[number].floor):
        if number == 0:
            _add_furniture(pile, stage, motions[0])
        first = len(pile)
        _add_part(pile, stage, number, motions[number], tracks, owned)
        figures[number] = (first, len(pile))
    stage.draw_foreground(pile)
    return FilmScene(
        texture=texture_of(seed, name, difficulty.clutter),
        windows=lens.windows(size),
        drawing=pile.seen_by(lens.centre, lens.zoom, complex(size[1], size[0]) / 2),
        lens=lens,
        motions=motions,
        tracks=tracks,
        owned=tuple(owned[number] for number in range(len(tracks))),
        figures=tuple(figures[number] for number in range(len(motions))),
    )


def _add_furniture(pile: Pile, stage: FilmStage, motion: Motion) -> None:
    main = stage.parts[0]
    floor = 1j * (main.floor - 1.0)  # a little behind the puppet
    if stage.stool is not None:
        at: Points = np.full(pile.frames, stage.stool) + floor
        draw_stool(pile, at, stage.seat * main.leg, stage.chair, stage.stool_colour)
    if stage.crate is not None:
        at = crate_track(main, stage.crate, stage.crate_half, motion, pile.frames) + floor
        draw_crate(pile, at, 2 * stage.crate_half, stage.crate_height, stage.crate_colour)


def _add_part(
    pile: Pile,
    stage: FilmStage,
    number: int,
    motion: Motion,
    tracks: tuple[Track, ...],
    owned: dict[int, tuple[int, int]],
) -> None:
    part = stage.parts[number]

    def props() -> None:
        for index, prop in enumerate(stage.props):
            if prop.owner == number:
                first, track = len(pile), tracks[index]
                draw_prop(pile, prop.kind, stage.prop_colours[index], track.at, track.angle, UNIT * part.height)
                pile.hide(first, track.gone)
                owned[index] = (first, len(pile))

    gaze = 0.12 * motion.pose[:, Joint.GAZE] * motion.body.facing + 0j
    draw_figure(pile, motion.body, part.look, part.height, motion.floor, gaze, props, part.hand == 1)
