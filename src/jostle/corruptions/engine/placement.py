"""Placements: rules that select the frames to corrupt from annotations and a length.

The rounding rules of the two published benchmarks differ, and both are kept under their names (THUMOS14-C, Zeng et
al. 2024): `thumos14` takes an inclusive range that is never empty, `activitynet` a range that may be empty.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from jostle.core.random import rng_for
from jostle.core.registry import Registry
from jostle.core.types.clip import Times
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.context import Mask
from jostle.errors import BadValue, UnknownName

Rules = Literal["thumos14", "activitynet"]
Actions = npt.NDArray[np.float64]  # (N, 2) start and end as fractional frame positions


@dataclass(eq=False, slots=True)
class Timeline:
    """Number of frames of a clip and its actions, for placements.

    Attributes:
        frames: how many there are.
        actions: (N, 2) starts and ends in frame positions; None when the clip has no annotations.
    """

    frames: int
    actions: Actions | None
    seed: int = 0
    video_id: str = ""

    @classmethod
    def of(cls, pts: Times, fps: Fraction, segments: Segments | None, *, seed: int = 0, video_id: str = "") -> Timeline:
        """Create the timeline of a clip, converting seconds to frame positions by its timestamps."""
        if segments is None:
            return cls(len(pts), None, seed, video_id)
        ends = np.stack([segments.start, segments.end], axis=1)
        return cls(len(pts), frame_positions(ends, pts, fps), seed, video_id)

    def actions_or_whole(self) -> Actions:
        """Return the actions; a clip without annotations counts as one action."""
        return np.array([[0.0, self.frames]]) if self.actions is None else self.actions

    def rng(self, placement: str) -> np.random.Generator:
        return rng_for(self.seed, self.video_id, "placement", placement)


def frame_positions(seconds: npt.NDArray[np.float64], pts: Times, fps: Fraction) -> npt.NDArray[np.float64]:
    """Convert seconds to fractional frame positions: frame i lasts from position i to i + 1.

    At a constant rate this is `seconds * fps`, which is what the published frame lists were made with; at a variable
    rate it is read off the timestamps.
    """
    rate = fps.numerator / fps.denominator
    if len(pts) < 2:
        return np.asarray((seconds - (pts[0] if len(pts) else 0.0)) * rate, np.float64)
    even = pts[0] + np.arange(len(pts)) / rate
    if np.abs(pts - even).max() < 0.5 / rate:
        return np.asarray((seconds - pts[0]) * rate, np.float64)
    frame_ends = np.append(pts, pts[-1] + (pts[-1] - pts[-2]))
    inside = np.interp(seconds, frame_ends, np.arange(len(pts) + 1))
    beyond = len(pts) + (seconds - frame_ends[-1]) * rate
    return np.asarray(np.where(seconds > frame_ends[-1], beyond, inside), np.float64)


@dataclass(frozen=True)
class Placement:
    """A named rule from a timeline to a mask, written `kind` or `kind:argument`.

    >>> parse_placement("centre:5%").mask(Timeline(1000, np.array([[324.0, 402.0]]))).nonzero()[0].tolist()
    [361, 362, 363, 364, 365]
    """

    text: str
    rule: Callable[[Timeline], Mask]

    def mask(self, timeline: Timeline) -> Mask:
        """Return one boolean a frame: corrupted or not."""
        return self.rule(timeline)

    def __str__(self) -> str:
        return self.text


Maker = Callable[[str], Callable[[Timeline], Mask]]


@dataclass(frozen=True)
class PlacementKind:
    """Kind of placement, whose maker parses the argument after the colon."""

    name: str
    form: str
    maker: Maker

    @property
    def summary(self) -> str:
        return (self.maker.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")


placements: Registry[PlacementKind] = Registry("placement")


def placement(form: str) -> Callable[[Maker], Maker]:
    """Register the decorated maker under its name; `form` is an example of its syntax."""

    def register(maker: Maker) -> Maker:
        placements.add(maker.__name__, PlacementKind(maker.__name__, form, maker))
        return maker

    return register


def parse_placement(text: str | Placement) -> Placement:
    """Parse a placement from its text."""
    return text if isinstance(text, Placement) else _parse(text, placements.revision)


@lru_cache(64)
def _parse(text: str, revision: int) -> Placement:
    name, _, argument = text.partition(":")
    return Placement(text, placements[name].maker(argument))


@placement("everywhere")
def everywhere(argument: str) -> Callable[[Timeline], Mask]:
    """Every frame."""
    if argument:
        raise BadValue(f"placement 'everywhere' takes no argument, got {argument!r}")
    return lambda timeline: _every(timeline.frames)


@lru_cache(16)
def _every(frames: int) -> Mask:
    mask = np.ones(frames, np.bool_)
    mask.flags.writeable = False
    return mask


@placement("centre:5%")
def centre(argument: str) -> Callable[[Timeline], Mask]:
    """The central share of each action; `centre:5%@activitynet` rounds by ActivityNet's rule."""
    share, _, rules = argument.partition("@")
    percent = _percent(share, "centre:5%")
    rules = rules or "thumos14"
    if rules not in get_args(Rules):
        raise UnknownName("rounding rule", rules, get_args(Rules))
    span = _thumos14_centre if rules == "thumos14" else _activitynet_centre
    return lambda timeline: _spans(timeline, lambda s, e: span(s, e, percent, timeline.frames))


