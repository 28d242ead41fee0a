"""The sixteen actions as curves of pose over time.

Five pairs differ only in the arrow of time: the second of a pair is the first one's curve run backwards, number for
number, so no single frame distinguishes them. Others begin alike (wave and salute, sit down, squat and jump, bow and
pick up) and part only later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from jostle.datasets.puppets.rig import ARMS, EMPTY, FEET, SEAT_X, Joint, Pose, Rest, rest_pose
from jostle.datasets.puppets.shapes import Reals

REVERSED = {"stand_up": "sit_down", "pull": "push", "lower": "raise", "put_down": "pick_up", "catch": "throw"}
"""Which action each is when time runs backwards."""

GRASP = 0.5  # when a prop leaves or reaches the floor
REACH = 0.62  # a prop on the floor lies so far ahead, in legs
ARM_LENGTH = 0.86  # the box is so far ahead while it is pushed, in legs
STRIDE = 0.62  # of a walk, in legs
SWING_S = 0.5  # how long the arm takes to fling a ball


@dataclass(frozen=True)
class ActionStyle:
    """Style of one instance of an action."""

    seconds: float = 3.0
    amplitude: float = 1.0  # how far the limbs go; 1 is the full motion
    warp: float = 0.0  # hurried at first (positive) or at last (negative), from -1 to 1
    arm: int = 0  # which arm does it (0 near, 1 far), for actions of one arm
    lean: float = 0.0  # how far the body leans on top of what the action asks for, in radians
    cycles: int = 1  # how often a motion repeats
    travel: float = 1.0  # how far a box is pushed, in legs


Curve = Callable[[Reals, ActionStyle, Pose, Pose, int], Pose]
_CURVES: dict[str, Curve] = {}


def _curve(label: str) -> Callable[[Curve], Curve]:
    def put(function: Curve) -> Curve:
        _CURVES[label] = function
        return function

    return put


def pose_curve(label: str, phase: Reals, style: ActionStyle, rest: Rest, hand: int) -> Pose:
    """Return the poses (T, C) of an action from `rest`, at phases from 0 (leaves rest) to 1 (returns)."""
    if label in REVERSED:
        return pose_curve(REVERSED[label], 1.0 - phase, style, before(REVERSED[label], rest), hand)
    warped = phase + 0.8 * style.warp * np.sin(2 * np.pi * phase) / (2 * np.pi)
    start, end = rest_pose(rest, hand), rest_pose(after(label, rest, EMPTY + 1), hand)
    return _CURVES[label](warped, style, start, end, hand)


def release(label: str, style: ActionStyle) -> float:
    """Return the share of a throw (or catch) after which the ball is out of the hand (or in it)."""
    moment = _unwarped(_throw_phases(style)[2], style.warp)
    return 1.0 - moment if label in REVERSED else moment


def grasp(label: str, style: ActionStyle) -> float:
    """Return the share of picking up (or putting down) after which the prop is off (or on) the floor."""
    moment = _unwarped(GRASP, style.warp)
    return 1.0 - moment if label in REVERSED else moment


def after(label: str, rest: Rest, prop: int) -> Rest:
    """Return the state an action leads to; `prop` is the one that is then held, if any."""
    match label:
        case "sit_down" | "stand_up":
            return replace(rest, seated=label == "sit_down")
        case "pick_up" | "catch":
            return replace(rest, prop=prop)
        case "put_down" | "throw":
            return replace(rest, prop=EMPTY)
        case "raise" | "lower":
            return replace(rest, raised=label == "raise")
        case _:
            return rest


def before(label: str, rest: Rest) -> Rest:
    """Return the state from which an action leads to `rest`."""
    backwards = {one: other for pair in REVERSED.items() for one, other in (pair, pair[::-1])}
    return after(backwards.get(label, label), rest, EMPTY + 1)


def smooth(phase: Reals, start: float, end: float) -> Reals:
    """Return a smooth step: 0 up to `start`, 1 from `end` on."""
    x = np.clip((phase - start) / (end - start), 0.0, 1.0)
    return x * x * x * (x * (x * 6.0 - 15.0) + 10.0)


def _unwarped(phase: float, warp: float) -> float:
    """Return the time at which a warped phase is reached, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if middle + 0.8 * warp * np.sin(2 * np.pi * middle) / (2 * np.pi) < phase:
            low = middle
        else:
            high = middle
    return low


