"""Profiles: the names, severities and parameters of a paper, as a table over registered corruptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from jostle.core.registry import Registry
from jostle.corruptions.engine.corruption import corruptions
from jostle.errors import BadValue


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
