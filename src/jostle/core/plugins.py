"""Plugins: installed packages with an entry point, and modules that the user names.

A plugin is only imported: its decorators register its parts. A module is imported because it is installed as a plugin
or named by the user, never because of where it lies.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.interruption import exits_as_errors
from jostle.core.source_code import code_of, imported_files, is_installed
from jostle.errors import BadValue, ForeignExit

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

GROUP = "jostle.plugins"
VARIABLE = "JOSTLE_IMPORT"  # an environment variable, so that child processes and clusters inherit it
PACKAGE = "jostle"
TORCH_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"  # torch's switch for entry points of devices
SLOW_S = 5.0  # after which an import that has not ended is named
# An entry point with one of these names is imported with that registry, one with any other name with every registry.
REGISTRIES = ("benchmarks", "corruptions", "damagefinders", "datasets", "detectors", "divergences", "extractors",
           "formats", "losses", "menders",
           "metrics", "models", "objectdetectors", "placements", "profiles", "protocols", "sections", "statistics",
           "styles", "tasks", "trackers", "trainingtasks", "videosources")  # fmt: skip


@dataclass(frozen=True)
class Origin:
    """The module and package that a plugin part comes from."""

    module: str  # that registered it
    package: str = ""  # distribution that installed the module; empty for a module that is not installed
    version: str = ""
    checksum: str = ""  # of the module's file; empty without one, as in an interactive session

    def __str__(self) -> str:
        if self.package:
            return f"{self.package} {self.version}"
        return f"{self.module} ({self.checksum[:19]})" if self.checksum else self.module


@dataclass(frozen=True)
class Part:
    """A registered object of a plugin."""

    registry: str
    name: str
    origin: Origin

    def __str__(self) -> str:
        return f"{self.name} of {self.origin}"


@dataclass(frozen=True)
class Plugin:
    """A plugin package or module with its parts, and its import error if there is one."""

    name: str
    modules: tuple[str, ...]
    parts: tuple[Part, ...]
    failure: str = ""


_loaded: set[str] = set()  # registries whose plugins have been imported
_requested: list[str] = []  # modules that were named, or inherited from the parent process
_imported: set[str] = set()  # modules whose import was attempted
_failed: dict[str, str] = {}  # import errors by module
_malformed: dict[str, str] = {}  # errors of entry points that cannot be read, by package
_parts: dict[tuple[str, str], str] = {}  # module of each plugin part, by registry and name
_warned: set[str] = set()


def import_modules(*modules: str) -> None:
    """Import modules now and in every process that is started from here.

    Raises:
        BadValue: if one cannot be imported.
    """
    known = _modules_from_environment()
    os.environ[VARIABLE] = ",".join([*known, *(name for name in modules if name not in known)])
    _import_from_environment()


def load(registry: str) -> None:
    """Import the plugins of a registry; a package that cannot be imported is skipped with a warning.

    Raises:
        BadValue: if a module that the user named cannot be imported.
    """
    if registry in _loaded:
        return
    _loaded.add(registry)
    _import_from_environment()
    for entry in _entry_points():
        if entry.name == registry or entry.name not in REGISTRIES:
            _try_import(entry.module, entry.attr or "")
    for module in list(_requested):
        _try_import(module)
    messages = {module: f"{origin_of(module)}: cannot be imported, so its parts are not there" for module in _failed}
    messages |= {package: f"{package}: has a malformed entry point, which is passed over" for package in _malformed}
    for key, reason in (*_failed.items(), *_malformed.items()):
        if key not in _warned:
            _warned.add(key)
            warnings.warn(f"{messages[key]}: {reason}", stacklevel=4)


def record_part(registry: str, name: str, module: str) -> None:
    """Record the module of a plugin part."""
    _parts[registry, name] = module


def get_part(registry: str, name: str) -> Part | None:
    """Return a plugin part of a registry; None for one of jostle's own."""
    module = _parts.get((registry, name))
    return None if module is None else Part(registry, name, origin_of(module))


def plugin_names(registry: str) -> list[str]:
    """Return the names of a registry's plugin parts, without importing any part of jostle's own."""
    load(registry)
    return sorted(name for key, name in _parts if key == registry)


