"""Motion of a film: each puppet's pose in every frame, and the positions of props."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jostle.datasets.puppets.actions import ARM_LENGTH, REACH, gait, grasp, pose_curve, release, smooth
from jostle.datasets.puppets.props import PROPS, UNIT
from jostle.datasets.puppets.rig import ARMS, EMPTY, JOINTS, Joint, Pose, Skeleton, rest_pose, skeleton
from jostle.datasets.puppets.script import GONE, RATE, Event, Prop, PuppetPart
from jostle.datasets.puppets.shapes import Points, Reals

TURN = 6  # frames to turn round
BALL_SPEED, GRAVITY = 130.0, 140.0  # pixels a second, and a second squared
FLIGHT_S = 1.3  # after so long a ball is out of sight


Mask = npt.NDArray[np.bool_]  # (T,)


@dataclass(frozen=True, eq=False)
class Track:
    """Position of a prop over time."""

    at: Points
    angle: Reals
    held: Mask  # frames in which it is in a hand
    gone: Mask  # frames in which it is not to be seen


@dataclass(frozen=True, eq=False)
class Motion:
    """Poses of a puppet's part over time."""

    pose: Pose
    body: Skeleton
    floor: Points


def act_out(part: PuppetPart, frames: int, fidget: float, rng: np.random.Generator) -> Motion:
    """Compute every pose of a part, with small involuntary movements added."""
    pose = np.zeros((frames, JOINTS))
    place = np.zeros(frames)
    facing = np.zeros(frames)
    for event in part.events:
        span = slice(event.start, event.stop)
        pose[span], place[span] = _poses(event, part)
        facing[span] = event.facing
    for a in (int(a) + 1 for a in np.flatnonzero(np.diff(facing))):
        step = facing[a]
        count = min(TURN, frames - a)
        facing[a : a + count] = step * np.linspace(-0.7, 1.0, TURN)[:count]
    pose += _fidgets(rng, frames, fidget)
    body = skeleton(pose, part.look, part.height, place + 1j * part.floor, facing)
    return Motion(pose, body, body.hip.real + 1j * part.floor)


def _phases(event: Event) -> Reals:
    """Return the phase of an event's action in each frame."""
    count = event.stop - event.start
    time = (np.arange(count) + 0.5) / count
    if event.kind == "miss":
        there = smooth(time, 0.0, event.peak) * (1 - smooth(time, event.peak, 1.0))
        return event.reach * there
    return time


def _poses(event: Event, part: PuppetPart) -> tuple[Pose, Reals]:
    """Return the poses of one event, and its position."""
    count = event.stop - event.start
    x = np.full(count, event.x)
    if event.kind in ("act", "miss"):
        pose = pose_curve(event.label, _phases(event), event.style, event.rest, part.hand)
        if event.kind == "miss":  # the crate does not budge
            pose[:, Joint.TRAVEL] = 0.0
        elif event.label == "pull":
            x = np.full(count, event.end_x)
        return pose, x
    pose = np.repeat(rest_pose(event.rest, part.hand)[None], count, axis=0)
    if event.kind == "walk":
        time = (np.arange(count) + 0.5) / count
        way = event.end_x - event.x
        free = (0, 1) if event.rest.prop == EMPTY else (1 - part.hand,)
        edge = min(0.5, 5 / count)
        gait(
            pose, np.abs(way) * time / part.leg, smooth(time, 0.0, edge) * (1 - smooth(time, 1 - edge, 1.0)), arms=free
        )
        return pose, event.x + way * time
    _gesture(pose, event)
    return pose, x


def _gesture(pose: Pose, event: Event) -> None:
    """Add an idle gesture to poses."""
    count = len(pose)
    time = (np.arange(count) + 0.5) / count
    on = smooth(time, 0.1, 0.35) * (1 - smooth(time, 0.65, 0.9))
    arm, elbow = ARMS[event.style.arm]

    def towards(joint: Joint, target: float) -> None:
        pose[:, joint] += (target - pose[:, joint]) * on

    match event.gesture:
        case "scratch":
            towards(arm, 1.9)
            towards(elbow, 2.0)
            pose[:, elbow] += 0.12 * on * np.sin(2 * np.pi * 3.0 * time * event.style.seconds)
        case "look":
            pose[:, Joint.GAZE] -= 1.2 * on
            pose[:, Joint.HEAD] -= 0.12 * on
        case "shift" if not event.rest.seated:
            pose[:, Joint.HIP_X] += 0.08 * on
            pose[:, Joint.HIP_Y] -= 0.03 * on
        case "stretch":
            pose[:, Joint.LEAN] -= 0.12 * on
            pose[:, arm] -= 0.5 * on
        case "fold" if event.rest.prop == EMPTY:
            for one, other in ARMS:
                towards(one, 0.35)
                towards(other, 1.7)
        case _:
            pass


