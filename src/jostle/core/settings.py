"""Settings that people write: TOML files and `key=value`, converted to dataclasses, with errors that name the place."""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import re
import stat
import tomllib
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from jostle.core.formatting import MAX_VALUE_CHARS
from jostle.core.schema import RENAMED_KEYS, Mismatch, MissingKeys, UnknownKey, current_key, parse
from jostle.errors import BadValue

S = TypeVar("S")

MAX_BYTES = 1 << 20  # of a settings file
_MAX_DEPTH = 32  # of nested tables and lists
# The parser stores every prefix of a dotted key, so that a key of 100,000 parts would fill the memory.
_LONG_KEY = re.compile(
    rf"""(?<![\w-])(?:(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{_MAX_DEPTH + 1}}}""", re.ASCII
)
_NUMBERS = re.compile(r"\s*[-+.\w]+(\s*,\s*[-+.\w]+)+\s*")  # several, as 0.5,0.5,0.5
_TOO_DEEP = "tables or lists are nested too deeply; no setting needs that"


def read_settings(kind: type[S], path: str | Path, overrides: Iterable[str] = ()) -> S:
    """Read settings from a TOML file into a dataclass.

    Args:
        kind: a dataclass; fields that are dataclasses are tables of the file.
        overrides: `key=value` or `table.key=value`, the value in TOML's spelling, or plain text.

    Raises:
        BadValue: the file is not TOML, or holds a key or a value that the settings do not have.
    """
    return make_settings(kind, read_toml(path), overrides, where=str(path))


def is_toml(source: str | Path) -> bool:
    """Return whether a source is a TOML file rather than a registered name.

    >>> is_toml("thumos14-c"), is_toml("mine.toml"), is_toml(Path("mine"))
    (False, True, True)
    """
    return isinstance(source, Path) or source.lower().endswith(".toml")


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read a TOML file whose values are text, finite numbers, booleans, lists and tables.

    Raises:
        BadValue: F59 if it is not TOML, F103 if it cannot be a settings file, F104 if it holds a value that no
            setting has.
    """
    file = Path(path)
    try:
        facts = file.stat()
        if not stat.S_ISREG(facts.st_mode):  # a pipe would block, a device might never end
            raise BadValue(f"{file}: not a regular file; give a settings file", fault="F103")
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
    plain: dict[str, Any] = _check_plain(content, str(file))
    return plain


def make_settings(kind: type[S], content: Mapping[str, Any], overrides: Iterable[str] = (), *, where: str = "") -> S:
    """Convert a mapping, as read from TOML, to a dataclass; see `read_settings`."""
    merged: dict[str, Any] = _check_plain(content, where)
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise BadValue(f"an override is key=value or table.key=value, got {text!r}")
        *tables, name = key.strip().split(".")
        target = merged
        for table in tables:
            target = target.setdefault(table, {})
            if not isinstance(target, dict):
                raise BadValue(f"{text!r}: {table!r} is a value, not a table")
        target[name] = _parse_value(value.strip(), key)
    settings: S = convert_value(kind, merged, where)
    return settings


def parse_pairs(pairs: Iterable[str]) -> dict[str, Any]:
    """Parse `key=value` texts into a dictionary; values are TOML or plain text, and lists become tuples.

    >>> parse_pairs(["dim=256", "neck=channel", "ranges=[[0, 4], [4, 10000]]", "mean=0.5,0.5,0.5"])
    {'dim': 256, 'neck': 'channel', 'ranges': ((0, 4), (4, 10000)), 'mean': (0.5, 0.5, 0.5)}
    """
    values = {}
    for text in pairs:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise BadValue(f"a setting is key=value, got {text!r}")
        parsed = _parse_value(value.strip(), key)
        values[key.strip()] = None if parsed == "none" else _to_tuples(parsed)
    return values


def convert_settings(kind: type[Any], changes: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """Convert changes to the field types of a dataclass."""
    hints = typing.get_type_hints(kind)
    fields = [field.name for field in dataclasses.fields(kind)]
    values = {}
    for key, value in changes.items():
        name = current_key(key, fields)
        if name not in fields:
            near = difflib.get_close_matches(name, fields, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(sorted(fields))}"
            raise BadValue(f"{where} has no setting {name}: {hint}")
        values[name] = convert_value(hints[name], value, f"{where}: {name}")
    return values


def with_former_keys(value: Any) -> Any:
    """Return plain settings under the keys of earlier versions, for fingerprints that must stay the same."""
    former = {new: old for old, new in RENAMED_KEYS.items()}
    if isinstance(value, dict):
        return {former.get(key, key): with_former_keys(content) for key, content in value.items()}
    return [with_former_keys(item) for item in value] if isinstance(value, list) else value


def settings_as_dict(settings: Any) -> dict[str, Any]:
    """Return settings as plain values, for JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(settings), default=str))  # paths are text
    return plain