@placement("at:30%x5")
def at(argument: str) -> Callable[[Timeline], Mask]:
    """A number of frames around a point of each action, given in percent of its length."""
    point, _, count = argument.partition("x")
    percent = _percent(point, "at:30%x5")
    n = _count(count or "1", "at:30%x5")

    def span(start: float, end: float) -> tuple[int, int]:
        middle = start + (end - start) * percent / 100
        return int(middle - n / 2 + 0.5), int(middle + n / 2 - 1 + 0.5) + 1

    return lambda timeline: _spans(timeline, span)


@placement("frame:120")
def frame(argument: str) -> Callable[[Timeline], Mask]:
    """One frame, by its number from 0."""
    index = _count(argument, "frame:120", least=0)
    return lambda timeline: _explicit(timeline, index, index + 1)


@placement("frames:100-140")
def frames(argument: str) -> Callable[[Timeline], Mask]:
    """A stretch of frames, by number; the second is not part of it."""
    match = re.fullmatch(r"(\d+)-(\d+)", argument)
    if not match or int(match[1]) >= int(match[2]):
        raise BadValue(f"placement 'frames:{argument}' is not a stretch; write it as frames:100-140")
    first, stop = int(match[1]), int(match[2])
    return lambda timeline: _explicit(timeline, first, stop)


@placement("random:10")
def random(argument: str) -> Callable[[Timeline], Mask]:
    """A number of frames drawn from the actions."""
    return _draw_frames(argument, "random", inside=True)


@placement("background:1")
def background(argument: str) -> Callable[[Timeline], Mask]:
    """A number of frames drawn from outside the actions; needs annotations."""
    return _draw_frames(argument, "background", inside=False)


@placement("each:1")
def each(argument: str) -> Callable[[Timeline], Mask]:
    """A number of frames drawn from each action by itself."""
    n = _count(argument, "each:1")

    def rule(timeline: Timeline) -> Mask:
        mask = np.zeros(timeline.frames, np.bool_)
        for k, (start, end) in enumerate(timeline.actions_or_whole()):
            first, stop = max(int(start), 0), min(max(int(np.ceil(end)), int(start) + 1), timeline.frames)
            mask[first + timeline.rng(f"each {k}").permutation(max(stop - first, 0))[:n]] = True
        return mask

    return rule


