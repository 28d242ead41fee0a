"""Damage finders: the registry of what says which frames of a video are damaged, in each of its states."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from jostle.core.finite import naming
from jostle.core.plugins import import_object, is_import_path, origin_of
from jostle.core.registry import Registry
from jostle.core.types.video import VideoSource
from jostle.corruptions.engine.context import Mask
from jostle.corruptions.engine.damage_finder import DamageFinder, FindsDamage, Indices
from jostle.corruptions.engine.stages import origins
from jostle.errors import BadValue

Factory = Callable[[], DamageFinder]
F = TypeVar("F", bound=Factory)

damage_finders: Registry[Factory] = Registry("damage finder", "jostle.mending.finders")


def damage_finder(name: str) -> Callable[[F], F]:
    """Register a class or function that makes a `DamageFinder`; every process calls it without arguments."""

    def register(make: F) -> F:
        damage_finders.add(name, make)
        return make

    return register


@dataclass(frozen=True)
class OwnFinder:
    """A finder from outside jostle, whose answers are checked.

    Attributes:
        finder: the finder itself.
        fingerprint: its own, or the checksum of its module.
    """

    finder: DamageFinder
    fingerprint: str | None

    @property
    def name(self) -> str:
        """Name of the finder."""
        return self.finder.name

    def finder_for(self, clean: VideoSource, /) -> FindsDamage:
        """Create the finder of damaged frames for one video."""
        return _CheckedFrames(self.finder.finder_for(clean), self.name)

    def to(self, device: str) -> OwnFinder:
        """Return a copy on another device, where the finder computes on one."""
        return replace(self, finder=self.finder.to(device)) if hasattr(self.finder, "to") else self


@dataclass(frozen=True)
class _CheckedFrames:
    """Damaged frames of one video by a finder from outside."""

    finder: FindsDamage
    name: str

    def find_damaged(self, state: VideoSource, origin: Indices, /) -> Mask:
        mask = np.asarray(self.finder.find_damaged(state, origin))
        if mask.shape != (len(state),) or mask.dtype != np.bool_:
            raise BadValue(
                f"damage finder {self.name}: found {mask.shape} {mask.dtype} for {len(state)} frames; find_damaged "
                "returns one boolean a frame"
            )
        return mask


def as_own_finder(thing: Any, label: str) -> OwnFinder:
    """Check a finder from outside jostle.

    Args:
        thing: the finder, or a class or function that makes it.
        label: for messages.
    """
    finder = thing() if inspect.isclass(thing) or (callable(thing) and not hasattr(thing, "finder_for")) else thing
    if not isinstance(finder, DamageFinder):
        raise BadValue(
            f"{label}: a damage finder has a name, a fingerprint (or None) and finder_for(video), which returns what "
            f"has find_damaged(state, origin); this is {finder!r:.80}"
        )
    return OwnFinder(finder, finder.fingerprint or origin_of(type(finder).__module__).checksum or None)


def find_own_finder(finder: Any) -> OwnFinder | None:
    """Return the finder from outside jostle that a caller means; None for an inspector, by name, path or as it is.

    Args:
        finder: a name, an import path, a path of weights, a `DamageFinder`, or an `Inspector`.

    Raises:
        UnknownName: for a word that is neither a name nor a file.
    """
    if not isinstance(finder, str | Path):
        return as_own_finder(finder, type(finder).__name__) if hasattr(finder, "finder_for") else None
    name = str(finder)
    if name in damage_finders:
        return as_own_finder(damage_finders[name], name) if damage_finders.part(name) is not None else None
    if Path(name).exists():
        return None
    if is_import_path(name):
        return as_own_finder(import_object(name, "damage finder"), name)
    if isinstance(finder, str) and Path(name).name == name and not Path(name).suffix:
        damage_finders.check(name)  # a word, and none that is known
    return None


def find_damaged(finder: DamageFinder, clean: VideoSource, states: Mapping[str, VideoSource]) -> dict[str, Mask]:
    """Return the mask of damaged frames for each state of a video."""
    for_video, masks = finder.finder_for(clean), {}
    for name, top in states.items():
        with naming(cell=name):
            masks[name] = for_video.find_damaged(top, origins(top))
    return masks
