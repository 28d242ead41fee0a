"""Casting of a film: its puppets, their size, furniture and script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jostle.core.random import rng_for
from jostle.datasets.puppets.figure import bright, look_of, shaded
from jostle.datasets.puppets.parameters import Difficulty
from jostle.datasets.puppets.props import BALL, PROPS
from jostle.datasets.puppets.rig import EMPTY, SEAT_Y, Rest
from jostle.datasets.puppets.script import GONE, RATE, ROAM, Planner, Prop, PuppetPart, styled
from jostle.datasets.puppets.shapes import Colour, Pile

LENGTH_S = (40.0, 90.0)
TRIMMED_S = (1.2, 5.0)  # of the action in a trimmed clip
FLOOR = 121.0  # where the main puppet stands, in world rows


@dataclass(frozen=True)
class FilmStage:
    """Everything a film consists of before it moves. The main puppet's part is the first."""

    parts: tuple[PuppetPart, ...]
    props: tuple[Prop, ...]
    prop_colours: tuple[Colour, ...]
    stool: float | None  # where the main puppet's stool stands, if there is one; likewise the crate
    stool_colour: Colour
    chair: int  # the side of the stool's back: -1, 1, or 0 for none
    seat: float  # height of the seat, in legs
    crate: float | None
    crate_half: float
    crate_height: float
    crate_colour: Colour
    plants: tuple[tuple[float, float, Colour], ...]  # in front of the lens: place, size and colour

    def draw_foreground(self, pile: Pile) -> None:
        """Add the objects between the camera and the puppets."""
        for x, width, colour in self.plants:
            foot = complex(x, 140)
            for lean in (-1.6, 1.6, -1.1, 1.1, -0.5, 0.6, 0.0):
                tip = foot + width * complex(2.4 * lean, 1.6 * abs(lean) - 7.5)
                middle = foot + width * complex(1.5 * lean, -3.6)
                leaf = shaded(colour, 1.15 - 0.2 * abs(lean))
                pile.capsule(foot, middle, 0.5 * width, 0.85 * width, leaf)
                pile.capsule(middle, tip, 0.85 * width, 0.15 * width, leaf)


def stage_for_film(seed: int, name: str, cast: Sequence[int], difficulty: Difficulty) -> tuple[FilmStage, int]:
    """Create a film of 40 to 90 s: the stage with its scripts, and the number of frames."""
    rng = rng_for(seed, name, "stage")
    frames = round(rng.uniform(*LENGTH_S) * RATE)
    count = 1 + int(rng.random() < difficulty.others)
    count += int(count == 2 and rng.random() < difficulty.others / 2)
    order = rng.permutation(len(cast))[:count]
    parts = [_part(rng, seed, cast[int(member)], difficulty, main=k == 0) for k, member in enumerate(order)]
    props: list[Prop] = []
    rests = []
    for owner in range(len(parts)):
        rests.append(_give_props(rng, props, owner, difficulty, rich=owner == 0))
    stage = _furnished(rng, parts, props, difficulty, rng.random() < 0.75, rng.random() < 0.75)
    if stage.stool is not None and rng.random() < 0.2:
        rests[0] = replace(rests[0], seated=True)
    if rests[0].prop != EMPTY and rng.random() < 0.25:
        rests[0] = replace(rests[0], raised=True)
    played: list[PuppetPart] = []
    for owner, part in enumerate(parts):
        main = owner == 0
        acts = main or rng.random() < difficulty.others_act
        planner = Planner(
            rng_for(seed, name, "script", owner), difficulty, part, owner, props, stage.stool if main else None,
            stage.crate if main else None, stage.crate_half, rests[owner], played,
        )  # fmt: skip
        events = planner.plan(frames, acts=acts)
        played.append(replace(part, events=events))
    return replace(stage, parts=tuple(played)), frames