@placement("pair")
def pair(argument: str) -> Callable[[Timeline], Mask]:
    """One frame of each pair of an action and the background beside it: what FrameDrop drops; `pair:x8` eight in a row.

    `pair` splits the video where actions start, as the paper describes it: an action and the background after it, the
    first with what comes before it. `pair:released` goes from the end of one action to the end of the next, as the
    released program does for I3D; `pair:released-videomae` starts a frame later, as it does for VideoMAE v2. Both
    leave the background after the last action alone.
    """
    way, _, count = argument.partition("x")
    n = _count(count or "1", "pair:x8")
    if way not in PAIRS:
        raise UnknownName("way to pair actions with background", way, [name for name in PAIRS if name])
    pairs = PAIRS[way]

    def rule(timeline: Timeline) -> Mask:
        mask = np.zeros(timeline.frames, np.bool_)
        actions = timeline.actions_or_whole()
        for k, (first, stop) in enumerate(pairs(actions[np.lexsort((actions[:, 1], actions[:, 0]))], timeline.frames)):
            first, stop = max(first, 0), min(stop, timeline.frames)
            if first < stop:
                start = timeline.rng(f"pair {k}").integers(first, max(stop - n, first) + 1 if n > 1 else stop)
                mask[start : min(start + n, stop)] = True
        return mask

    return rule


def _paper_pairs(actions: Actions, frames: int) -> list[tuple[int, int]]:
    cuts = [0, *(int(start) for start in actions[1:, 0]), frames]
    return list(itertools.pairwise(cuts)) if len(actions) else []


def _released_pairs(actions: Actions, late: int) -> list[tuple[int, int]]:
    ends = [0.0, *actions[:, 1]]
    pairs = []
    for k, (before, end) in enumerate(itertools.pairwise(ends)):
        if before + 1 <= end:
            pairs.append((int(before + late) if k else 1, int(end)))
    return pairs


# The released program counts its first frame as 1, and leaves out a pair that is shorter than a frame.
PAIRS: dict[str, Callable[[Actions, int], list[tuple[int, int]]]] = {
    "": _paper_pairs,
    "released": lambda actions, _: _released_pairs(actions, 0),
    "released-videomae": lambda actions, _: _released_pairs(actions, 1),
}


def _draw_frames(argument: str, name: str, *, inside: bool) -> Callable[[Timeline], Mask]:
    n = _count(argument, f"{name}:10")

    def rule(timeline: Timeline) -> Mask:
        if not inside and timeline.actions is None:
            raise BadValue("placement 'background' needs the actions of the video: pass segments, or --truth FILE")
        acting = _spans(timeline, lambda s, e: (int(np.floor(s)), int(np.ceil(e))))
        eligible = np.flatnonzero(acting if inside else ~acting)
        mask = np.zeros(timeline.frames, np.bool_)
        # Ranks rather than a sample of n: a larger n then selects a superset of the same frames.
        order = timeline.rng(name).permutation(timeline.frames)
        mask[order[np.isin(order, eligible)][:n]] = True
        return mask

    return rule


def _thumos14_centre(start: float, end: float, percent: float, frames: int) -> tuple[int, int]:
    middle, half = start + (end - start) / 2, percent * (end - start) / 200
    return int(middle - half + 0.5), int(middle + half + 0.5) + 1


def _activitynet_centre(start: float, end: float, percent: float, frames: int) -> tuple[int, int]:
    middle, half = int((start + end) / 2 + 0.5), percent * (end - start) / 200
    first = max(int(middle - half + 0.5), 1)
    last = min(int(middle + half - 0.5), frames)
    return first - 1, last  # the rule counts frames from 1


def _spans(timeline: Timeline, span: Callable[[float, float], tuple[int, int]]) -> Mask:
    mask = np.zeros(timeline.frames, np.bool_)
    for start, end in timeline.actions_or_whole():
        first, stop = span(float(start), float(end))
        mask[max(first, 0) : max(stop, 0)] = True
    return mask


def _explicit(timeline: Timeline, first: int, stop: int) -> Mask:
    if stop > timeline.frames:
        raise BadValue(f"placement reaches frame {stop - 1}, but the video has {timeline.frames} frames")
    mask = np.zeros(timeline.frames, np.bool_)
    mask[first:stop] = True
    return mask


def _percent(text: str, form: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)%", text)
    if not match or float(match[1]) > 100:
        raise BadValue(f"{text!r} is not a share from 0% to 100%; write it as in {form}")
    return float(match[1])


def _count(text: Any, form: str, least: int = 1) -> int:
    if not re.fullmatch(r"\d+", str(text)) or int(text) < least:
        raise BadValue(f"{text!r} is not a whole number of at least {least}; write it as in {form}")
    return int(text)
