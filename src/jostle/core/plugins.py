"""Parts from elsewhere: packages that announce them by an entry point, and modules that are asked for by name.

Importing such a module is all that is done with it: the decorators in it put its parts on the shelves. Nothing is
imported because it lies somewhere, only because it was installed as a plugin or named.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.errors import BadValue

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "jostle.plugins"
VARIABLE = "JOSTLE_IMPORT"  # in the environment, so that processes that are started, here or on a cluster, get it too
OURS = "jostle"
# An entry point of one of these names is imported when that shelf is asked, one of any other name with every shelf.
SHELVES = ("benchmarks", "corruptions", "datasets", "detectors", "extractors", "formats", "metrics", "models",
           "objectdetectors", "placements", "profiles", "protocols", "styles", "trackers")  # fmt: skip


@dataclass(frozen=True)
class Origin:
    """Where a part comes from.

    Attributes:
        module: that put it on its shelf.
        package: what that module was installed by; empty for a module that was not installed.
        version: of the package.
        checksum: of the module's file; empty where there is none, as for what was typed in.
    """

    module: str
    package: str = ""
    version: str = ""
    checksum: str = ""

    def __str__(self) -> str:
        if self.package:
            return f"{self.package} {self.version}"
        return f"{self.module} ({self.checksum[:19]})" if self.checksum else self.module

    @property
    def way(self) -> str:
        """What to do to have the part, in words that end a message."""
        if self.package:
            return f"pip install {self.package}=={self.version}"
        return f"--import {self.module}"


@dataclass(frozen=True)
class Part:
    """A part that is not jostle's own."""

    shelf: str
    name: str
    origin: Origin

    def __str__(self) -> str:
        return f"{self.name} of {self.origin}"


@dataclass(frozen=True)
class Plugin:
    """A package or module with parts, and what is wrong with it, if anything is."""

    name: str
    modules: tuple[str, ...]
    parts: tuple[Part, ...]
    failure: str = ""


_ready: set[str] = set()  # shelves that have what there is for them
_asked: list[str] = []  # modules that were asked for, or that the process that started this one has
_taken: set[str] = set()  # modules that were imported, or tried
_failed: dict[str, str] = {}  # what could not be had, by module
_parts: dict[tuple[str, str], str] = {}  # the module of each foreign part
_warned: set[str] = set()


def ask(*modules: str) -> None:
    """Import modules now, and have every process that is started from here import them too.

    Raises:
        BadValue: if one cannot be imported.
    """
    known = _named()
    os.environ[VARIABLE] = ",".join([*known, *(name for name in modules if name not in known)])
    _import_named()


def load(shelf: str) -> None:
    """Import what there is for a shelf; a package that cannot be imported is told of once, and left.

    Raises:
        BadValue: if a module that was asked for by name cannot be imported.
    """
    if shelf in _ready:
        return
    _ready.add(shelf)
    _import_named()
    for entry in _entries():
        if entry.name == shelf or entry.name not in SHELVES:
            _try(entry.module, entry.attr or "")
    for module in list(_asked):
        _try(module)
    for module, why in _failed.items():
        if module not in _warned:
            _warned.add(module)
            warnings.warn(f"{origin_of(module)}: cannot be imported, so its parts are not there: {why}", stacklevel=4)


def note(shelf: str, name: str, module: str) -> None:
    """Remember where a foreign part comes from."""
    _parts[shelf, name] = module


def part(shelf: str, name: str) -> Part | None:
    """A foreign part of a shelf; None for one of jostle's own."""
    module = _parts.get((shelf, name))
    return None if module is None else Part(shelf, name, origin_of(module))


def names(shelf: str) -> list[str]:
    """The foreign parts of a shelf; what brings them is imported, and nothing of jostle's own is."""
    load(shelf)
    return sorted(name for where, name in _parts if where == shelf)


def hint() -> str:
    """What may be the reason that a name is not known: packages that could not be imported."""
    said = [f"{origin_of(module)} cannot be imported ({why})" for module, why in _failed.items()]
    return f"; it may be a part of what is missing here: {'; '.join(said)}" if said else ""


