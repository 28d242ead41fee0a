"""Settings: a TOML file and `key=value` overrides become a frozen dataclass; what is not known is refused."""

from __future__ import annotations

import dataclasses
import difflib
import json
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

from jostle.errors import BadValue

S = TypeVar("S")


def read_settings(kind: type[S], path: str | Path, overrides: Iterable[str] = ()) -> S:
    """Settings of a kind from a TOML file.

    Args:
        kind: a dataclass; fields that are dataclasses are tables of the file.
        overrides: `key=value` or `table.key=value`, the value in TOML's spelling, or plain text.

    Raises:
        BadValue: the file is not TOML, or holds a key or a value that the settings do not have.
    """
    file = Path(path)
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadValue(f"{file}: cannot be read ({error.strerror}); check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadValue(f"{file}: not TOML: {error}", fault="F59") from None
    except RecursionError:
        raise BadValue(f"{file}: lists within lists without end; nothing here needs that", fault="F59") from None
    return make_settings(kind, content, overrides, where=str(file))


def make_settings(kind: type[S], content: Mapping[str, Any], overrides: Iterable[str] = (), *, where: str = "") -> S:
    """Settings of a kind from a mapping, as a TOML file would give it; see `read_settings`."""
    merged: dict[str, Any] = json.loads(json.dumps(content))
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
        place[name] = _parsed(value.strip())
    made = _made(kind, merged, where)
    assert isinstance(made, kind)
    return made


def parsed_pairs(pairs: Iterable[str]) -> dict[str, Any]:
    """Values of `key=value` by key, in TOML's spelling or plain text; lists become tuples.

    >>> parsed_pairs(["dim=256", "neck=channel", "ranges=[[0, 4], [4, 10000]]"])
    {'dim': 256, 'neck': 'channel', 'ranges': ((0, 4), (4, 10000))}
    """
    made = {}
    for text in pairs:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise BadValue(f"a setting is key=value, got {text!r}")
        parsed = _parsed(value.strip())
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


def _parsed(text: str) -> Any:
    """A value in TOML's spelling; anything else is text, so that paths and names need no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _made(kind: Any, content: Mapping[str, Any], where: str) -> Any:
    fields = {field.name: field for field in dataclasses.fields(kind)}
    hints = typing.get_type_hints(kind)
    values = {}
    for name, value in content.items():
        place = f"{where}: {name}" if where else name
        if name not in fields:
            near = difflib.get_close_matches(name, fields, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(fields)}"
            raise BadValue(f"{place}: no such setting: {hint}", fault="F59")
        values[name] = _fitted(hints[name], value, place)
    missing = [
        name
        for name, field in fields.items()
        if name not in values and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise BadValue(f"{where or kind.__name__}: {', '.join(missing)} must be given", fault="F59")
    return kind(**values)


def _fitted(hint: Any, value: Any, place: str) -> Any:
    """The value as the field wants it: lists become tuples, whole numbers floats, tables dataclasses."""
    origin, choices = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return _fitted_union(choices, value, place)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, dict):
            raise _wrong(place, value, "a table")
        return _made(hint, value, place)
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


def _fitted_union(choices: tuple[Any, ...], value: Any, place: str) -> Any:
    errors = []
    for choice in choices:
        if choice is type(None):
            if value in (None, "none"):  # TOML has no null
                return None
            continue
        try:
            return _fitted(choice, value, place)
        except BadValue as error:
            errors.append(error)
    raise errors[0]


def _wrong(place: str, value: Any, wanted: str) -> BadValue:
    return BadValue(f"{place}: {value!r} is not {wanted}", fault="F59")


_SAID = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
