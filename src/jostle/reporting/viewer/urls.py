"""Names in addresses: whatever a video is called, its address is plain, and only known ones lead anywhere."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from jostle.evaluation.recipes.recipe import slugify

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_@+-]{0,99}")
_OTHER = re.compile(r"[^A-Za-z0-9_+-]+")


class Keys:
    """The key of each name, and back; nothing else has one.

    A key holds no dot, slash or percent sign, so that no address can be read as a path.

    >>> made = Keys(["box_1", "../a b", "box.1"])
    >>> made.of("box_1"), made.name("box_1"), made.name("..")
    ('box_1', 'box_1', None)
    >>> made.of("box.1")
    'box-1~8be223df'
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._keys = {name: key_of(name) for name in names}
        self._names = {key: name for name, key in self._keys.items()}

    def of(self, name: str) -> str:
        """The key of a known name."""
        return self._keys[name]

    def name(self, key: str) -> str | None:
        """The name that has this key, or None."""
        return self._names.get(key)


def key_of(name: str) -> str:
    """A name as one step of an address; two names never share one."""
    if _PLAIN.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_OTHER.sub('-', name).strip('-')[:60]}~{digest}"


def cell_key(cell: str) -> str:
    """The key of a cell, as its file of predictions is called."""
    return key_of(slugify(cell))


def run_keys(folders: Iterable[Path]) -> dict[str, Path]:
    """The run folders by their keys: their names, and a number where two are called alike."""
    made: dict[str, Path] = {}
    for folder in folders:
        plain = key_of(folder.resolve().name or "run")
        key, number = plain, 2
        while key in made:
            key, number = f"{plain}-{number}", number + 1
        made[key] = folder
    return made
