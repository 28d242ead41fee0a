"""Script of a film: for each puppet a gapless series of events, from its first frame to its last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from jostle.datasets.puppets.actions import APPROACH, ARM_LENGTH, REACH, ActionStyle, after
from jostle.datasets.puppets.parameters import Difficulty
from jostle.datasets.puppets.props import BALL
from jostle.datasets.puppets.rig import EMPTY, SEAT_X, Appearance, Rest

RATE = 24  # frames a second
MEDIAN_S, SPREAD = 3.3, 0.72  # of an action's length, log-normal as in THUMOS14
LENGTH_S = (1.0, 10.0)
GAP_S, GAP_SPREAD = 6.6, 0.75  # background between two actions of one puppet, log-normal
ROAM = (92.0, 164.0)  # where puppets walk, in world pixels
CLEARANCE = 0.4  # heights between two puppets that do not hide each other
UPSTAGED = 0.1  # chance that one acts all the same
GONE = -1000.0  # where a ball is that nobody has

Kind = Literal["idle", "walk", "act", "miss"]
Gesture = Literal["", "scratch", "look", "shift", "stretch", "fold"]
GESTURES: tuple[Gesture, ...] = ("", "", "scratch", "look", "shift", "stretch", "fold")

# Some things are done quickly, others go on: factors on the length, and seconds a cycle of a repeated motion takes.
TEMPO = {"throw": 0.75, "catch": 0.75, "kick": 0.7, "wave": 1.2, "squat": 1.2, "jump": 1.1, "push": 1.25, "pull": 1.25}
CYCLE_S = {"wave": 0.8, "squat": 2.4, "jump": 1.7, "kick": 2.2}

# How eagerly each is chosen where it can be done, so that all sixteen come out about equally often.
WEIGHTS = {"stand_up": 3.5, "sit_down": 2.4, "lower": 9.0, "raise": 1.5, "put_down": 2.3, "pick_up": 3.8,
           "throw": 7.0, "catch": 3.8, "push": 4.2, "pull": 4.8, "salute": 0.9, "wave": 1.1, "bow": 1.3,
           "jump": 1.1, "kick": 1.2}  # fmt: skip


@dataclass(frozen=True)
class Prop:
    """A thing of the film: what it is, whose, and where it lies at first (`GONE`: off-screen)."""

    kind: str
    owner: int
    x: float


@dataclass(frozen=True)
class Event:
    """Event of one puppet from frame `start` up to `stop`."""

    kind: Kind
    start: int
    stop: int
    rest: Rest  # the state it begins in
    x: float  # where the puppet stands; for a walk, where it starts
    end_x: float  # where it stands afterwards
    facing: int  # 1 to the right, -1 to the left
    label: str = ""  # of an action, or of the action that a near-miss begins
    style: ActionStyle = field(default_factory=ActionStyle)
    prop: int = EMPTY  # the film's number of the prop that comes to hand or leaves it, -1 for none
    reach: float = 0.0  # of a near-miss, how far into the action it goes
    peak: float = 0.5  # of a near-miss, the share of its time that goes by before it turns back
    gesture: Gesture = ""


@dataclass(frozen=True)
class PuppetPart:
    """Part of one puppet in a film."""

    puppet: int
    look: Appearance
    height: float  # in pixels
    floor: float  # the row of the world it stands on; nearer puppets stand lower
    hand: int  # which hand holds things, 0 near or 1 far
    events: tuple[Event, ...]

    @property
    def leg(self) -> float:
        """Length of the legs in pixels."""
        return self.look.leg * self.height

    def x_at(self, frame: int) -> float:
        """Return the approximate position of the puppet in a frame."""
        event = next(event for event in self.events if frame < event.stop)
        return event.x + (event.end_x - event.x) * (frame - event.start) / (event.stop - event.start)


class Planner:
    """Planner of one puppet's part, event by event, which tracks positions and props.

    Args:
        props: all props of the film, which others may own too.
        stool: where this puppet's stool stands, if it has one; likewise its crate.
        others: parts already written; this puppet seldom acts while one of them does or stands in the way.
    """

    def __init__(
        self, rng: np.random.Generator, difficulty: Difficulty, part: PuppetPart, owner: int, props: list[Prop],
        stool: float | None, crate: float | None, crate_half: float, rest: Rest, others: Sequence[PuppetPart],
    ) -> None:  # fmt: skip
        self.rng, self.difficulty, self.part, self.others = rng, difficulty, part, others
        self.lies = {number: prop.x for number, prop in enumerate(props) if prop.owner == owner}
        self.kinds = {number: props[number].kind for number in self.lies}
        self.stool, self.crate, self.crate_half = stool, crate, crate_half
        self.rest, self.now = rest, 0
        self.facing = 1 if rng.random() < 0.5 else -1
        self.x = rng.uniform(*ROAM)
        if rest.seated and stool is not None:
            self.x = stool - self.facing * SEAT_X * part.leg
        if rest.prop != EMPTY:
            self.lies[rest.prop] = GONE
        self.events: list[Event] = []

    def plan(self, frames: int, *, acts: bool) -> tuple[Event, ...]:
        """Fill `frames` with background and, if it `acts`, with actions now and then."""
        while self.now < frames:
            gap = float(np.exp(self.rng.normal(np.log(GAP_S), GAP_SPREAD)))
            if not self.events:
                gap *= self.rng.random()
            self._background(min(self.now + round(gap * RATE), frames), frames, acts)
            if acts and self.now < frames and not self._act(frames):
                self._idle(min(self.now + RATE, frames))
        return tuple(self.events)

    def only(self, label: str, style: ActionStyle, before: int, behind: int) -> tuple[Event, ...]:
        """Idle for `before` frames, do one action, idle for `behind` frames."""
        facing, x, prop = self._where(label, style)
        self.facing, self.x = facing, x
        self._idle(before)
        self._do(label, style, prop, "act")
        self._idle(self.now + behind)
        return tuple(self.events)

    # What can be done now

    def feasible(self) -> list[str]:
        """Return the actions that are possible in the present state."""
        if self.rest.raised:
            return ["lower"]
        holds = self.rest.prop != EMPTY
        can = ["wave", "salute", *(["raise"] if holds else [])]
        if self.rest.seated:
            return [*can, "stand_up"]
        can += ["squat", "jump", "bow", "kick"]
        if self.stool is not None:
            can.append("sit_down")
        if holds:
            can += ["put_down", *(["throw"] if self.kinds[self.rest.prop] == BALL else [])]
            return can
        if any(x != GONE for x in self.lies.values()):
            can.append("pick_up")
        if any(x == GONE and self.kinds[number] == BALL for number, x in self.lies.items()):
            can.append("catch")
        if self.crate is not None:
            can += ["push", "pull"]
        return can

    def _choose(self) -> str:
        can = self.feasible()
        weights = np.array([WEIGHTS.get(label, 1.0) for label in can])
        return can[int(self.rng.choice(len(can), p=weights / weights.sum()))]

    def _where(self, label: str, style: ActionStyle) -> tuple[int, float, int]:
        """Return the direction, position and prop for an action."""
        facing, x, prop, leg = self.facing, self.x, self.rest.prop, self.part.leg
        match label:
            case "sit_down" if self.stool is not None:
                facing = self.facing if self.rng.random() < 0.5 else -self.facing
                x = self.stool - facing * SEAT_X * leg
            case "pick_up":
                near = sorted((abs(at - x), number) for number, at in self.lies.items() if at != GONE)
                prop = near[0][1]
                facing = 1 if self.lies[prop] > x else -1
                x = self.lies[prop] - facing * REACH * leg
            case "catch":
                prop = next(n for n, at in self.lies.items() if at == GONE and self.kinds[n] == BALL)
            case "push" | "pull" if self.crate is not None:
                way = style.travel * leg
                room = {-1: self.crate - ROAM[0], 1: ROAM[1] - self.crate}
                fit = [side for side in room if room[side] > way] or [max(room, key=room.__getitem__)]
                side = fit[int(self.rng.integers(len(fit)))]
                facing = side if label == "push" else -side
                x = self.crate - facing * (ARM_LENGTH * leg + self.crate_half)
            case _:
                pass
        return facing, x, prop

    # Doing it

    def _background(self, until: int, frames: int, acts: bool) -> None:
        """Idle, walk and begin things without doing them, up to about `until`."""
        misses = self.difficulty.near_miss_rate * (1.0 if acts else 0.4)
        while self.now < until:
            left = (until - self.now) / RATE
            if left > 1.5 and self.rng.random() < 0.17 * misses and self._miss(frames):
                continue
            stays = self.rest.seated or self.rest.raised
            if left > 1.5 and not stays and self.rng.random() < 0.3:
                self._walk(float(self.rng.uniform(*ROAM)), frames)
                continue
            self._idle(min(self.now + round(self.rng.uniform(0.8, 3.5) * RATE), until))

    def _still(self, stop: int, kind: Kind) -> Event:
        """Create an event that begins now and leads nowhere else."""
        return Event(kind, self.now, stop, self.rest, self.x, self.x, self.facing)

    def _add(self, event: Event) -> None:
        self.events.append(event)
        self.now, self.x = event.stop, event.end_x

    def _idle(self, stop: int) -> None:
        if stop > self.now:
            fits = stop - self.now > 1.5 * RATE and not self.rest.raised
            gesture = GESTURES[self.rng.integers(len(GESTURES))] if fits else ""
            style = ActionStyle((stop - self.now) / RATE, arm=int(self.rng.integers(2)))
            if self.rest.prop != EMPTY:
                style = replace(style, arm=1 - self.part.hand)
            self._add(replace(self._still(stop, "idle"), gesture=gesture, style=style))

    def _walk(self, x: float, frames: int) -> None:
        if abs(x - self.x) < 2.0:
            return
        speed = self.rng.uniform(0.8, 1.5) * self.part.leg  # pixels a second
        self.facing = 1 if x > self.x else -1
        stop = self.now + max(round(abs(x - self.x) / speed * RATE), 8)
        if stop > frames:  # as far as the film goes
            x = self.x + (x - self.x) * (frames - self.now) / (stop - self.now)
            stop = frames
        self._add(replace(self._still(stop, "walk"), end_x=x))

    def _go(self, facing: int, x: float, frames: int) -> bool:
        """Walk to a position and turn; return False if the film ends on the way."""
        self._walk(x, frames)
        if facing != self.facing:
            self.facing = facing
            self._idle(min(self.now + round(self.rng.uniform(0.3, 0.9) * RATE), frames))
        return self.now < frames

    def _act(self, frames: int) -> bool:
        label = self._choose()
        style = styled(self.rng, self.difficulty, label)
        facing, x, prop = self._where(label, style)
        if not self._go(facing, x, frames):
            return True
        stop = self.now + round(style.seconds * RATE)
        if stop > frames - 4 or (self._upstaged(stop) and self.rng.random() > UPSTAGED):
            return False
        self._do(label, self._with_arm(style), prop, "act")
        return True

    def _upstaged(self, stop: int) -> bool:
        """Return whether another puppet acts before `stop`, or would hide this one."""
        for part in self.others:
            if any(event.kind == "act" and self.now < event.stop and stop > event.start for event in part.events):
                return True
            if abs(part.x_at((self.now + stop) // 2) - self.x) < CLEARANCE * self.part.height:
                return True
        return False

    def _miss(self, frames: int) -> bool:
        label = self._choose()
        style = styled(self.rng, self.difficulty, label)
        facing, x, prop = self._where(label, style)
        if not self._go(facing, x, frames):
            return True
        seconds = float(np.clip(style.seconds * self.rng.uniform(0.5, 1.0), 1.2, 6.0))
        if self.now + round(seconds * RATE) > frames - 2:
            return False
        self._do(label, replace(self._with_arm(style), seconds=seconds, cycles=1), prop, "miss")
        return True

    def _with_arm(self, style: ActionStyle) -> ActionStyle:
        return style if self.rest.prop == EMPTY else replace(style, arm=1 - self.part.hand)

    def _do(self, label: str, style: ActionStyle, prop: int, kind: Kind) -> None:
        event = self._still(self.now + round(style.seconds * RATE), kind)
        event = replace(event, label=label, style=style, prop=prop)
        if kind == "miss":
            low, high = self.difficulty.near_miss_reach
            reach, peak = float(self.rng.uniform(low, high)), float(self.rng.uniform(0.35, 0.65))
            self._add(replace(event, reach=reach * APPROACH[label], peak=peak))
            return
        way = self.facing * style.travel * self.part.leg * {"push": 1, "pull": -1}.get(label, 0)
        held = self.rest.prop
        self._add(replace(event, end_x=self.x + way))
        self.rest = after(label, self.rest, prop)
        if self.crate is not None:
            self.crate += way
        if label in ("pick_up", "catch"):
            self.lies[prop] = GONE
        elif label == "put_down":
            self.lies[held] = self.x + self.facing * REACH * self.part.leg


def styled(rng: np.random.Generator, difficulty: Difficulty, label: str, seconds: float | None = None) -> ActionStyle:
    """Draw the style of an instance: its length is log-normal, the rest spreads with the difficulty's style."""
    spread = difficulty.style
    if seconds is None:
        seconds = float(np.exp(rng.normal(np.log(MEDIAN_S * TEMPO.get(label, 1.0)), SPREAD)))
        seconds = float(np.clip(seconds, *LENGTH_S))
    cycle = CYCLE_S.get(label, seconds) * float(np.exp(rng.normal(0.0, 0.25 * spread)))
    return ActionStyle(
        seconds=round(seconds * RATE) / RATE,
        amplitude=float(1.0 - spread * rng.uniform(-0.15, 0.5)),
        warp=float(spread * rng.uniform(-0.9, 0.9)),
        arm=int(rng.integers(2)),
        lean=float(spread * rng.normal(0.0, 0.06)),
        cycles=max(1, round(seconds / cycle)),
        travel=float(np.clip(0.3 * seconds, 0.5, 1.6) * (1.0 + spread * rng.uniform(-0.3, 0.3))),
    )
