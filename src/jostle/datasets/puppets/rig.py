"""Body and skeleton: lengths and looks, a pose in a few numbers, the joints it gives, and the poses of rest."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import numpy as np
import numpy.typing as npt

from jostle.datasets.puppets.shapes import Colour, Points, Reals

Hair = Literal["short", "bun", "long", "bald", "curly"]
Hat = Literal["none", "cap", "beanie", "top", "straw"]
Pose = npt.NDArray[np.float64]  # (C,) one pose, or (T, C)


class Joint(IntEnum):
    """The numbers of a pose, for a puppet that looks to the right.

    Lengths count in legs, angles in radians. An arm hangs at 0, points ahead at a quarter turn, and up at a half; the
    elbow bends the forearm on. `NEAR` is the side towards the viewer.
    """

    TRAVEL = 0
    HIP_X = 1
    HIP_Y = 2
    LEAN = 3
    HEAD = 4
    GAZE = 5
    NEAR_ARM = 6
    NEAR_ELBOW = 7
    FAR_ARM = 8
    FAR_ELBOW = 9
    NEAR_FOOT_X = 10
    NEAR_FOOT_Y = 11
    FAR_FOOT_X = 12
    FAR_FOOT_Y = 13
    BOTH = 14  # how far a held prop is between both hands rather than in one


JOINTS = len(Joint)
ARMS = ((Joint.NEAR_ARM, Joint.NEAR_ELBOW), (Joint.FAR_ARM, Joint.FAR_ELBOW))
FEET = ((Joint.NEAR_FOOT_X, Joint.NEAR_FOOT_Y), (Joint.FAR_FOOT_X, Joint.FAR_FOOT_Y))
STANCE = 0.11  # a foot's distance from the middle, in legs
STAND = 0.98  # hip height when standing: knees never quite straight


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


@dataclass(frozen=True, eq=False)
class Skeleton:
    """Joints in world pixels, for every frame; pairs are (near, far)."""

    hip: Points
    neck: Points
    head: Points
    shoulders: tuple[Points, Points]
    elbows: tuple[Points, Points]
    hands: tuple[Points, Points]
    hips: tuple[Points, Points]
    knees: tuple[Points, Points]
    ankles: tuple[Points, Points]
    toes: tuple[Points, Points]
    facing: Reals
    up: Points  # from the hip to the neck, length one
    tilt: Points  # from the neck to the crown, length one


def skeleton(pose: Pose, look: Appearance, height: float, place: Points, facing: Reals) -> Skeleton:
    """Compute the joints by forward kinematics over all frames at once.

    Args:
        pose: (T, C).
        height: of the whole puppet, in pixels.
        place: the point on the floor below the puppet at rest.
        facing: 1 to the right, -1 to the left; between them while it turns round.
    """
    leg, torso, arm, head = (share * height for share in (look.leg, look.torso, look.arm, look.head))
    depth = 0.035 * height

    def across(side: int) -> float:
        return -depth if side == 0 else depth

    def world(points: Points) -> Points:
        return place + facing * (points.real + leg * pose[:, Joint.TRAVEL]) + 1j * points.imag

    hip = leg * (pose[:, Joint.HIP_X] - 1j * pose[:, Joint.HIP_Y])
    up = _direction(np.pi - pose[:, Joint.LEAN])
    neck = hip + torso * up
    tilt = _direction(np.pi - pose[:, Joint.LEAN] - pose[:, Joint.HEAD])
    shoulders, elbows, hands, hips, knees, ankles, toes = [], [], [], [], [], [], []
    for side in (0, 1):
        shoulder = neck - 0.13 * torso * up + across(side)
        angle, bend = (pose[:, joint] for joint in ARMS[side])
        elbow = shoulder + 0.5 * arm * _direction(angle)
        shoulders.append(world(shoulder))
        elbows.append(world(elbow))
        hands.append(world(elbow + 0.5 * arm * _direction(angle + bend)))
        root = hip + 0.6 * across(side)
        foot_x, foot_y = (leg * pose[:, joint] for joint in FEET[side])
        knee, ankle = _leg(root, foot_x - 1j * foot_y, leg / 2)
        pitch = np.clip(foot_y / leg, 0.0, 0.6)
        hips.append(world(root))
        knees.append(world(knee))
        ankles.append(world(ankle))
        toes.append(world(ankle + 0.2 * leg * np.exp(-1j * pitch)))
    return Skeleton(
        hip=world(hip),
        neck=world(neck),
        head=world(neck + (0.02 * height + head) * tilt),
        shoulders=(shoulders[0], shoulders[1]),
        elbows=(elbows[0], elbows[1]),
        hands=(hands[0], hands[1]),
        hips=(hips[0], hips[1]),
        knees=(knees[0], knees[1]),
        ankles=(ankles[0], ankles[1]),
        toes=(toes[0], toes[1]),
        facing=facing,
        up=_mirrored(up, facing),
        tilt=_mirrored(tilt, facing),
    )


def _direction(angle: Reals) -> Points:
    """Return a unit step at an angle from straight down, towards the front."""
    return np.sin(angle) + 1j * np.cos(angle)


def _mirrored(way: Points, facing: Reals) -> Points:
    step: Points = facing * way.real + 1j * way.imag
    return step


def _leg(hip: Points, foot: Points, bone: float) -> tuple[Points, Points]:
    """Return the knee between hip and foot for two equal bones, bent forwards; a foot out of reach moves closer."""
    reach = foot - hip
    length = np.abs(reach)
    ankle = hip + reach * np.minimum(1.0, 1.999 * bone / np.maximum(length, 1e-9))
    reach = ankle - hip
    length = np.maximum(np.abs(reach), 1e-9)
    out = np.sqrt(np.maximum(bone**2 - (length / 2) ** 2, 0.0))
    return hip + reach / 2 - 1j * reach / length * out, ankle


SEAT_X, SEAT_Y = -0.36, 0.52  # the hip of a seated puppet, in legs
EMPTY = -1


@dataclass(frozen=True)
class Rest:
    """A state that lasts until an action ends it."""

    seated: bool = False  # on the stool
    prop: int = EMPTY  # which of the film's props it holds; -1 for none
    raised: bool = False  # holding it overhead with both arms


def rest_pose(rest: Rest, hand: int) -> Pose:
    """Return the pose of a state; `hand` (0 near, 1 far) is the one that holds."""
    pose = np.zeros(JOINTS)
    pose[Joint.HIP_Y] = STAND
    pose[Joint.NEAR_FOOT_X], pose[Joint.FAR_FOOT_X] = -STANCE, STANCE
    for arm, elbow in ARMS:
        pose[arm], pose[elbow] = 0.0, 0.25
    if rest.seated:
        pose[Joint.HIP_X], pose[Joint.HIP_Y] = SEAT_X, SEAT_Y
        pose[Joint.NEAR_FOOT_X], pose[Joint.FAR_FOOT_X] = 0.02, 0.16
        for arm, elbow in ARMS:
            pose[arm], pose[elbow] = 0.45, 0.55
    if rest.raised:
        pose[Joint.BOTH] = 1.0
        pose[Joint.HEAD] = -0.12
        for arm, elbow in ARMS:
            pose[arm], pose[elbow] = 2.85, 0.2
    elif rest.prop != EMPTY:
        arm, elbow = ARMS[hand]
        pose[arm], pose[elbow] = 0.3, 1.25
    return pose
