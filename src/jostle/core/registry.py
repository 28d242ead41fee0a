"""The registry: a decorator registers an object by name, and every listing is derived from it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from threading import RLock
from typing import Generic, TypeVar

from jostle.core import plugins
from jostle.errors import BadValue, UnknownName

T = TypeVar("T")
_FILLING = RLock()  # one thread fills shelves; others would find them half empty


class Registry(Generic[T]):
    """A shelf of named things of one kind, filled by importing the modules of packages, then those of plugins.

    Args:
        kind: what the shelf holds, in the singular, as error messages say it.
        packages: dotted names of the packages whose modules register things. They are imported on first use, so
            that `import jostle` stays light.

    >>> shelf = Registry("fruit")
    >>> shelf.add("pear", 1)
    >>> shelf["pear"], list(shelf)
    (1, ['pear'])
    """

    def __init__(self, kind: str, *packages: str) -> None:
        self.kind = kind
        self.shelf = f"{kind.replace(' ', '')}s"  # what `jostle names` calls it
        self._packages = packages
        self._things: dict[str, T] = {}
        self.edition = 0  # goes up with each thing added: what is derived from the shelf may be kept till then

    def add(self, name: str, thing: T) -> None:
        """Put `thing` on the shelf; a name is given once. What is typed in anew takes the place of what it was."""
        module = plugins.adding_module()
        foreign = not plugins.is_ours(module)
        if foreign:
            self._discover_ours()  # so that of two of one name ours is there first, and theirs is refused
        if name in self._things:
            there = plugins.part(self.shelf, name)
            if there is None or module != "__main__" or there.origin.module != module:
                whose = "" if not foreign else f", one of {module} and one of {there.origin if there else 'jostle'}"
                raise BadValue(f"two {self.kind}s are called {name!r}{whose}; give one of them another name")
        self._things[name] = thing
        self.edition += 1
        if foreign:
            plugins.note(self.shelf, name, module)

    def part(self, name: str) -> plugins.Part | None:
        """Where a thing comes from that is not jostle's own; None for one that is."""
        return plugins.part(self.shelf, name)

    def __getitem__(self, name: str) -> T:
        self._discover()
        try:
            return self._things[name]
        except KeyError:
            raise UnknownName(self.kind, name, self._things, plugins.hint()) from None

    def __iter__(self) -> Iterator[str]:
        self._discover()
        return iter(sorted(self._things))

    def __contains__(self, name: object) -> bool:
        self._discover()
        return name in self._things

    def __len__(self) -> int:
        self._discover()
        return len(self._things)

    def values(self) -> list[T]:
        """The things themselves, in the order of their names."""
        return [self[name] for name in self]

    def _discover(self) -> None:
        with _FILLING:
            self._discover_ours()
            plugins.load(self.shelf)

    def _discover_ours(self) -> None:
        names, self._packages = self._packages, ()
        for name in names:
            package = importlib.import_module(name)
            for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
                importlib.import_module(module.name)
