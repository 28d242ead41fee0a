"""Registries: a decorator registers an object by name, and all listings are derived from them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from threading import RLock
from typing import Generic, TypeVar

from jostle.core import plugins
from jostle.errors import BadValue, UnknownName

T = TypeVar("T")
_LOCK = RLock()  # one thread fills registries; others would find them half empty


class Registry(Generic[T]):
    """Registry of named objects of one kind, filled by importing the modules of packages, then plugins.

    Args:
        kind: singular noun for the objects, for error messages.
        packages: dotted names of the packages whose modules register objects. They are imported on first use, so
            that `import jostle` stays light.

    >>> fruits = Registry("fruit")
    >>> fruits.add("pear", 1)
    >>> fruits["pear"], list(fruits)
    (1, ['pear'])
    """

    def __init__(self, kind: str, *packages: str) -> None:
        self.kind = kind
        self._kinds = f"{kind}{'es' if kind.endswith('s') else 's'}"
        self.plural = self._kinds.replace(" ", "")  # its name in `jostle names`
        self._packages = packages
        self._entries: dict[str, T] = {}
        self.revision = 0  # incremented by `add`, to invalidate caches of derived values

    def add(self, name: str, entry: T) -> None:
        """Register an object under a unique name; only an object defined in `__main__` may be redefined."""
        module = plugins.registering_module()
        foreign = not plugins.is_builtin(module)
        if foreign:
            self._discover_builtin()  # so that a plugin cannot take a name of jostle's own
        if name in self._entries:
            existing = plugins.get_part(self.plural, name)
            if existing is None or module != "__main__" or existing.origin.module != module:
                owners = (
                    "" if not foreign else f", one of {module} and one of {existing.origin if existing else 'jostle'}"
                )
                raise BadValue(f"two {self._kinds} are called {name!r}{owners}; give one of them another name")
        self._entries[name] = entry
        self.revision += 1
        if foreign:
            plugins.record_part(self.plural, name, module)

    def part(self, name: str) -> plugins.Part | None:
        """Return the plugin part with this name; None for one of jostle's own."""
        return plugins.get_part(self.plural, name)

    def __getitem__(self, name: str) -> T:
        self.check(name)
        return self._entries[name]

    def check(self, name: str) -> None:
        """Raise UnknownName unless an object is registered under the name."""
        if name not in self:
            raise UnknownName(self.kind, name, self._entries, plugins.missing_plugins_hint())

    def __iter__(self) -> Iterator[str]:
        self._discover()
        return iter(sorted(self._entries))

    def __contains__(self, name: object) -> bool:
        self._discover()
        return name in self._entries

    def __len__(self) -> int:
        self._discover()
        return len(self._entries)

    def values(self) -> list[T]:
        """Return the objects, sorted by name."""
        return [self[name] for name in self]

    def _discover(self) -> None:
        with _LOCK:
            self._discover_builtin()
            plugins.load(self.plural)

    def _discover_builtin(self) -> None:
        names, self._packages = self._packages, ()
        if names:
            plugins.check_entry_points()
        for name in names:
            package = importlib.import_module(name)
            for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
                importlib.import_module(module.name)