def _blend(start: Pose, end: Pose, share: Reals) -> Pose:
    return start + (end - start) * share[:, None]


def _towards(pose: Pose, joint: Joint, target: float, share: Reals) -> None:
    pose[:, joint] += (target - pose[:, joint]) * share


def gait(pose: Pose, travelled: Reals, share: Reals, stride: float = STRIDE, arms: tuple[int, ...] = (0, 1)) -> None:
    """Add steps to poses: feet that stand still while the body passes over them, arms that swing against them."""
    for side, (foot_x, foot_y) in enumerate(FEET):
        turn = travelled / (2 * stride) + 0.5 * side
        part = turn - np.floor(turn)
        stands = part < 0.6
        ahead = np.where(stands, 0.5 - part / 0.6, -0.5 + (part - 0.6) / 0.4) * 1.2 * stride
        lift = np.where(stands, 0.0, np.sin(np.pi * (part - 0.6) / 0.4)) * 0.14
        pose[:, foot_x] += (ahead - pose[:, foot_x]) * share
        pose[:, foot_y] += lift * share
        if side in arms:
            pose[:, ARMS[side][0]] -= 0.55 * np.cos(2 * np.pi * (turn - 0.05)) * share
            pose[:, ARMS[side][1]] += 0.2 * share
    pose[:, Joint.HIP_Y] -= (0.05 + 0.02 * np.cos(2 * np.pi * travelled / stride)) * share


@_curve("sit_down")
def _sit_down(u: Reals, style: ActionStyle, start: Pose, end: Pose, hand: int) -> Pose:
    pose = _blend(start, end, smooth(u, 0.1, 0.95))
    bend = np.sin(np.pi * smooth(u, 0.0, 1.0))
    pose[:, Joint.LEAN] += (0.55 * style.amplitude + style.lean) * bend
    for arm, _ in ARMS:
        pose[:, arm] += 0.55 * style.amplitude * bend
    pose[:, Joint.HIP_X] += 0.1 * SEAT_X * bend
    return pose


@_curve("squat")
def _squat(u: Reals, style: ActionStyle, start: Pose, end: Pose, hand: int) -> Pose:
    pose = _blend(start, end, u)
    down = 0.5 - 0.5 * np.cos(2 * np.pi * style.cycles * u)
    _crouch(pose, down, style)
    for arm, elbow in ARMS:
        _towards(pose, arm, 1.35, down * min(style.amplitude, 1.0))
        _towards(pose, elbow, 0.15, down * 0.8)
    return pose


def _crouch(pose: Pose, down: Reals, style: ActionStyle) -> None:
    pose[:, Joint.HIP_Y] -= 0.46 * style.amplitude * down
    pose[:, Joint.HIP_X] -= 0.17 * style.amplitude * down
    pose[:, Joint.LEAN] += (0.42 * style.amplitude + style.lean) * down


@_curve("jump")
def _jump(u: Reals, style: ActionStyle, start: Pose, end: Pose, hand: int) -> Pose:
    pose = _blend(start, end, u)
    turn = u * style.cycles
    part = np.where(u >= 1.0, 1.0, turn - np.floor(turn))
    crouch = smooth(part, 0.0, 0.34) * (1 - smooth(part, 0.36, 0.5))
    crouch += 0.55 * smooth(part, 0.74, 0.84) * (1 - smooth(part, 0.84, 1.0))
    _crouch(pose, crouch, replace(style, amplitude=0.85 * style.amplitude))
    flight = np.clip((part - 0.46) / 0.3, 0.0, 1.0)
    height = 4 * flight * (1 - flight) * (0.22 + 0.26 * style.amplitude)
    pose[:, Joint.HIP_Y] += height
    for _, foot_y in FEET:
        pose[:, foot_y] += 0.85 * height
    swing = smooth(part, 0.2, 0.6) * (1 - smooth(part, 0.64, 1.0))
    for arm, elbow in ARMS:
        pose[:, arm] -= 0.6 * style.amplitude * smooth(part, 0.0, 0.24) * (1 - smooth(part, 0.22, 0.46))
        _towards(pose, arm, 2.2, swing * min(style.amplitude, 1.0) * 0.9)
        _towards(pose, elbow, 0.3, swing)
    return pose


