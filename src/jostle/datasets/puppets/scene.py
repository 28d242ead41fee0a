"""Scene of a film: all of its shapes in all of its frames, as its camera sees them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.core.random import rng_for
from jostle.datasets.puppets.camera import Lens, lens_of
from jostle.datasets.puppets.casting import FilmStage
from jostle.datasets.puppets.difficulty import Difficulty
from jostle.datasets.puppets.figure import draw_figure
from jostle.datasets.puppets.motion import Motion, Track, act_out, crate_track, follow
from jostle.datasets.puppets.props import UNIT, draw_crate, draw_prop, draw_stool
from jostle.datasets.puppets.rasterize import Bytes, Ints
from jostle.datasets.puppets.rig import Joint
from jostle.datasets.puppets.scenery import texture_of
from jostle.datasets.puppets.shapes import Pile, Points, ShapeArrays


@dataclass(frozen=True, eq=False)
class FilmScene:
    """Input of the drawing kernels, and the stage it was made from.

    Attributes:
        windows: the part of the texture that each frame shows.
        owned: for each prop, which shapes are its own, from and up to.
        figures: for each puppet, which shapes are its own and those of its props.
    """

    texture: Bytes
    windows: Ints
    drawing: ShapeArrays
    lens: Lens
    motions: tuple[Motion, ...]
    tracks: tuple[Track, ...]
    owned: tuple[tuple[int, int], ...]
    figures: tuple[tuple[int, int], ...]


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
