"""Validated JSON records: dataclasses whose type hints are the schema.

Errors name the place in the file. Unknown keys are ignored, because a later version may write more.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union

from jostle.core.config import RENAMED_KEYS, current_key
from jostle.errors import DataError
from jostle.io.files.text import describe, read_json

R = TypeVar("R")
Parser = Callable[[Any], Any]

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


class ValidationError(Exception):
    """A value that does not match its schema; a record may raise it from `__post_init__`."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self._keys: list[str | int] = []

    def under(self, key: str | int) -> ValidationError:
        """Prefix the error's path with a key, and return the error."""
        self._keys.insert(0, key)
        return self

    def __str__(self) -> str:
        path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in self._keys).lstrip(".")
        return f"{path} {self.args[0]}".lstrip()


def read_record(kind: type[R], path: Path, remedy: str) -> R:
    """Read a record from a JSON file.

    Args:
        remedy: what to do if the file is missing or damaged, for the message.

    Raises:
        DataError: if the file cannot be read, is not JSON, or does not match the record's schema.
    """
    if not path.exists() and not path.is_symlink():
        raise DataError(f"{path}: does not exist; {remedy}")
    try:
        return parse_record(kind, read_json(path))
    except ValidationError as error:
        raise DataError(f"{path}: {error}; {remedy}", fault="F110") from None
    except DataError as error:
        raise DataError(f"{error}; {remedy}", fault="F110") from None


def parse_record(kind: type[R], value: Any) -> R:
    """Convert plain JSON values to a record.

    Raises:
        ValidationError: if the value does not match the record's schema.
    """
    parse: Callable[[Any], R] = _parser_for(typing.cast(Any, kind))
    return parse(value)


@cache
def _parser_for(hint: Any) -> Parser:
    """Return the parser of a type; cached, because journals are long."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return partial(_parse_bounded, _parser_for(inner[0]), inner[1])
    if origin is Literal:
        return partial(_parse_literal, inner)
    if origin in (Union, types.UnionType):
        return partial(_parse_union, tuple(_parser_for(choice) for choice in inner if choice is not type(None)))
    if origin is tuple:
        if inner[-1] is Ellipsis:
            return partial(_parse_list, _parser_for(inner[0]))
        return partial(_parse_tuple, tuple(map(_parser_for, inner)))
    if origin is dict:
        return partial(_parse_dict, _parse_integer_key if inner[0] is int else _parse_text, _parser_for(inner[1]))
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        fields = [field for field in dataclasses.fields(hint) if field.init]
        required = {field.name for field in fields if field.default is dataclasses.MISSING}
        return partial(
            _parse_dataclass, hint, {field.name: _parser_for(hints[field.name]) for field in fields}, required
        )
    return _PLAIN[hint]


def _parse_dataclass(kind: Callable[..., Any], parsers: Mapping[str, Parser], required: set[str], value: Any) -> Any:
    if not isinstance(value, dict):
        raise _type_error(value, "an object")
    if not RENAMED_KEYS.keys().isdisjoint(value):
        value = {current_key(key, parsers): content for key, content in value.items()}
    values = {}
    for name, parse in parsers.items():
        if name in value:
            try:
                values[name] = parse(value[name])
            except ValidationError as error:
                raise error.under(name) from None
        elif name in required:
            raise ValidationError("is missing").under(name)
    return kind(**values)


def _parse_list(parse: Parser, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _type_error(value, "a list")
    values = []
    for index, part in enumerate(value):
        try:
            values.append(parse(part))
        except ValidationError as error:
            raise error.under(index) from None
    return tuple(values)


def _parse_tuple(parsers: tuple[Parser, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple) or len(value) != len(parsers):
        raise _type_error(value, f"a list of {len(parsers)}")
    return tuple(parse(part) for parse, part in zip(parsers, value, strict=True))


def _parse_dict(parse_key: Parser, parse: Parser, value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise _type_error(value, "an object")
    values = {}
    for name, part in value.items():
        try:
            values[parse_key(name)] = parse(part)
        except ValidationError as error:
            raise error.under(name) from None
    return values


def _parse_union(parsers: tuple[Parser, ...], value: Any) -> Any:
    """Parse null or one of several types; the first that matches."""
    if value is None:
        return None
    for parse in parsers[:-1]:
        try:
            return parse(value)
        except ValidationError:
            continue
    return parsers[-1](value)


def _parse_literal(choices: tuple[Any, ...], value: Any) -> Any:
    if not isinstance(value, str | int) or isinstance(value, bool) or value not in choices:
        raise _type_error(value, " or ".join(map(repr, choices)))
    return value


def _parse_bounded(parse: Parser, bounds: Bounds, value: Any) -> Any:
    number = parse(value)
    if not bounds.minimum <= number <= bounds.maximum:
        most = "" if math.isinf(bounds.maximum) else f" and at most {bounds.maximum:g}"
        raise _type_error(value, f"at least {bounds.minimum:g}{most}")
    return number


def _parse_text(value: Any) -> str:
    if not isinstance(value, str):
        raise _type_error(value, "text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValidationError("holds an incomplete character") from None
    return value


def _parse_integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MAX_INTEGER:
        raise _type_error(value, f"a whole number of at most {MAX_INTEGER}")
    return value


def _parse_integer_key(value: Any) -> int:
    """Parse the key of an object, which is text in JSON, as an integer."""
    try:
        return _parse_integer(int(value))
    except ValueError:
        raise ValidationError("is not a whole number") from None


def _parse_number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise _type_error(value, "a number")
    return float(value)


def _parse_boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _type_error(value, "true or false")
    return value


def _parse_any(value: Any, depth: int = 0) -> Any:
    """Check the depth and text of a value without a schema."""
    if depth > MAX_DEPTH:
        raise ValidationError("is nested too deeply")
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


def _type_error(value: Any, expected: str) -> ValidationError:
    return ValidationError(f"is {describe(value)}, not {expected}")