@_curve("bow")
def _bow(u: Reals, style: ActionStyle, start: Pose, end: Pose, hand: int) -> Pose:
    pose = _blend(start, end, u)
    down = smooth(u, 0.0, 0.4) * (1 - smooth(u, 0.6, 1.0))
    pose[:, Joint.LEAN] += (1.15 * style.amplitude + style.lean) * down
    pose[:, Joint.HEAD] += 0.3 * down
    pose[:, Joint.HIP_X] -= 0.13 * down
    return pose


@_curve("pick_up")
def _pick_up(u: Reals, style: ActionStyle, start: Pose, end: Pose, hand: int) -> Pose:
    pose = _blend(start, end, smooth(u, GRASP, 1.0))
    down = smooth(u, 0.0, 0.42) * (1 - smooth(u, 0.58, 1.0))
    pose[:, Joint.LEAN] += (1.2 + style.lean) * down
    pose[:, Joint.HEAD] += 0.2 * down
    pose[:, Joint.HIP_X] -= 0.18 * down
    pose[:, Joint.HIP_Y] -= (0.52 - 0.3 * style.amplitude) * down
    arm, elbow = ARMS[hand]
    _towards(pose, arm, 0.25, down)
    _towards(pose, elbow, 0.1, down)
    return pose


@_curve("raise")
def _raise(u: Reals, style: ActionStyle, start: Pose, end: Pose, hand: int) -> Pose:
    pose = _blend(start, end, smooth(u, 0.25, 0.95))
    lift = smooth(u, 0.0, 0.3) * (1 - smooth(u, 0.35, 0.9))
    for arm, elbow in ARMS:
        _towards(pose, arm, 0.55, lift)
        _towards(pose, elbow, 1.2, lift)
    pose[:, Joint.BOTH] = smooth(u, 0.05, 0.4)
    dip = np.sin(np.pi * smooth(u, 0.0, 1.0))
    pose[:, Joint.HIP_Y] -= 0.06 * style.amplitude * dip
    pose[:, Joint.LEAN] += (0.05 - 0.12 * style.amplitude + style.lean) * dip
    return pose


def _throw_phases(style: ActionStyle) -> tuple[float, float, float, float]:
    """Return the phases of a throw: drawn back, start of the swing, release, and follow-through."""
    swing = min(0.3, SWING_S / style.seconds)
    go = 0.72 - swing
    return 0.6 * go, go, go + 0.6 * swing, go + 1.2 * swing


@_curve("throw")
def _throw(u: Reals, style: ActionStyle, start: Pose, end: Pose, hand: int) -> Pose:
    back, go, _, through = _throw_phases(style)
    drawn = smooth(u, 0.0, back)
    flung = smooth(u, go, through)
    home = smooth(u, through, 1.0)
    pose = _blend(start, end, home)
    arm, elbow = ARMS[hand]
    size = style.amplitude
    _towards(pose, arm, 2.2 + 0.9 * size, drawn * (1 - home))
    _towards(pose, elbow, 1.2, drawn * (1 - flung))
    pose[:, arm] -= (0.9 + 1.1 * size) * flung * (1 - home)
    _towards(pose, elbow, 0.15, flung * (1 - home))
    pose[:, ARMS[1 - hand][0]] += 1.1 * size * drawn * (1 - flung)
    pose[:, Joint.LEAN] += (-0.22 * size * drawn * (1 - flung) + (0.34 * size + style.lean) * flung) * (1 - home)
    pose[:, Joint.HIP_X] += (-0.1 * drawn + 0.22 * flung) * size * (1 - home)
    pose[:, Joint.FAR_FOOT_X] += 0.34 * size * smooth(u, back, go) * (1 - home)
    pose[:, Joint.FAR_FOOT_Y] += 0.1 * size * np.sin(np.pi * smooth(u, back, go))
    return pose