def stage_for_action(seed: int, name: str, label: str, puppet: int, difficulty: Difficulty) -> tuple[FilmStage, int]:
    """Create a trimmed clip: one action of one puppet, and the number of frames."""
    rng = rng_for(seed, name, "stage")
    parts = [_part(rng, seed, puppet, difficulty, main=True)]
    props: list[Prop] = []
    _give_props(rng, props, 0, difficulty, rich=False)
    holds = label in ("put_down", "throw", "raise", "lower") or (
        label not in ("pick_up", "catch", "push", "pull") and rng.random() < 0.3
    )
    kind = BALL if label in ("throw", "catch") else _kind(rng)
    props.append(Prop(kind, 0, GONE if holds or label == "catch" else float(rng.uniform(*ROAM))))
    rest = Rest(label == "stand_up", len(props) - 1 if holds else EMPTY, label == "lower")
    stool, crate = label in ("sit_down", "stand_up"), label in ("push", "pull")
    stage = _furnished(rng, parts, props, difficulty, stool or rng.random() < 0.4, crate or rng.random() < 0.4)
    seconds = float(np.clip(np.exp(rng.normal(np.log(2.6), 0.45)), *TRIMMED_S))
    style = styled(rng, difficulty, label, seconds)
    if rest.prop != EMPTY:
        style = replace(style, arm=1 - parts[0].hand)
    before, behind = (round(rng.uniform(0.15, 0.5) * RATE) for _ in range(2))
    planner = Planner(
        rng_for(seed, name, "script", 0), difficulty, parts[0], 0, props, stage.stool, stage.crate, stage.crate_half,
        rest, (),
    )  # fmt: skip
    events = planner.only(label, style, before, behind)
    return replace(stage, parts=(replace(parts[0], events=events),)), events[-1].stop


def _part(rng: np.random.Generator, seed: int, puppet: int, difficulty: Difficulty, *, main: bool) -> PuppetPart:
    height = rng.uniform(*difficulty.size)
    floor = FLOOR + rng.uniform(-2.0, 2.0)
    if not main:
        depth = -rng.uniform(5.0, 12.0) if rng.random() < 0.75 else rng.uniform(4.0, 8.0)
        floor += depth
        height *= 1.0 + 0.012 * depth
    return PuppetPart(puppet, look_of(seed, puppet), float(height), float(floor), int(rng.integers(2)), ())


def _kind(rng: np.random.Generator) -> str:
    kinds = sorted(PROPS)
    return BALL if rng.random() < 0.25 else kinds[int(rng.integers(len(kinds)))]


def _give_props(rng: np.random.Generator, props: list[Prop], owner: int, difficulty: Difficulty, *, rich: bool) -> Rest:
    """Give a puppet its props, and return what it holds at first."""
    rest = Rest()
    if rng.random() < 0.55:
        rest = Rest(prop=len(props))
        props.append(Prop(_kind(rng), owner, GONE))
    if rng.random() < (0.7 if rich else 0.3):
        props.append(Prop(BALL, owner, GONE))
    for _ in range(2):
        if rng.random() < difficulty.clutter * (0.75 if rich else 0.4):
            props.append(Prop(_kind(rng), owner, float(rng.uniform(*ROAM))))
    return rest


def _furnished(
    rng: np.random.Generator,
    parts: list[PuppetPart],
    props: list[Prop],
    difficulty: Difficulty,
    stool: bool,
    crate: bool,
) -> FilmStage:
    main = parts[0]
    low, high = ROAM
    plants = []
    for _ in range(2):
        if rng.random() < 0.35 * difficulty.clutter:
            green = shaded((58, 120, 72), float(rng.uniform(0.6, 1.1)))
            plants.append((float(rng.uniform(low - 20, high + 20)), float(rng.uniform(2.5, 5.0)), green))
    side = 1 if rng.random() < 0.5 else -1  # stool and crate do not stand in each other's way
    places = [float((low + high) / 2 + way * rng.uniform(0.15, 0.65) * (high - low) / 2) for way in (side, -side)]
    colours = []
    for prop in props:
        base = PROPS[prop.kind][0]
        mix = rng.uniform(0.0, 0.45)
        other = bright(rng)
        colours.append(tuple(round(a * (1 - mix) + b * mix) for a, b in zip(base, other, strict=True)))
    return FilmStage(
        parts=tuple(parts),
        props=tuple(props),
        prop_colours=tuple((r, g, b) for r, g, b in colours),
        stool=places[0] if stool else None,
        stool_colour=bright(rng, 0.4, 0.8),
        chair=int(rng.integers(-1, 2)),
        seat=SEAT_Y - 1.5 * main.look.girth * main.height / main.leg,
        crate=places[1] if crate else None,
        crate_half=float(rng.uniform(0.32, 0.46) * main.leg),
        crate_height=float(rng.uniform(1.0, 1.35) * main.leg),
        crate_colour=shaded((196, 150, 96), float(rng.uniform(0.7, 1.2))),
        plants=tuple(plants),
    )
