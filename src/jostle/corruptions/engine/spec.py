"""Specs, `[profile/]name[:severity]`: the notation of one corruption at one severity.

A profile has the names, severities and parameters of a paper, as a table over registered corruptions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from jostle.core.registry import Registry
from jostle.corruptions.engine.corruption import Corruption, corruptions
from jostle.errors import BadValue, UnknownName


@dataclass(frozen=True)
class Entry:
    """Entry of a profile for one corruption.

    Attributes:
        corruption: the registered corruption that does the work.
        values: its value at each severity, from 1.
        options: keyword arguments that are the same at every severity.
        placements: placement at each severity, when severity is the share of frames rather than the strength.
        note: how the entry differs from the published program, if it does.
    """

    corruption: str
    values: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    placements: tuple[str, ...] | None = None
    note: str = ""


@dataclass(frozen=True)
class Profile:
    """A named table of entries.

    Attributes:
        severity: meaning of severity: the strength of the corruption, or the share of frames it affects.
        code_names: names the published program uses for its own entries, understood as well.
    """

    name: str
    cites: str
    entries: Mapping[str, Entry]
    severity: Literal["strength", "share"] = "strength"
    code_names: Mapping[str, str] = field(default_factory=dict)
    summary: str = ""


profiles: Registry[Profile] = Registry("profile", "jostle.corruptions.profiles")


def profile(name: str, *, cites: str, **facts: Any) -> Callable[[Callable[[], dict[str, Entry]]], None]:
    """Register the table that the decorated function returns."""

    def register(table: Callable[[], dict[str, Entry]]) -> None:
        summary = (table.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")
        profiles.add(name, Profile(name, cites, table(), summary=summary, **facts))

    return register


def own_entry(name: str) -> Entry:
    """Return the entry of jostle's own table for a bare name."""
    corruption = corruptions[name]
    return Entry(name, corruption.scale, placements=corruption.placements)


def strength(corruption: str, *values: Any, note: str = "", **options: Any) -> Entry:
    """Create an entry whose severity is the strength."""
    if not values:
        raise BadValue(f"the profile entry for {corruption} has no values")
    return Entry(corruption, values, options, note=note)


_FORM = re.compile(r"(?:(?P<profile>[^/:]+)/)?(?P<name>[^/:]+)(?::(?P<severity>[^/:]+))?")


@dataclass(frozen=True)
class Spec:
    """A corruption at one severity, parsed from text.

    >>> str(Spec.parse("imagenet-c/shot_noise:3"))
    'imagenet-c/shot_noise:3'
    >>> Spec.parse("thumos14-c/black_frame:2").placement
    'centre:5%'
    """

    profile: str | None
    name: str
    severity: int
    entry: Entry

    @classmethod
    def parse(cls, text: str | Spec) -> Spec:
        """Parse a spec; the default severity is the middle one."""
        if isinstance(text, Spec):
            return text
        if not isinstance(text, str):
            raise _not_a_spec(text)
        return _parse(text, corruptions.revision, profiles.revision)

    def __str__(self) -> str:
        return f"{self.profile}/{self.name}:{self.severity}" if self.profile else f"{self.name}:{self.severity}"

    @property
    def corruption(self) -> Corruption:
        return corruptions[self.entry.corruption]

    @property
    def value(self) -> Any:
        """Parameter value of the corruption; undefined for severity 0."""
        return self.entry.values[self.severity - 1]

    @property
    def placement(self) -> str:
        """Default placement of the corruption."""
        if self.entry.placements is None or self.severity == 0:
            return "everywhere"
        return self.entry.placements[self.severity - 1]


@lru_cache(256)
def _parse(text: str, *revisions: int) -> Spec:
    """Parse a spec; the revisions of the registries are part of the cache key."""
    match = _FORM.fullmatch(text)
    if not match:
        raise _not_a_spec(text)
    profile, name, entry = _look_up(match["profile"], match["name"])
    highest = len(entry.values)
    severity = match["severity"] or str((highest + 1) // 2)
    if not re.fullmatch(r"\d+", severity) or int(severity) > highest:
        raise BadValue(f"{text}: severity must be a whole number from 0 (clean) to {highest}, got {severity!r}")
    return Spec(profile, name, int(severity), entry)


def _not_a_spec(text: object) -> BadValue:
    return BadValue(f"{text!r} is not a spec; write [profile/]name[:severity], as in imagenet-c/fog:3")


def _look_up(profile: str | None, name: str) -> tuple[str | None, str, Entry]:
    if profile is None:
        homes = [table.name for table in profiles.values() if name in table.entries]
        if homes and name not in corruptions:
            raise BadValue(f"{name!r} exists only in a profile: write {homes[0]}/{name}")
        return None, name, own_entry(name)
    table = profiles[profile]
    name = table.code_names.get(name, name)
    if name not in table.entries:
        raise UnknownName(f"corruption of profile {profile}", name, table.entries)
    return profile, name, table.entries[name]
