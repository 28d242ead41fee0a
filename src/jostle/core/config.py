"""Settings: a TOML file and `key=value` overrides become a frozen dataclass; what is not known is refused."""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import re
import stat
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

from jostle.errors import BadValue

S = TypeVar("S")

MAX_BYTES = 1 << 20  # of a file of settings
_MAX_DEPTH = 32  # of tables and lists within each other
# The parser keeps every beginning of a dotted key, so that one of 100,000 parts would fill the memory.
_LONG_KEY = re.compile(
    rf"""(?<![\w-])(?:(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{_MAX_DEPTH + 1}}}""", re.ASCII
)
_NUMBERS = re.compile(r"\s*[-+.\w]+(\s*,\s*[-+.\w]+)+\s*")  # several, as 0.5,0.5,0.5
_TOO_DEEP = "tables or lists within each other without end; nothing here needs that"
_SHOWN = 200  # characters of a value in a message


def read_settings(kind: type[S], path: str | Path, overrides: Iterable[str] = ()) -> S:
    """Settings of a kind from a TOML file.

    Args:
        kind: a dataclass; fields that are dataclasses are tables of the file.
        overrides: `key=value` or `table.key=value`, the value in TOML's spelling, or plain text.

    Raises:
        BadValue: the file is not TOML, or holds a key or a value that the settings do not have.
    """
    return make_settings(kind, read_toml(path), overrides, where=str(path))


def is_toml(source: str | Path) -> bool:
    """Whether what may be a name or a file of settings is a file.

    >>> is_toml("thumos14-c"), is_toml("mine.toml"), is_toml(Path("mine"))
    (False, True, True)
    """
    return isinstance(source, Path) or source.lower().endswith(".toml")


def read_toml(path: str | Path) -> dict[str, Any]:
    """What a TOML file holds: text, finite numbers, truth values, lists and tables.

    Raises:
        BadValue: F59 if it is not TOML, F103 if it is no file of settings at all, F104 if it holds a value that no
            setting has.
    """
    file = Path(path)
    try:
        facts = file.stat()
        if not stat.S_ISREG(facts.st_mode):  # a pipe would block, a device might never end
            raise BadValue(f"{file}: not a regular file; give a file of settings", fault="F103")
        if facts.st_size > MAX_BYTES:
            raise BadValue(f"{file}: larger than {MAX_BYTES} bytes; no settings are that long", fault="F103")
        text = file.read_text(encoding="utf-8")
        if _LONG_KEY.search(text):
            raise BadValue(f"{file}: {_TOO_DEEP}", fault="F103")
        content = tomllib.loads(text)
    except OSError as error:
        raise BadValue(f"{file}: cannot be read ({error.strerror}); check the path") from None
    except RecursionError:
        raise BadValue(f"{file}: {_TOO_DEEP}", fault="F103") from None
    except BadValue:
        raise
    except ValueError as error:  # not TOML, not UTF-8, or a whole number too long for Python to read
        raise BadValue(f"{file}: not TOML: {str(error)[:200]}", fault="F59") from None
    plain: dict[str, Any] = _plain(content, str(file))
    return plain


def make_settings(kind: type[S], content: Mapping[str, Any], overrides: Iterable[str] = (), *, where: str = "") -> S:
    """Settings of a kind from a mapping, as a TOML file would give it; see `read_settings`."""
    merged: dict[str, Any] = _plain(content, where)
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise BadValue(f"an override is key=value or table.key=value, got {text!r}")
        *tables, name = key.strip().split(".")
        place = merged
        for table in tables:
            place = place.setdefault(table, {})
            if not isinstance(place, dict):
                raise BadValue(f"{text!r}: {table!r} is a value, not a table")
        place[name] = _parsed(value.strip(), key)
    made = _made(kind, merged, where, _paths(kind))
    assert isinstance(made, kind)
    return made


def parsed_pairs(pairs: Iterable[str]) -> dict[str, Any]:
    """Values of `key=value` by key, in TOML's spelling or plain text; lists become tuples.

    >>> parsed_pairs(["dim=256", "neck=channel", "ranges=[[0, 4], [4, 10000]]", "mean=0.5,0.5,0.5"])
    {'dim': 256, 'neck': 'channel', 'ranges': ((0, 4), (4, 10000)), 'mean': (0.5, 0.5, 0.5)}
    """
    made = {}
    for text in pairs:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise BadValue(f"a setting is key=value, got {text!r}")
        parsed = _parsed(value.strip(), key)
        made[key.strip()] = None if parsed == "none" else _tuples(parsed)
    return made


