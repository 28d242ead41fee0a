"""Films of the bundled data set, fully planned before a single frame is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jostle.core.random import key_for, rng_for
from jostle.datasets.puppets.actions import CLASSES
from jostle.datasets.puppets.casting import FilmStage, stage_for_action, stage_for_film
from jostle.datasets.puppets.parameters import VERSION, Difficulty
from jostle.datasets.puppets.rasterize import Bytes, outlines, render, visible
from jostle.datasets.puppets.scene import FilmScene, scene_of
from jostle.datasets.puppets.scenery import HORIZON
from jostle.errors import BadValue
from jostle.io.video.encode import Writer

__all__ = ["CLASSES", "FPS", "SIZE", "Action", "Difficulty", "Film", "Held", "trimmed", "untrimmed"]

FPS = Fraction(24)
SIZE = (112, 112)
PUPPET = "puppet"  # the name of a puppet among the things to be seen


@dataclass(frozen=True)
class Action:
    """One labelled action, in seconds; `puppet` is the cast member who performs it."""

    start: float
    end: float
    label: str
    puppet: int


@dataclass(frozen=True, eq=False)
class Held:
    """Prop that the main puppet holds in each frame ("" for none), and its number of visible pixels."""

    names: tuple[str, ...]
    area: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Things:
    """Visible objects in frames of a film: its puppets, and their props."""

    names: tuple[str, ...]  # of each thing, `puppet` or the kind of a prop
    area: npt.NDArray[np.int32]  # (T, K) pixels that show it
    box: npt.NDArray[np.int32]  # (T, K, 4) left, top, right and bottom of them, the last two one beyond


@dataclass(frozen=True)
class Film:
    """A planned film, whose frames are drawn on demand."""

    name: str
    actions: tuple[Action, ...]  # what is labelled, in order of time
    frames: int
    seed: int
    difficulty: Difficulty
    stage: FilmStage  # who is there, with which things, and what each does

    def draw(self, lo: int, hi: int) -> Bytes:
        """Draw frames `lo` to `hi` (exclusive) as (T, 112, 112, 3), with the same bytes for any chunking."""
        if not 0 <= lo <= hi <= self.frames:
            raise BadValue(f"{self.name}: frames {lo} to {hi} are not within its {self.frames}")
        out = np.empty((hi - lo, *SIZE, 3), np.uint8)
        scene = self.scene
        drawing = scene.drawing
        render(scene.texture, scene.windows[lo:hi], HORIZON, drawing.kinds, drawing.colours, drawing.shapes[lo:hi],
               scene.lens.light[lo:hi], out)  # fmt: skip
        return out

    def held(self) -> Held:
        """Return the prop that the main puppet holds, frame by frame, and its visible area."""
        scene = self.scene
        names = np.full(self.frames, "", dtype=object)
        watched = np.zeros((self.frames, len(scene.drawing.kinds)), np.int32)
        for prop, track, (first, last) in zip(self.stage.props, scene.tracks, scene.owned, strict=True):
            if prop.owner == 0:
                names[track.held] = prop.kind
                watched[track.held, first:last] = 1
        area = np.zeros(self.frames)
        visible(scene.drawing.kinds, scene.drawing.shapes, watched, *SIZE, area)
        return Held(tuple(names), area)

    def things(self, lo: int, hi: int) -> Things:
        """Return the visible objects of frames `lo` to `hi` (exclusive), and their boxes."""
        drawing = self.scene.drawing
        puppets, props = self.scene.figures, self.scene.owned
        owners = np.full(len(drawing.kinds), -1, np.int32)
        for number, (first, last) in enumerate((*puppets, *props)):  # a prop's shapes lie among its puppet's
            owners[first:last] = number
        outlines_of = np.empty((hi - lo, len(puppets) + len(props), 5), np.int32)
        outlines(drawing.kinds, drawing.shapes[lo:hi], owners, *SIZE, outlines_of)
        names = (*(PUPPET for _ in puppets), *(prop.kind for prop in self.stage.props))
        return Things(names, outlines_of[:, :, 0], outlines_of[:, :, 1:])

    @cached_property
    def scene(self) -> FilmScene:
        """The film as shapes in all frames; some megabytes, cached with the film."""
        return scene_of(self.seed, self.name, self.difficulty, self.stage, self.frames, SIZE)


def untrimmed(seed: int, name: str, *, cast: Sequence[int], difficulty: Difficulty | None = None) -> Film:
    """Plan a film of 40 to 90 s in which puppets of the cast act now and then.

    Args:
        name: of the film; with the seed it decides everything.
        cast: which puppets may appear; each number is one look.
    """
    difficulty = difficulty or Difficulty()
    if not cast:
        raise BadValue(f"{name}: an empty cast; give at least one puppet")
    stage, frames = stage_for_film(seed, name, cast, difficulty)
    return _film(seed, name, difficulty, stage, frames)


def trimmed(seed: int, name: str, *, label: str, puppet: int, difficulty: Difficulty | None = None) -> Film:
    """Plan a clip of 1.5 to 6 s: one action from rest to rest, with a short margin."""
    difficulty = difficulty or Difficulty()
    if label not in CLASSES:
        raise BadValue(f"no action is called {label!r}: one of {', '.join(CLASSES)}")
    stage, frames = stage_for_action(seed, name, label, puppet, difficulty)
    return _film(seed, name, difficulty, stage, frames)


def _film(seed: int, name: str, difficulty: Difficulty, stage: FilmStage, frames: int) -> Film:
    rng = rng_for(seed, name, "annotator")
    actions = []
    for part in stage.parts:
        for event in part.events:
            if event.kind == "act":
                off = rng.integers(-difficulty.jitter, difficulty.jitter + 1, 2)
                start, end = max(event.start + int(off[0]), 0), min(event.stop + int(off[1]), frames)
                actions.append(Action(start / 24, end / 24, event.label, part.puppet))
    actions.sort(key=lambda action: (action.start, action.end, action.label))
    return Film(name, tuple(actions), frames, seed, difficulty, stage)


QUALITY = 20.0  # no block is seen at this size
CODING = 3  # raise it when the same frames become other files, so that no cache holds a mixture
FRAMES_AT_ONCE = 120


def write_film(film: Film, path: Path) -> None:
    """Draw a film and write it; the file appears when it is complete."""
    with Writer(path, size=SIZE, fps=FPS, quality=QUALITY) as writer:
        for first in range(0, film.frames, FRAMES_AT_ONCE):
            for frame in film.draw(first, min(first + FRAMES_AT_ONCE, film.frames)):
                writer.write(frame)


class Keyed:
    """A recipe whose key covers its own data and the version of film generation."""

    @property
    def key(self) -> str:
        return f"{key_for(VERSION, repr(self), repr(Difficulty()), QUALITY, CODING):016x}"