def _to_tuples(value: Any) -> Any:
    return tuple(_to_tuples(item) for item in value) if isinstance(value, list) else value


def _parse_value(text: str, location: str) -> Any:
    """Parse a TOML value; anything else is text, so that paths and names need no quotes."""
    for candidate in (text, f"[{text}]") if _NUMBERS.fullmatch(text) else (text,):
        try:
            value = tomllib.loads(f"value = {candidate}")["value"]
        except (ValueError, RecursionError):
            continue
        return _check_plain(value, location)
    return text


def _check_plain(value: Any, location: str, depth: int = 0) -> Any:
    """Copy a value from outside, and check that it holds only types that settings may have."""
    if depth > _MAX_DEPTH:
        raise BadValue(f"{location[:MAX_VALUE_CHARS]}: {_TOO_DEEP}", fault="F103")
    if isinstance(value, Mapping):
        return {
            name: _check_plain(item, f"{location}: {name}" if location else str(name), depth + 1)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_check_plain(item, location, depth + 1) for item in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise BadValue(f"{location}: a whole number of more than 64 bits", fault="F104")
    if isinstance(value, float) and not math.isfinite(value):
        raise BadValue(f"{location}: {value} is not finite; give a number", fault="F104")
    if not isinstance(value, str | int | float | None):
        raise BadValue(f"{location}: {value} is a {type(value).__name__}, and no setting is one", fault="F104")
    return value


def _setting_paths(kind: Any, above: str = "") -> list[str]:
    """Return the dotted path of every setting, such as `optimiser.lr`."""
    paths: list[str] = []
    for name, hint in typing.get_type_hints(kind).items():
        paths.append(f"{above}{name}")
        for type_ in (hint, *typing.get_args(hint)):
            if dataclasses.is_dataclass(type_):
                paths += _setting_paths(type_, f"{above}{name}.")
    return paths


def _nearest(name: str, fields: Iterable[str], paths: Iterable[str]) -> str:
    """Return the setting that a misspelt key most likely means, in its own table or any other, or an empty string."""
    near = difflib.get_close_matches(name, list(fields), n=1)
    if near:
        return near[0]
    by_leaf: dict[str, list[str]] = {}
    for path in paths:
        by_leaf.setdefault(path.rpartition(".")[2], []).append(path)
    near = difflib.get_close_matches(name, list(by_leaf), n=1, cutoff=0.75)
    return " or ".join(by_leaf[near[0]][:2]) if near else ""


def convert_value(kind: Any, value: Any, where: str) -> Any:
    """Convert a plain value to a type: lists to tuples, integers to floats, tables to dataclasses.

    Raises:
        BadValue: F59 if the type does not take it.
    """
    try:
        return parse(kind, value, strict=True)
    except Mismatch as error:
        names = [str(key) for key in error.path if isinstance(key, str)]
        problem = error.problem
        if isinstance(error, UnknownKey):
            paths = _setting_paths(kind) if dataclasses.is_dataclass(kind) else []
            near = _nearest(current_key(names[-1], error.fields), error.fields, paths)
            problem = f"no such setting: {f'did you mean {near}?' if near else 'there are ' + ', '.join(error.fields)}"
        if isinstance(error, MissingKeys) and not where and not names:
            where = error.kind
        raise BadValue(": ".join([*([where] if where else []), *names, problem]), fault="F59") from None
