"""Sources of public weights, by registry and name of the network, as data.

The table is `sources.toml`. Nothing is fetched from there unless `public` is given as weights.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jostle.errors import BadValue

TABLE = Path(__file__).with_name("sources.toml")
PUBLIC = "public"
HUB = "hf:"
FIRST = 8  # digits of a checksum that are enough, as file names of torchvision have them


@dataclass(frozen=True)
class WeightSource:
    """Source of a network's public weights."""

    # of the file, by https; or `hf:ORG/NAME[/file]`, on the Hugging Face hub. Empty where they cannot be fetched
    # without a person
    url: str = ""
    by_hand: str = ""  # how a person gets them, in words
    # other names of the same registry, whose files are fetched into one folder; the weights are that folder
    parts: tuple[str, ...] = ()
    has: tuple[str, ...] = ()  # names of some of the tensors that the file must hold; the hub sees to its own
    mebibytes: float | None = None  # size of the file, where it is published
    sha256: str = ""  # checksum, or its first digits, where it is published
    through: tuple[str, ...] = ()  # other hosts that this one sends on to

    def __post_init__(self) -> None:
        if bool(self.url) + bool(self.by_hand) + bool(self.parts) != 1:
            raise BadValue(f"weights are at a url, got by hand or made of parts, one of the three: {self}")
        if self.url and not self.url.startswith(HUB):
            parts = urlsplit(self.url)
            if parts.scheme != "https" or not parts.hostname or ".." in parts.path.split("/"):
                raise BadValue(f"weights are fetched by https from a host, not from {self.url!r}")
        if self.sha256 and len(self.sha256) < FIRST:
            raise BadValue(f"{self.url}: a checksum has at least {FIRST} digits, not {self.sha256!r}")

    @property
    def file(self) -> str:
        """Name of the file, or of the repository."""
        return self.url.rpartition("/")[2]

    @property
    def description(self) -> str:
        """Source of the weights, as text."""
        if self.parts:
            return f"public: those of {' and '.join(self.parts)}"
        if not self.url:
            return self.by_hand
        size = "" if self.mebibytes is None else f" ({self.mebibytes:.0f} MiB)"
        return f"public: {self.url}{size}"


def is_fetched(weights: str | Path | None) -> bool:
    """Whether weights are given by a keyword that downloads them."""
    return weights is not None and (str(weights) == PUBLIC or str(weights).startswith(HUB))


def source_of(registry: str, name: str) -> WeightSource | None:
    """Return the source of a network's public weights; variants of a detector share the detector's."""
    rows = read_sources().get(registry, {})
    return rows.get(name) or (rows.get(name.partition("_")[0]) if registry == "detectors" else None)


def fetch_hint(place: WeightSource | None) -> str:
    """Return the end of an error message that tells how to download missing weights, if possible."""
    return f"; or say {PUBLIC!r}, and they are fetched" if place is not None and (place.url or place.parts) else ""


@cache
def read_sources() -> Mapping[str, Mapping[str, WeightSource]]:
    """Read the table of sources, by registry and name."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {registry: {name: _place(row) for name, row in rows.items()} for registry, rows in table.items()}


def _place(row: dict[str, Any]) -> WeightSource:
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    return WeightSource(**fields)
