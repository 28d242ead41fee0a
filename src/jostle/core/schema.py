"""Dataclasses as schemas: one parser a type hint, for settings that people write and for records that programs write.

Settings (TOML, command line) are strict: an unknown key is refused. Of records (JSON) unknown keys are ignored,
because a later version may write more. A value that does not match is a `Mismatch`, which knows its place; who read
the file turns it into a message.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union

from jostle.core.formatting import describe, shorten
from jostle.errors import BadValue

T = TypeVar("T")
Parser = Callable[[Any], Any]

RENAMED_KEYS = {"released_faults": "reproduce_bugs"}  # former key: present key; files keep the former one

MAX_DEPTH = 20  # of values without a schema
MAX_INTEGER = 2**63 - 1  # what an array can hold


@dataclass(frozen=True)
class Bounds:
    """Inclusive bounds of a number."""

    minimum: float
    maximum: float = math.inf


Count = Annotated[int, Bounds(0)]
Share = Annotated[float, Bounds(0, 1)]
Interval = tuple[Share, Share]


class Mismatch(Exception):
    """A value that does not match its schema; a record may raise it from `__post_init__`.

    Attributes:
        path: keys and indices that lead to the value.
        problem: what is wrong with it, in words that follow the path.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path: list[str | int] = []

    def under(self, key: str | int) -> Mismatch:
        """Prefix the error's path with a key, and return the error."""
        self.path.insert(0, key)
        return self

    def __str__(self) -> str:
        path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.path).lstrip(".")
        return f"{path} {self.problem}".lstrip()


class UnknownKey(Mismatch):
    """A key that a strict schema does not have.

    Attributes:
        fields: the keys that its table has.
    """

    def __init__(self, key: str, fields: Collection[str]) -> None:
        super().__init__(f"no such setting: {key}")
        self.fields = fields
        self.under(key)


class MissingKeys(Mismatch):
    """Keys that a strict schema must have."""

    def __init__(self, keys: Iterable[str], kind: str) -> None:
        super().__init__(f"{', '.join(keys)} must be given")
        self.kind = kind


def parse(kind: type[T], value: Any, *, strict: bool = False) -> T:
    """Convert plain values to a dataclass, or to any other type.

    Args:
        strict: whether the value is a setting that a person wrote; else it is read from a record.

    Raises:
        Mismatch: if the value does not match the schema.
    """
    parser: Callable[[Any], T] = _parser_for(typing.cast(Any, kind), strict)
    return parser(value)


def current_key(key: str, fields: Collection[str]) -> str:
    """Return the present name of a key that files written by earlier versions call by a former one."""
    renamed = RENAMED_KEYS.get(key, key)
    return renamed if renamed in fields else key