def fit_changes(kind: type[Any], changes: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """Changes to settings of a kind, each as its field wants it.

    Raises:
        BadValue: if there is no such field, or the value does not fit.
    """
    hints = typing.get_type_hints(kind)
    fields = [field.name for field in dataclasses.fields(kind)]
    made = {}
    for name, value in changes.items():
        if name not in fields:
            near = difflib.get_close_matches(name, fields, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(sorted(fields))}"
            raise BadValue(f"{where} has no setting {name}: {hint}")
        made[name] = _fitted(hints[name], value, f"{where}: {name}")
    return made


def settings_as_dict(settings: Any) -> dict[str, Any]:
    """The settings as plain values, for JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(settings)))
    return plain


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


def _parsed(text: str, place: str) -> Any:
    """A value in TOML's spelling; anything else is text, so that paths and names need no quotes."""
    for spelt in (text, f"[{text}]") if _NUMBERS.fullmatch(text) else (text,):
        try:
            found = tomllib.loads(f"value = {spelt}")["value"]
        except (ValueError, RecursionError):
            continue
        return _plain(found, place)
    return text


def _plain(value: Any, place: str, depth: int = 0) -> Any:
    """A copy of a value from outside, once all that it holds is known to be what settings are made of."""
    if depth > _MAX_DEPTH:
        raise BadValue(f"{place[:_SHOWN]}: {_TOO_DEEP}", fault="F103")
    if isinstance(value, Mapping):
        return {
            name: _plain(held, f"{place}: {name}" if place else str(name), depth + 1) for name, held in value.items()
        }
    if isinstance(value, list | tuple):
        return [_plain(held, place, depth + 1) for held in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise BadValue(f"{place}: a whole number of more than 64 bits", fault="F104")
    if isinstance(value, float) and not math.isfinite(value):
        raise BadValue(f"{place}: {value} is not finite; give a number", fault="F104")
    if not isinstance(value, str | int | float | None):
        raise BadValue(f"{place}: {value} is a {type(value).__name__}, and no setting is one", fault="F104")
    return value


def _paths(kind: Any, above: str = "") -> list[str]:
    """Every setting with the tables it is in, as `optimiser.lr`."""
    made = []
    for name, hint in typing.get_type_hints(kind).items():
        made.append(f"{above}{name}")
        for one in (hint, *typing.get_args(hint)):
            if dataclasses.is_dataclass(one):
                made += _paths(one, f"{above}{name}.")
    return made


def _nearest(name: str, fields: Iterable[str], paths: Iterable[str]) -> str:
    """What was meant by a key: a name of its own table, or else a path to one of any; empty if nothing is near."""
    near = difflib.get_close_matches(name, list(fields), n=1)
    if near:
        return near[0]
    by_leaf: dict[str, list[str]] = {}
    for path in paths:
        by_leaf.setdefault(path.rpartition(".")[2], []).append(path)
    near = difflib.get_close_matches(name, list(by_leaf), n=1, cutoff=0.75)
    return " or ".join(by_leaf[near[0]][:2]) if near else ""


def _made(kind: Any, content: Mapping[str, Any], where: str, paths: Sequence[str] = ()) -> Any:
    fields = {field.name: field for field in dataclasses.fields(kind)}
    hints = typing.get_type_hints(kind)
    values = {}
    for name, value in content.items():
        place = f"{where}: {name}" if where else name
        if name not in fields:
            near = _nearest(name, fields, paths)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(fields)}"
            raise BadValue(f"{place}: no such setting: {hint}", fault="F59")
        values[name] = _fitted(hints[name], value, place, paths)
    missing = [
        name
        for name, field in fields.items()
        if name not in values and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise BadValue(f"{where or kind.__name__}: {', '.join(missing)} must be given", fault="F59")
    return kind(**values)


def _fitted(hint: Any, value: Any, place: str, paths: Sequence[str] = ()) -> Any:
    """The value as the field wants it: lists become tuples, whole numbers floats, tables dataclasses."""
    origin, choices = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return _fitted_union(choices, value, place, paths)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, dict):
            raise _wrong(place, value, "a table")
        return _made(hint, value, place, paths)
    if origin is Literal:
        if value not in choices:
            raise _wrong(place, value, f"one of {', '.join(map(repr, choices))}")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise _wrong(place, value, "a list")
        return tuple(_fitted(choices[0], item, place) for item in value)
    if origin in (dict, Mapping):
        if not isinstance(value, dict):
            raise _wrong(place, value, "a table")
        return value
    if hint is Any:
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise _wrong(place, value, _SAID.get(hint, getattr(hint, "__name__", str(hint))))
    return value


def _fitted_union(choices: tuple[Any, ...], value: Any, place: str, paths: Sequence[str]) -> Any:
    errors = []
    for choice in choices:
        if choice is type(None):
            if value in (None, "none"):  # TOML has no null
                return None
            continue
        try:
            return _fitted(choice, value, place, paths)
        except BadValue as error:
            errors.append(error)
    raise errors[0]


def _wrong(place: str, value: Any, wanted: str) -> BadValue:
    shown = repr(value)
    return BadValue(
        f"{place}: {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '...'} is not {wanted}", fault="F59"
    )


_SAID = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