def missing_plugins_hint() -> str:
    """Return a hint that an unknown name may belong to a plugin that could not be imported."""
    failures = [f"{origin_of(module)} cannot be imported ({reason})" for module, reason in _failed.items()]
    return f"; it may be part of a plugin that is missing here: {'; '.join(failures)}" if failures else ""


def list_plugins() -> list[Plugin]:
    """Import and return all plugins with their parts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for registry in REGISTRIES:
            load(registry)
    by_name: dict[str, list[str]] = {}
    for module in dict.fromkeys([*_parts.values(), *_imported, *_failed]):
        by_name.setdefault(str(origin_of(module)), []).append(module)
    plugins = []
    for name, modules in sorted(by_name.items()):
        parts = tuple(Part(*key, origin_of(module)) for key, module in sorted(_parts.items()) if module in modules)
        failure = "; ".join(_failed[module] for module in sorted(modules) if module in _failed)
        plugins.append(Plugin(name, tuple(sorted(modules)), parts, failure))
    malformed = [Plugin(package, (), (), f"malformed entry point: {reason}") for package, reason in _malformed.items()]
    return plugins + malformed


def plugin_modules() -> list[str]:
    """Return the modules that another process has to import to have the same parts."""
    return sorted({*_parts.values(), *_requested})


def plugins_are_importable() -> bool:
    """Whether other processes have the same parts: none was registered by the script itself or a notebook."""
    return all(module != "__main__" and _has_spec(module) for module in plugin_modules())


def _has_spec(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def inherit_plugins(modules: Iterable[str]) -> None:
    """Register the parent's plugins lazily in a child process."""
    for module in modules:
        if module == "__main__":
            _failed[module] = "it is the script itself, and other processes cannot import that; put parts into a module"
        else:
            _requested.append(module)
    # The parent has warned already.
    _warned.update(_failed, _requested, (entry.module for entry in _entry_points()), _malformed)


@cache
def origin_of(module: str) -> Origin:
    """Return the origin of a module's parts."""
    checksum = _checksum(module)
    for entry in _entry_points():
        if entry.dist is not None and _top_package(entry.module) == _top_package(module):
            return Origin(module, _package_name(entry.dist), _package_version(entry.dist), checksum)
    from importlib.metadata import packages_distributions, version

    try:
        distributions = packages_distributions().get(_top_package(module), [])
        if distributions:
            return Origin(module, distributions[0], version(distributions[0]), checksum)
    except Exception:  # the records of some installed package are damaged
        pass
    return Origin(module, checksum=checksum)


def check_entry_points() -> None:
    """Find malformed entry points, before a library that cannot cope with them is imported."""
    _entry_points()


def is_import_path(name: str) -> bool:
    """Return whether a name has the form `package.module:attribute`.

    >>> is_import_path("mine:net"), is_import_path("i3d_rgb")
    (True, False)
    """
    module, colon, attribute = name.partition(":")
    return bool(colon and module and attribute)


def import_object(path: str, option: str) -> Any:
    """Import the object at `package.module:attribute`.

    Raises:
        BadValue: if it cannot be imported, whatever its module raises.
    """
    module, _, attribute = path.partition(":")
    _add_current_folder()
    try:
        return _import_foreign(module, attribute)
    except (ImportError, AttributeError) as error:
        raise BadValue(f"{option} {path}: cannot be imported ({error}); write package.module:attribute") from None
    except Exception as error:  # a user's module may raise anything
        raise BadValue(
            f"{option} {path}: cannot be imported ({_reason(error)}); fix what the module raises",
            fault=getattr(error, "fault", ""),
        ) from error


def registering_module() -> str:
    """Return the module whose code registers something: the first caller outside jostle's machinery."""
    frame = sys._getframe(1)
    while True:
        name: str = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name == "<module>" or not is_builtin(name) or frame.f_back is None:
            return name
        frame = frame.f_back


def is_builtin(module: str) -> bool:
    """Return whether a module is part of jostle."""
    return module == PACKAGE or module.startswith(f"{PACKAGE}.")


def _modules_from_environment() -> list[str]:
    return [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]


