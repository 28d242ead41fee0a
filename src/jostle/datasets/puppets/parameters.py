"""Parameters of the puppet data set: its splits, their casts, and the difficulty of the films.

A puppet plays in one split only, trimmed or not, so nobody who is tested on has been seen before. The feature network
has a cast of its own, as networks are trained on Kinetics before they see THUMOS14.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from jostle.core.random import key_for
from jostle.errors import BadValue

VERSION = 1  # of the films: raise it when the same names give other pictures

VIDEOS = {"extractor": 160, "training": 200, "validation": 50, "test": 60}
CLIPS = {"train": 60, "val": 15, "test": 25}  # of each class

CASTS = {"training": range(120), "validation": range(120, 150), "test": range(150, 200), "extractor": range(200, 320)}
# Trimmed clips share the casts of the untrimmed videos, under the names that recognition uses.
CLIP_CASTS = {"train": CASTS["training"], "val": CASTS["validation"], "test": CASTS["test"]}


def folder_name(seed: int) -> str:
    """Return the folder name of a seed and version.

    >>> folder_name(0)
    'puppets-v1-seed0'
    """
    return f"puppets-v{VERSION}-seed{seed}"


def video_id(subset: str, number: int) -> str:
    """Return the id of an untrimmed video, counted from 1.

    >>> video_id("test", 1)
    'puppet_test_0001'
    """
    return f"puppet_{subset}_{number:04d}"


def clip_id(subset: str, label: str, number: int) -> str:
    """Return the id of a trimmed clip, counted from 1 in each class.

    >>> clip_id("train", "sit_down", 12)
    'puppet_train_sit_down_0012'
    """
    return f"puppet_{subset}_{label}_{number:04d}"


def puppet_of(seed: int, subset: str, clip: str) -> int:
    """Return the puppet that acts in a trimmed clip."""
    cast = CLIP_CASTS[subset]
    return cast[key_for(seed, "puppets", "clip", clip) % len(cast)]


@dataclass(frozen=True)
class Difficulty:
    """Difficulty parameters of the films."""

    near_miss_rate: float = 0.6  # unlabelled beginnings of an action, for each real one of the main puppet
    # How far such a beginning goes, from and to; 1 is as far as it can without being the action.
    near_miss_reach: tuple[float, float] = (0.4, 1.0)
    style: float = 0.75  # spread of amplitude, tempo and posture between instances, from 0 (all alike) to 1
    camera: float = 0.7  # pan, zoom and shake, from 0 (fixed) to 1 and beyond
    light: float = 0.6  # how much brightness and colour wander, from 0 to 1
    clutter: float = 0.7  # props lying about, furniture, things in front of the lens, from 0 to 1
    others: float = 0.6  # chance that a film has a second puppet; a third comes with half of it
    others_act: float = 0.5  # chance that such a puppet acts (and is labelled) rather than only idling and walking
    size: tuple[float, float] = (45.0, 75.0)  # height of the main puppet in pixels, from and to
    fidget: float = 0.8  # how restless the idling is, from 0 (a statue) to 1
    jitter: int = 2  # frames by which an annotated end may be off

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
