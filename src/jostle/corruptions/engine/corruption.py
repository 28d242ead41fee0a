"""A corruption: what befalls a video. One function, one decorator, one shelf."""

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
        level: what the function maps.
            frame: `f(frame, value, moment)` to a frame;
            clip: `f(frames, value, span)` to frames, where `span` says which of them are wanted;
            codec: `f(frames, value, scene)`, a stream of frames to a stream of as many;
            time: `f(times, value, rng)` to one index for each time, so it also serves timestamps, features and labels.
        scale: the value the function receives at severities 1 to 5. It never sees the severity.
        placements: for a corruption whose severity is the share of frames it strikes, one placement a severity.
        draws: whether a time-level function draws at random; one that does not is handed None, since making a generator
            takes longer than most index maps.
        reach: for a value, how many frames before and after the wanted ones a clip-level function reads.
        cites: key of the work it comes from in `docs/references.bib`; `jostle` for our own.
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
    cites: str,
    placements: tuple[str, ...] | None = None,
    reach: Reach | None = None,
    draws: bool = True,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function under its own name."""
    if len(scale) != SEVERITIES or (placements is not None and len(placements) != SEVERITIES):
        raise BadValue(f"a corruption's own table has {SEVERITIES} severities, got {len(scale)}")
    if (level == "clip") != (reach is not None):
        raise BadValue("a clip-level corruption says how far it reaches, and no other does")
    if not draws and level != "time":
        raise BadValue("only a time-level corruption says that it draws nothing: it alone is handed a generator")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        corruptions.add(name, Corruption(name, function, level, scale, cites, placements, reach, draws))
        return function

    return register