def examine() -> list[Plugin]:
    """Every plugin there is, with its parts, once all of them were imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for shelf in SHELVES:
            load(shelf)
    by_name: dict[str, list[str]] = {}
    for module in dict.fromkeys([*_parts.values(), *_taken, *_failed]):
        by_name.setdefault(str(origin_of(module)), []).append(module)
    made = []
    for name, modules in sorted(by_name.items()):
        held = tuple(Part(*key, origin_of(module)) for key, module in sorted(_parts.items()) if module in modules)
        wrong = "; ".join(_failed[module] for module in sorted(modules) if module in _failed)
        made.append(Plugin(name, tuple(sorted(modules)), held, wrong))
    return made


def travelling() -> list[str]:
    """Modules that another process has to import to have the same parts."""
    return sorted({*_parts.values(), *_asked})


def arrive(modules: Iterable[str]) -> None:
    """In a process that was started: have the parts that the one before it has, when a shelf is first asked."""
    for module in modules:
        if module == "__main__":
            _failed[module] = "it is the script itself, and other processes cannot import that; put parts into a module"
        else:
            _asked.append(module)
    _warned.update(_failed, _asked, (entry.module for entry in _entries()))  # whoever started it has said so


@cache
def origin_of(module: str) -> Origin:
    """Where the parts of a module come from."""
    checksum = _checksum(module)
    for entry in _entries():
        if entry.dist is not None and _top(entry.module) == _top(module):
            return Origin(module, entry.dist.name, entry.dist.version, checksum)
    from importlib.metadata import packages_distributions, version

    found = packages_distributions().get(_top(module), [])
    if found:
        return Origin(module, found[0], version(found[0]), checksum)
    return Origin(module, checksum=checksum)


def is_place(name: str) -> bool:
    """Whether a name is `package.module:attribute`.

    >>> is_place("mine:net"), is_place("i3d_rgb")
    (True, False)
    """
    module, colon, attribute = name.partition(":")
    return bool(colon and module and attribute)


def found_at(place: str, option: str) -> Any:
    """What `package.module:attribute` stands for.

    Args:
        option: that the place was given to, for messages.

    Raises:
        BadValue: if it cannot be had.
    """
    module, _, attribute = place.partition(":")
    _look_here()
    try:
        found: Any = importlib.import_module(module)
        for name in attribute.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise BadValue(f"{option} {place}: cannot be had ({error}); write package.module:attribute") from None
    return found


def adding_module() -> str:
    """The module whose code puts something on a shelf: the first on the way up that is no machinery of ours."""
    frame = sys._getframe(1)
    while True:
        name: str = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name == "<module>" or not is_ours(name) or frame.f_back is None:
            return name
        frame = frame.f_back


def is_ours(module: str) -> bool:
    """Whether a module is of jostle itself."""
    return module == OURS or module.startswith(f"{OURS}.")


def _named() -> list[str]:
    return [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]


def _import_named() -> None:
    """Import the modules of the environment: somebody asked for them, so it is an error if one cannot be had."""
    for module in _named():
        if module in _taken:
            continue
        _look_here()
        _taken.add(module)
        try:
            importlib.import_module(module)
        except Exception as error:  # whatever somebody's module raises
            _taken.discard(module)
            why = f"{type(error).__name__}: {error}"
            raise BadValue(
                f"--import {module}: cannot be imported ({why}); name a module that is installed or lies in "
                f"{os.getcwd()}, and mend what it raises"
            ) from error
        if module not in _asked:
            _asked.append(module)


def _try(module: str, attribute: str = "") -> None:
    """Import a plugin; one that fails must not take jostle along."""
    if module in _taken or module in _failed:
        return
    _taken.add(module)
    try:
        found: Any = importlib.import_module(module)
        for name in filter(None, attribute.split(".")):
            found = getattr(found, name)
    except Exception as error:  # whatever somebody's module raises
        _failed[module] = f"{type(error).__name__}: {error}"


@cache
def _entries() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points

    return tuple(sorted(entry_points(group=GROUP), key=lambda entry: (entry.module, entry.name)))


def _look_here() -> None:
    """Find modules in the current folder, as `python -m` does; only once somebody has named one."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def _top(module: str) -> str:
    return module.partition(".")[0]


def _checksum(module: str) -> str:
    file = getattr(sys.modules.get(module), "__file__", None)
    if not file or module == "__main__":
        return ""
    try:
        return f"sha256:{hashlib.sha256(Path(file).read_bytes()).hexdigest()}"
    except OSError:
        return ""
