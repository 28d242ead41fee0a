"""Specs, `[profile/]name[:severity]`: the notation of one corruption at one severity."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jostle.corruptions.engine.corruption import Corruption, corruptions
from jostle.corruptions.engine.profile import Entry, own_entry, profiles
from jostle.errors import BadValue, UnknownName

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