@_curve("push")
def _push(u: Reals, style: ActionStyle, start: Pose, end: Pose, hand: int) -> Pose:
    pose = _blend(start, end, u)
    hold = smooth(u, 0.0, 0.2) * (1 - smooth(u, 0.8, 1.0))
    way = style.travel * smooth(u, 0.14, 0.86)
    for arm, elbow in ARMS:
        _towards(pose, arm, 1.2, hold)
        _towards(pose, elbow, 0.25, hold)
    pose[:, Joint.LEAN] += (0.34 * style.amplitude + style.lean) * hold
    pose[:, Joint.HIP_X] -= 0.05 * hold
    pose[:, Joint.HIP_Y] -= 0.07 * style.amplitude * hold
    gait(pose, way, smooth(u, 0.1, 0.2) * (1 - smooth(u, 0.8, 0.9)), 0.7 * STRIDE, arms=())
    pose[:, Joint.TRAVEL] += way
    return pose


def _arm_up(u: Reals) -> Reals:
    return smooth(u, 0.0, 0.24) * (1 - smooth(u, 0.76, 1.0))


@_curve("wave")
def _wave(u: Reals, style: ActionStyle, start: Pose, end: Pose, hand: int) -> Pose:
    pose = _blend(start, end, u)
    up = _arm_up(u)
    swing = np.sin(2 * np.pi * style.cycles * np.clip((u - 0.15) / 0.7, 0.0, 1.0))
    arm, elbow = ARMS[style.arm]
    _towards(pose, arm, 2.05 + 0.2 * style.amplitude, up)
    _towards(pose, elbow, 0.75, up)
    pose[:, elbow] += 0.65 * style.amplitude * swing * up
    pose[:, arm] += 0.15 * style.amplitude * swing * up
    pose[:, Joint.LEAN] += style.lean * up
    return pose


@_curve("salute")
def _salute(u: Reals, style: ActionStyle, start: Pose, end: Pose, hand: int) -> Pose:
    pose = _blend(start, end, u)
    up = _arm_up(u)
    arm, elbow = ARMS[style.arm]
    _towards(pose, arm, 1.45 + 0.25 * style.amplitude, up)
    _towards(pose, elbow, 0.75, up)
    pose[:, elbow] += 1.4 * smooth(u, 0.1, 0.26) * (1 - smooth(u, 0.74, 0.9))  # only now is it no wave
    pose[:, Joint.LEAN] += (style.lean - 0.06) * up
    return pose


@_curve("kick")
def _kick(u: Reals, style: ActionStyle, start: Pose, end: Pose, hand: int) -> Pose:
    pose = _blend(start, end, u)
    turn = u * style.cycles
    part = np.where(u >= 1.0, 1.0, turn - np.floor(turn))
    back = smooth(part, 0.0, 0.3) * (1 - smooth(part, 0.36, 0.5))
    out = smooth(part, 0.36, 0.55) * (1 - smooth(part, 0.62, 1.0))
    foot_x, foot_y = FEET[style.arm]
    size = style.amplitude
    pose[:, foot_x] += -0.42 * size * back + (0.35 + 0.4 * size) * out
    pose[:, foot_y] += 0.22 * size * back + (0.1 + 0.42 * size) * out
    pose[:, Joint.LEAN] += (0.14 * back - 0.24 * out) * size + style.lean * (back + out)
    for side, (arm, _) in enumerate(ARMS):
        pose[:, arm] += (0.5 if side == style.arm else -0.4) * size * (back - out)
    return pose


CLASSES: tuple[str, ...] = tuple(sorted([*_CURVES, *REVERSED]))

APPROACH = {"sit_down": 0.95, "stand_up": 0.9, "raise": 0.9, "lower": 0.85, "pick_up": 0.46, "put_down": 0.46,
            "throw": 0.5, "catch": 0.4, "push": 0.2, "pull": 0.2, "wave": 0.19, "kick": 0.3,
            "squat": 0.26, "jump": 0.2, "bow": 0.22, "salute": 0.15}  # fmt: skip
"""How far into each action a near-miss goes at most: short of what makes it that action."""
