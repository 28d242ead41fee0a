"""Appearance of puppets: a body and clothes, drawn once for each member of the cast."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jostle.core.random import rng_for
from jostle.datasets.puppets.shapes import Colour

Hair = Literal["short", "bun", "long", "bald", "curly"]
Hat = Literal["none", "cap", "beanie", "top", "straw"]
HAIRS: tuple[Hair, ...] = ("short", "bun", "long", "bald", "curly")
HATS: tuple[Hat, ...] = ("none", "none", "none", "cap", "beanie", "top", "straw")

SKINS: tuple[Colour, ...] = (
    (250, 220, 196), (240, 200, 168), (226, 178, 140), (203, 150, 110), (172, 118, 82), (139, 90, 60), (104, 68, 48),
)  # fmt: skip
HAIR_COLOURS: tuple[Colour, ...] = (
    (38, 30, 30), (70, 46, 34), (112, 70, 40), (160, 104, 52), (214, 172, 96), (176, 74, 44), (150, 150, 156),
)  # fmt: skip


@dataclass(frozen=True)
class Appearance:
    """Appearance of one member of the cast. Lengths are shares of the whole height."""

    leg: float
    torso: float
    head: float
    arm: float
    girth: float
    skin: Colour
    hair_colour: Colour
    hair: Hair
    hat: Hat
    hat_colour: Colour
    shirt: Colour
    sleeves: bool
    trousers: Colour
    shorts: bool
    skirt: bool
    stripe: Colour | None
    shoes: Colour


def bright(rng: np.random.Generator, low: float = 0.45, high: float = 0.95) -> Colour:
    """Draw a colour of clothes: any hue, saturated enough to stand out from a wall."""
    red, green, blue = colorsys.hsv_to_rgb(rng.random(), rng.uniform(0.35, 0.9), rng.uniform(low, high))
    return round(red * 255), round(green * 255), round(blue * 255)


def shaded(colour: Colour, share: float) -> Colour:
    """Return the colour made darker (below 1) or paler (above 1)."""
    red, green, blue = (round(value * share if share <= 1 else 255 - (255 - value) * (2 - share)) for value in colour)
    return red, green, blue


def look_of(seed: int, puppet: int) -> Appearance:
    """Return the appearance of cast member `puppet`: the same in every film of a seed."""
    rng = rng_for(seed, "look", puppet)
    leg = rng.uniform(0.40, 0.48)
    head = rng.uniform(0.10, 0.135)
    return Appearance(
        leg=leg,
        torso=1.0 - leg - 2 * head - 0.03,
        head=head,
        arm=rng.uniform(0.36, 0.43),
        girth=rng.uniform(0.034, 0.052),
        skin=SKINS[rng.integers(len(SKINS))],
        hair_colour=HAIR_COLOURS[rng.integers(len(HAIR_COLOURS))],
        hair=HAIRS[rng.integers(len(HAIRS))],
        hat=HATS[rng.integers(len(HATS))],
        hat_colour=bright(rng),
        shirt=bright(rng),
        sleeves=bool(rng.random() < 0.55),
        trousers=bright(rng, 0.2, 0.7),
        shorts=bool(rng.random() < 0.25),
        skirt=bool(rng.random() < 0.25),
        stripe=bright(rng) if rng.random() < 0.4 else None,
        shoes=bright(rng, 0.15, 0.6),
    )
