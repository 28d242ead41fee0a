"""Corruptions, their registry and the decorator that registers them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from jostle.core.registry import Registry
from jostle.errors import BadValue

Level = Literal["frame", "clip", "codec", "time"]
Reach = Callable[[Any], tuple[int, int]]

SEVERITIES = 5


@dataclass(frozen=True, eq=False)
class Corruption:
    """A registered function and jostle's own table for it.

    Attributes:
        level: signature of the function.
            frame: `f(frame, value, moment)` to a frame;
            clip: `f(frames, value, span)` to frames, where `span` says which of them to return;
            codec: `f(frames, value, scene)`, a stream of frames to a stream of as many;
            time: `f(times, value, rng)` to one index for each time, so it also serves timestamps, features and labels.
        scale: the value that the function receives at severities 1 to 5, instead of the severity.
        placements: for a corruption whose severity is the share of frames it affects, one placement a severity.
        draws: whether a time-level function draws at random; if not, it receives None, since creating a generator
            takes longer than most index maps.
        reach: for a value, how many frames before and after the returned ones a clip-level function reads.
        cites: key of the source in `docs/references.bib`; `jostle` for our own, empty for a plugin without one.
        family: the module it lives in: noise, blur, weather ...
    """

    name: str
    function: Callable[..., Any]
    level: Level
    scale: tuple[Any, ...]
    cites: str
    placements: tuple[str, ...] | None = None
    reach: Reach | None = None
    draws: bool = True

    @property
    def family(self) -> str:
        return self.function.__module__.rsplit(".", 1)[-1]

    @property
    def summary(self) -> str:
        """The first sentence of the function's docstring."""
        return (self.function.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")


corruptions: Registry[Corruption] = Registry("corruption", "jostle.corruptions")


def corruption(
    *,
    level: Level,
    scale: tuple[Any, ...],
    cites: str = "",
    placements: tuple[str, ...] | None = None,
    reach: Reach | None = None,
    draws: bool = True,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function under its own name."""
    if len(scale) != SEVERITIES or (placements is not None and len(placements) != SEVERITIES):
        raise BadValue(f"scale and placements need one value for each of {SEVERITIES} severities, got {len(scale)}")
    if (level == "clip") != (reach is not None):
        raise BadValue("reach is required for clip-level corruptions, and for no others")
    if not draws and level != "time":
        raise BadValue("draws=False is for time-level corruptions only, as no others receive a generator")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        corruptions.add(name, Corruption(name, function, level, scale, cites, placements, reach, draws))
        return function

    return register