@cache
def _parser_for(hint: Any, strict: bool) -> Parser:
    """Return the parser of a type; cached, because journals are long."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    inside = partial(_parser_for, strict=strict)
    if origin is Annotated:
        return partial(_parse_bounded, inside(inner[0]), inner[1], strict)
    if origin is Literal:
        return partial(_parse_choice if strict else _parse_literal, inner)
    if origin in (Union, types.UnionType):
        if strict:
            return partial(_parse_alternatives, tuple(map(inside, inner)))
        return partial(_parse_union, tuple(inside(choice) for choice in inner if choice is not type(None)))
    if origin is tuple and not strict and inner[-1] is not Ellipsis:
        return partial(_parse_tuple, tuple(map(inside, inner)))
    if origin in (tuple, Sequence, Iterable):
        return partial(_parse_list, inside(inner[0]), strict)
    if origin in (dict, Mapping):
        if strict:
            return partial(_parse_instance, dict, "a table")
        return partial(_parse_dict, _parse_integer_key if inner[0] is int else _parse_text, inside(inner[1]))
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _dataclass_parser(hint, strict)
    if not strict:
        return _PLAIN[hint]
    return _SETTINGS.get(hint) or partial(_parse_instance, hint, getattr(hint, "__name__", str(hint)))


def _dataclass_parser(kind: type[Any], strict: bool) -> Parser:
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = [field for field in dataclasses.fields(kind) if field.init]
    required = [
        field.name
        for field in fields
        if field.default is dataclasses.MISSING and not (strict and field.default_factory is not dataclasses.MISSING)
    ]
    parsers = {field.name: _parser_for(hints[field.name], strict) for field in fields}
    return partial(_parse_table if strict else _parse_object, kind, parsers, required)


def _parse_object(kind: Callable[..., Any], parsers: Mapping[str, Parser], required: list[str], value: Any) -> Any:
    """Parse a dataclass of a record; keys that it does not have are ignored."""
    if not isinstance(value, dict):
        raise _of_type(value, "an object")
    if not RENAMED_KEYS.keys().isdisjoint(value):
        value = {current_key(key, parsers): content for key, content in value.items()}
    values = {}
    for name, parser in parsers.items():
        if name in value:
            try:
                values[name] = parser(value[name])
            except Mismatch as error:
                raise error.under(name) from None
        elif name in required:
            raise Mismatch("is missing").under(name)
    return kind(**values)


def _parse_table(kind: type[Any], parsers: Mapping[str, Parser], required: list[str], value: Any) -> Any:
    """Parse a dataclass of settings; every key must be one of its fields."""
    if not isinstance(value, dict):
        raise _setting_of_type(value, "a table")
    values = {}
    for key, content in value.items():
        name = current_key(key, parsers)
        if name not in parsers:
            raise UnknownKey(key, parsers)
        try:
            values[name] = parsers[name](content)
        except Mismatch as error:
            raise error.under(key) from None
    missing = [name for name in required if name not in values]
    if missing:
        raise MissingKeys(missing, kind.__name__)
    return kind(**values)


def _parse_list(parser: Parser, strict: bool, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise (_setting_of_type if strict else _of_type)(value, "a list")
    values = []
    for index, part in enumerate(value):
        try:
            values.append(parser(part))
        except Mismatch as error:
            raise error.under(index) from None
    return tuple(values)


def _parse_tuple(parsers: tuple[Parser, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple) or len(value) != len(parsers):
        raise _of_type(value, f"a list of {len(parsers)}")
    return tuple(parser(part) for parser, part in zip(parsers, value, strict=True))


def _parse_dict(parse_key: Parser, parser: Parser, value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise _of_type(value, "an object")
    values = {}
    for name, part in value.items():
        try:
            values[parse_key(name)] = parser(part)
        except Mismatch as error:
            raise error.under(name) from None
    return values


def _parse_union(parsers: tuple[Parser, ...], value: Any) -> Any:
    """Parse null or one of several types; the first that matches."""
    if value is None:
        return None
    for parser in parsers[:-1]:
        try:
            return parser(value)
        except Mismatch:
            continue
    return parsers[-1](value)


def _parse_alternatives(parsers: tuple[Parser, ...], value: Any) -> Any:
    """Parse a setting of one of several types, the first that matches; else the first says what is wrong."""
    errors: list[Exception] = []
    for parser in parsers:
        try:
            return parser(value)
        except (Mismatch, BadValue) as error:  # settings check themselves when they are made
            if parser is not _parse_none:
                errors.append(error)
    raise errors[0]


def _parse_literal(choices: tuple[Any, ...], value: Any) -> Any:
    if not isinstance(value, str | int) or isinstance(value, bool) or value not in choices:
        raise _of_type(value, " or ".join(map(repr, choices)))
    return value


def _parse_choice(choices: tuple[Any, ...], value: Any) -> Any:
    if value not in choices:
        near = difflib.get_close_matches(str(value), [str(choice) for choice in choices], n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise _setting_of_type(value, f"one of {', '.join(map(repr, choices))}{hint}")
    return value


def _parse_bounded(parser: Parser, bounds: Bounds, strict: bool, value: Any) -> Any:
    number = parser(value)
    if not bounds.minimum <= number <= bounds.maximum:
        most = "" if math.isinf(bounds.maximum) else f" and at most {bounds.maximum:g}"
        raise (_setting_of_type if strict else _of_type)(value, f"at least {bounds.minimum:g}{most}")
    return number


def _parse_text(value: Any) -> str:
    if not isinstance(value, str):
        raise _of_type(value, "text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Mismatch("holds an incomplete character") from None
    return value


def _parse_integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MAX_INTEGER:
        raise _of_type(value, f"a whole number of at most {MAX_INTEGER}")
    return value


def _parse_integer_key(value: Any) -> int:
    """Parse the key of an object, which is text in JSON, as an integer."""
    try:
        return _parse_integer(int(value))
    except ValueError:
        raise Mismatch("is not a whole number") from None


def _parse_number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise _of_type(value, "a number")
    return float(value)


def _parse_boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _of_type(value, "true or false")
    return value


def _parse_any(value: Any, depth: int = 0) -> Any:
    """Check the depth and text of a value without a schema."""
    if depth > MAX_DEPTH:
        raise Mismatch("is nested too deeply")
    if isinstance(value, str):
        return _parse_text(value)
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        _parse_any(part, depth + 1)
    for key in value if isinstance(value, dict) else ():
        _parse_text(key)
    return value


_PLAIN: dict[Any, Parser] = {
    str: _parse_text,
    int: _parse_integer,
    float: _parse_number,
    bool: _parse_boolean,
    Any: _parse_any,
}


def _parse_instance(kind: type[Any], words: str, value: Any) -> Any:
    """Take a setting that is of a type already; a truth value is no number."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise _setting_of_type(value, words)
    return value


def _parse_none(value: Any) -> None:
    if value not in (None, "none"):  # TOML has no null
        raise Mismatch("is not none")


def _parse_float(value: Any) -> float:
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    parsed: float = _parse_instance(float, "a number", value)
    return parsed


def _parse_path(value: Any) -> Path:
    path: Path = Path(value) if isinstance(value, str) else _parse_instance(Path, "Path", value)
    return path


_SETTINGS: dict[Any, Parser] = {
    str: partial(_parse_instance, str, "text"),
    int: partial(_parse_instance, int, "a whole number"),
    float: _parse_float,
    bool: partial(_parse_instance, bool, "true or false"),
    Path: _parse_path,
    Any: lambda value: value,
    types.NoneType: _parse_none,
}


def _of_type(value: Any, expected: str) -> Mismatch:
    return Mismatch(f"is {describe(value)}, not {expected}")


def _setting_of_type(value: Any, expected: str) -> Mismatch:
    return Mismatch(f"{shorten(value)} is not {expected}")