def _import_from_environment() -> None:
    """Import the modules named in the environment; one that cannot be imported is an error."""
    for module in _modules_from_environment():
        if module in _imported:
            continue
        _add_current_folder()
        _imported.add(module)
        try:
            _import_foreign(module)
        except Exception as error:  # a plugin may raise anything
            _imported.discard(module)
            raise BadValue(
                f"--import {module}: cannot be imported ({_reason(error)}); name a module that is installed or lies in "
                f"{os.getcwd()}, and fix what it raises",
                fault=getattr(error, "fault", ""),
            ) from error
        if module not in _requested:
            _requested.append(module)


def _try_import(module: str, attribute: str = "") -> None:
    """Import a plugin and record its error instead of raising it."""
    if module in _imported or module in _failed:
        return
    _imported.add(module)
    try:
        _import_foreign(module, attribute)
    except Exception as error:  # a plugin may raise anything
        _failed[module] = _reason(error)


def _import_foreign(module: str, attribute: str = "") -> Any:
    """Import a module that is not jostle's, and return it or its attribute.

    What it prints goes to stderr, because stdout belongs to results. SystemExit and the like become errors.
    """
    with exits_as_errors(), redirect_stdout(sys.stderr), _named_when_slow(module):
        value: Any = importlib.import_module(module)
        for name in filter(None, attribute.split(".")):
            value = getattr(value, name)
    return value


@contextmanager
def _named_when_slow(module: str) -> Iterator[None]:
    """Name a module on stderr whose import has not ended after some seconds."""
    timer = threading.Timer(SLOW_S, _report_slow, (module,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _report_slow(module: str) -> None:
    sys.stderr.write(f"still importing {module} after {SLOW_S:g} s; it is not part of jostle\n")
    sys.stderr.flush()


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, ForeignExit) else f"{type(error).__name__}: {error}"


@cache
def _entry_points() -> tuple[EntryPoint, ...]:
    """Return the readable entry points of plugins; those that are malformed are recorded and passed over."""
    from importlib.metadata import distributions, entry_points

    try:
        entries = list(entry_points(group=GROUP))
    except Exception:  # one damaged file of any package: find out which, and read the others
        entries, seen = [], set[str]()
        for distribution in distributions():
            package = _package_name(distribution)
            if package in seen:  # the first on the path is the one that is imported
                continue
            seen.add(package)
            try:
                entries += distribution.entry_points.select(group=GROUP)
            except Exception as error:
                _malformed[package] = f"entry_points.txt cannot be read ({_reason(error)})"
                os.environ[TORCH_AUTOLOAD] = "0"  # torch reads all of them when imported, and would fail
    readable = []
    for entry in entries:
        try:
            readable.append((entry.module, entry.name, entry))
        except Exception:  # its value is not package.module:attribute
            package = "an unknown package" if entry.dist is None else _package_name(entry.dist)
            _malformed[package] = f"{entry.name!r} in group {GROUP} is {entry.value!r}, not package.module"
    return tuple(entry for *_, entry in sorted(readable, key=lambda one: one[:2]))


def _package_name(distribution: Distribution) -> str:
    try:
        name = distribution.metadata["Name"]
    except Exception:  # its METADATA is damaged
        name = None
    return str(name or getattr(distribution, "_path", None) or "an unknown package")


def _package_version(distribution: Distribution) -> str:
    try:
        return str(distribution.version or "")
    except Exception:
        return ""


def _add_current_folder() -> None:
    """Put the current folder on the module path, as `python -m` does."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def _top_package(module: str) -> str:
    return module.partition(".")[0]


def _checksum(module: str) -> str:
    """Return the checksum of a module's code, without comments, and of the files that it imports from beside it.

    Of an installed package the file of the module counts alone; its version tells the rest.
    """
    file = getattr(sys.modules.get(module), "__file__", None)
    if not file or module == "__main__":
        return ""
    top = sys.modules.get(_top_package(module))
    parent = Path(getattr(top, "__file__", None) or file).resolve().parent
    root = parent.parent if hasattr(top, "__path__") else parent
    path = Path(file).resolve()
    files = [path] if is_installed(root) else imported_files(path, root)
    try:
        if len(files) == 1:
            return f"sha256:{hashlib.sha256(code_of(path)).hexdigest()}"
        digest = hashlib.sha256()
        for one in files:
            digest.update(f"{one.relative_to(root).as_posix()} {hashlib.sha256(code_of(one)).hexdigest()}\n".encode())
    except OSError:
        return ""
    return f"sha256:{digest.hexdigest()}"
