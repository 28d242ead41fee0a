"""A puppet: the looks of each member of the cast, and its shapes: far limbs, then the body, then what is nearest."""

from __future__ import annotations

import colorsys
from collections.abc import Callable

import numpy as np

from jostle.core.random import rng_for
from jostle.datasets.puppets.rig import Appearance, Hair, Hat, Skeleton
from jostle.datasets.puppets.shapes import Colour, Pile, Points

HAIRS: tuple[Hair, ...] = ("short", "bun", "long", "bald", "curly")
HATS: tuple[Hat, ...] = ("none", "none", "none", "cap", "beanie", "top", "straw")

SKINS: tuple[Colour, ...] = (
    (250, 220, 196), (240, 200, 168), (226, 178, 140), (203, 150, 110), (172, 118, 82), (139, 90, 60), (104, 68, 48),
)  # fmt: skip
HAIR_COLOURS: tuple[Colour, ...] = (
    (38, 30, 30), (70, 46, 34), (112, 70, 40), (160, 104, 52), (214, 172, 96), (176, 74, 44), (150, 150, 156),
)  # fmt: skip


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


SHADOW: Colour = (18, 20, 34)
INK: Colour = (30, 24, 28)
FAR_SHADE = 0.8  # limbs behind the body are darker


def draw_figure(
    pile: Pile,
    body: Skeleton,
    look: Appearance,
    height: float,
    floor: Points,
    gaze: Points,
    between: Callable[[], None],
    behind: bool,
) -> None:
    """Add a puppet to the pile of shapes.

    Args:
        floor: the point on the floor below the hip, for the shadow.
        gaze: where the eye looks, as an offset in head radii.
        between: draws what the puppet holds, when it is that prop's turn.
        behind: the far hand holds it, so the body hides it.
    """
    lift = np.clip((floor.imag - body.hip.imag) / height, 0.0, 1.0)
    feet = np.maximum(body.ankles[0].imag, body.ankles[1].imag)
    off = np.clip((floor.imag - feet) / (0.25 * height), 0.0, 1.0)
    pile.glow(floor, (0.26 + 0.1 * (0.5 - lift)) * height, 0.05 * height, 0.62 - 0.3 * off, SHADOW)
    _arm(pile, body, look, height, 1, FAR_SHADE)
    if behind:
        between()
    _leg(pile, body, look, height, 1, FAR_SHADE)
    _leg(pile, body, look, height, 0, 1.0)
    _torso(pile, body, look, height)
    _head(pile, body, look, height, gaze)
    if not behind:
        between()
    _arm(pile, body, look, height, 0, 1.06)


def _arm(pile: Pile, body: Skeleton, look: Appearance, height: float, side: int, shade: float) -> None:
    thick = 0.86 * look.girth * height
    sleeve, skin = shaded(look.shirt, shade), shaded(look.skin, min(shade, 1.0))
    shoulder, elbow, hand = body.shoulders[side], body.elbows[side], body.hands[side]
    pile.capsule(elbow, hand, 0.85 * thick, 0.75 * thick, sleeve if look.sleeves else skin)
    pile.capsule(shoulder, elbow, 1.12 * thick, 0.92 * thick, sleeve)
    pile.disc(hand, 1.05 * thick, skin)


def _leg(pile: Pile, body: Skeleton, look: Appearance, height: float, side: int, shade: float) -> None:
    thick = look.girth * height
    cloth, skin = shaded(look.trousers, shade), shaded(look.skin, shade)
    hip, knee, ankle = body.hips[side], body.knees[side], body.ankles[side]
    bare = look.shorts or look.skirt
    heel = ankle - 0.8j * thick
    pile.capsule(knee, heel, 0.98 * thick, 0.8 * thick, skin if bare else cloth)
    pile.capsule(hip, knee, 1.3 * thick, 1.02 * thick, cloth)
    pile.capsule(heel + 0.3j * thick, body.toes[side] - 0.6j * thick, 0.95 * thick, 0.66 * thick,
                 shaded(look.shoes, shade))  # fmt: skip