def wander(rng: np.random.Generator, frames: int, slow: float, quick: float, waves: int = 4) -> Reals:
    """Return a smooth random walk around 0 with spread about 1, of waves between two frequencies in Hz."""
    time = np.arange(frames) / RATE
    rate = rng.uniform(slow, quick, waves)
    phase = rng.uniform(0.0, 2 * np.pi, waves)
    total: Reals = np.sin(2 * np.pi * rate * time[:, None] + phase).sum(axis=1) * np.sqrt(2.0 / waves)
    return total


def _fidgets(rng: np.random.Generator, frames: int, fidget: float) -> Pose:
    sway = np.zeros((frames, JOINTS))
    sizes = {Joint.LEAN: 0.025, Joint.HEAD: 0.06, Joint.GAZE: 0.35, Joint.HIP_X: 0.012, Joint.NEAR_ARM: 0.06,
             Joint.FAR_ARM: 0.06, Joint.NEAR_ELBOW: 0.08, Joint.FAR_ELBOW: 0.08}  # fmt: skip
    for joint, size in sizes.items():
        sway[:, joint] = fidget * size * wander(rng, frames, 0.08, 0.7)
    return sway


def follow(number: int, prop: Prop, part: PuppetPart, motion: Motion, frames: int) -> Track:
    """Return the track of a prop: on the floor, in a hand, between two hands, or in the air."""
    unit = UNIT * part.height
    below = PROPS[prop.kind][1] * unit
    hands = motion.body.hands
    both = motion.pose[:, Joint.BOTH]
    hand = hands[part.hand] * (1 - both / 2) + hands[1 - part.hand] * both / 2
    swing = motion.body.facing * np.clip(motion.pose[:, Joint.LEAN], -0.3, 0.9)
    at, angle = np.full(frames, complex(GONE, part.floor)), np.zeros(frames)
    held, gone = np.zeros(frames, bool), np.zeros(frames, bool)
    x = prop.x
    flights: list[tuple[Event, int]] = []
    for event in part.events:
        span = slice(event.start, event.stop)
        mine = event.kind == "act" and event.prop == number
        floor = complex(x, part.floor - below)
        if mine and event.label in ("pick_up", "put_down"):
            lies = event.x + event.facing * REACH * part.leg
            moment = grasp(event.label, event.style)
            time = _phases(event)
            share = smooth(time, moment - 0.06, moment + 0.06)
            if event.label == "put_down":
                share = 1 - share
            at[span] = complex(lies, part.floor - below) * (1 - share) + hand[span] * share
            angle[span] = swing[span] * share
            held[span] = share > 0.5
            x = lies if event.label == "put_down" else GONE
        elif mine and event.label in ("throw", "catch"):
            frame = event.start + round(release(event.label, event.style) * (event.stop - event.start))
            flights.append((event, min(max(frame, event.start), event.stop - 1)))
            at[span], held[span] = hand[span], True
            x = GONE
        elif event.rest.prop == number:
            at[span], angle[span], held[span] = hand[span], 0.5 * swing[span], True
        else:
            at[span] = floor
            gone[span] = x == GONE
    for event, frame in flights:
        _fly(event, frame, at, held, gone)
    return Track(at, angle, held, gone)


def _fly(event: Event, frame: int, at: Points, held: Mask, gone: Mask) -> None:
    """Move a ball out of the hand after `frame` or into it, along the same arc either way."""
    count = round(FLIGHT_S * RATE)
    away = np.arange(1, count + 1)
    frames = frame + away if event.label == "throw" else frame - away
    inside = (frames >= 0) & (frames < len(at))
    seconds = away / RATE
    arc = event.facing * BALL_SPEED * seconds + 1j * (0.5 * GRAVITY * seconds**2 - 0.35 * BALL_SPEED * seconds)
    at[frames[inside]] = at[frame] + arc[inside]
    gone[frames[inside]] = False
    span = slice(frame + 1, event.stop) if event.label == "throw" else slice(event.start, frame)
    held[frames[inside]] = False
    late = np.setdiff1d(np.arange(span.start, span.stop), frames[inside])
    gone[late], held[late] = True, False


def crate_track(part: PuppetPart, x: float, half: float, motion: Motion, frames: int) -> Reals:
    """Return the centre of the crate over time: it only moves while it is pushed or pulled."""
    track = np.full(frames, x)
    for event in part.events:
        if event.kind == "act" and event.label in ("push", "pull"):
            place = event.x if event.label == "push" else event.end_x
            reach = event.facing * (ARM_LENGTH * part.leg + half)
            way = event.facing * part.leg * motion.pose[event.start : event.stop, Joint.TRAVEL]
            track[event.start : event.stop] = place + way + reach
            x = event.end_x + reach
            track[event.stop :] = x
    return track
