"""Parameters that make the films harder to recognise."""

from __future__ import annotations

from dataclasses import dataclass, fields

from jostle.errors import BadValue


@dataclass(frozen=True)
class Difficulty:
    """Difficulty parameters of the films.

    Attributes:
        near_miss_rate: unlabelled beginnings of an action, for each real one of the main puppet.
        near_miss_reach: how far such a beginning goes, from and to; 1 is as far as it can without being the action.
        style: spread of amplitude, tempo and posture between instances, from 0 (all alike) to 1.
        camera: pan, zoom and shake, from 0 (fixed) to 1 and beyond.
        light: how much brightness and colour wander, from 0 to 1.
        clutter: props lying about, furniture, things in front of the lens, from 0 to 1.
        others: chance that a film has a second puppet; a third comes with half of it.
        others_act: chance that such a puppet acts (and is labelled) rather than only idling and walking.
        size: height of the main puppet in pixels, from and to.
        fidget: how restless the idling is, from 0 (a statue) to 1.
        jitter: frames by which an annotated end may be off.
    """

    near_miss_rate: float = 0.6
    near_miss_reach: tuple[float, float] = (0.4, 1.0)
    style: float = 0.75
    camera: float = 0.7
    light: float = 0.6
    clutter: float = 0.7
    others: float = 0.6
    others_act: float = 0.5
    size: tuple[float, float] = (45.0, 75.0)
    fidget: float = 0.8
    jitter: int = 2

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            low, high = value if isinstance(value, tuple) else (value, value)
            if not 0 <= low <= high:
                raise BadValue(f"{field.name} of a difficulty must not be negative or run backwards, got {value}")
        if self.near_miss_reach[1] > 1:
            raise BadValue(f"near_miss_reach must stay within 0 and 1, got {self.near_miss_reach}")
        if self.size[0] < 20 or self.size[1] > 100:
            raise BadValue(f"size must stay between 20 and 100 pixels, got {self.size}")