def _torso(pile: Pile, body: Skeleton, look: Appearance, height: float) -> None:
    wide = 1.75 * look.girth * height
    chest = body.neck - 1.05 * wide * body.up
    if look.skirt:
        hem = 0.55 * (body.knees[0] + body.knees[1]) / 2 + 0.45 * body.hip
        pile.capsule(body.hip, hem, 1.05 * wide, 1.5 * wide, look.trousers)
    pile.capsule(body.neck, body.head, 0.62 * wide, 0.5 * wide, shaded(look.skin, 0.88))
    pile.capsule(body.hip, chest, 0.98 * wide, 1.16 * wide, look.shirt)
    if look.stripe is not None:
        belly = 0.45 * body.hip + 0.55 * chest
        side = 1j * body.up * 0.62 * wide
        pile.capsule(belly - side, belly + side, 0.36 * wide, 0.36 * wide, look.stripe)


def _head(pile: Pile, body: Skeleton, look: Appearance, height: float, gaze: Points) -> None:
    radius = look.head * height
    tilt = body.tilt
    front = body.facing * 1j * tilt  # ahead of the face, whichever way it looks
    centre = body.head

    def spot(ahead: float, above: float) -> Points:
        step: Points = centre + radius * (ahead * front + above * tilt)
        return step

    hair = look.hair_colour
    if look.hair == "long":
        pile.capsule(spot(-0.35, 0.1), spot(-0.6, -1.2), 0.85 * radius, 0.6 * radius, shaded(hair, 0.85))
    if look.hair == "bun":
        pile.disc(spot(-0.75, 0.85), 0.45 * radius, shaded(hair, 0.85))
    if look.hair == "curly":
        for ahead, above in ((-0.85, 0.0), (-0.65, 0.65), (0.0, 0.95), (0.6, 0.7)):
            pile.disc(spot(ahead, above), 0.48 * radius, hair)
    if look.hair != "bald":
        pile.disc(spot(-0.1, 0.1), 1.03 * radius, hair)
    pile.capsule(spot(0.12, 0.02), spot(0.12, -0.22), 0.9 * radius, 0.74 * radius, look.skin)
    if look.hair != "bald":
        pile.capsule(spot(-0.45, 0.62), spot(0.5, 0.68), 0.42 * radius, 0.28 * radius, hair)
    pile.disc(spot(-0.22, -0.08), 0.24 * radius, shaded(look.skin, 0.9))
    pile.disc(spot(0.98, -0.12), 0.17 * radius, shaded(look.skin, 0.94))
    pile.glow(spot(0.5, -0.36), 0.3 * radius, 0.24 * radius, 0.5, (232, 110, 100))
    eye = spot(0.52, 0.1) + radius * gaze
    pile.capsule(eye, eye + 0.12 * radius * tilt, 0.13 * radius, 0.13 * radius, INK)
    pile.capsule(spot(0.58, -0.55), spot(0.82, -0.47), 0.06 * radius, 0.06 * radius, shaded(look.skin, 0.5))
    _hat(pile, look, radius, spot)


def _hat(pile: Pile, look: Appearance, radius: float, spot: Callable[[float, float], Points]) -> None:
    colour, dark = look.hat_colour, shaded(look.hat_colour, 0.72)
    match look.hat:
        case "cap":
            pile.capsule(spot(-0.35, 0.72), spot(0.35, 0.72), 0.58 * radius, 0.5 * radius, colour)
            pile.capsule(spot(0.3, 0.45), spot(1.3, 0.4), 0.17 * radius, 0.13 * radius, dark)
        case "beanie":
            pile.capsule(spot(-0.2, 0.75), spot(0.12, 0.75), 0.72 * radius, 0.66 * radius, colour)
            pile.capsule(spot(-0.78, 0.5), spot(0.7, 0.5), 0.22 * radius, 0.22 * radius, dark)
            pile.disc(spot(-0.05, 1.55), 0.26 * radius, dark)
        case "top":
            pile.polygon([spot(-0.6, 0.7), spot(0.5, 0.7), spot(0.6, 1.75), spot(-0.7, 1.75)], 0.1 * radius, colour)
            pile.capsule(spot(-1.05, 0.62), spot(0.95, 0.62), 0.15 * radius, 0.15 * radius, dark)
        case "straw":
            pile.capsule(spot(-0.3, 0.85), spot(0.3, 0.85), 0.55 * radius, 0.5 * radius, (228, 196, 120))
            pile.capsule(spot(-1.25, 0.52), spot(1.25, 0.52), 0.18 * radius, 0.18 * radius, (206, 168, 92))
            pile.capsule(spot(-0.7, 0.72), spot(0.7, 0.72), 0.14 * radius, 0.14 * radius, colour)
        case _:
            pass
