"""Types of values that callers give to options, held against what a field declares."""

from __future__ import annotations

import collections.abc
import os
import types
import typing
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, Union

from jostle.errors import BadValue, UnknownName

_WORDS: dict[Any, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    Fraction: "a number",
    str: "text",
    Path: "a path",
    types.NoneType: "None",
}


def check_option(name: str, hint: Any, value: Any) -> None:
    """Raise BadValue unless a value is of the type of an option.

    A class that only type checkers see is `Any` here, and takes every value.

    Args:
        name: of the option, for the message.
        hint: its type.

    >>> check_option("jobs", int | None, 2)
    >>> check_option("jobs", int | None, "2")
    Traceback (most recent call last):
    ...
    jostle.errors.BadValue: jobs must be a whole number or None, not '2'
    """
    if _fits(hint, value):
        return
    for part in _parts(hint):
        values = [value]
        if _is_list(part) and isinstance(value, list | tuple | set | frozenset):
            (part, *_), values = typing.get_args(part), list(value)
        if typing.get_origin(part) is Literal:
            for unknown in (one for one in values if isinstance(one, str) and one not in typing.get_args(part)):
                raise UnknownName(name.replace("_", " "), unknown, typing.get_args(part))
    words = dict.fromkeys(_in_words(part) for part in _parts(hint))
    raise BadValue(f"{name} must be {' or '.join(words)}, not {repr(value)[:80]}")


def _is_list(hint: Any) -> bool:
    origin = typing.get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Iterable) and not issubclass(origin, Mapping)


def _parts(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,)


def _fits(hint: Any, value: Any) -> bool:
    """Return whether a value is of a type; numbers of NumPy are numbers, and a boolean is none."""
    parts = _parts(hint)
    if len(parts) > 1:
        return any(_fits(part, value) for part in parts)
    if hint is Any:
        return True
    if hint is None:
        return value is None
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return isinstance(value, str) and value in inner
    if origin is not None and isinstance(origin, type):
        return _fits_collection(origin, inner, value)
    if hint is bool or _is_boolean(value):
        return hint in (bool, object) and _is_boolean(value)
    if hint is int:
        return isinstance(value, Integral)
    if hint in (float, Fraction):
        return isinstance(value, Real)
    if hint is Path:
        return isinstance(value, os.PathLike)
    return isinstance(value, hint) if isinstance(hint, type) else True


def _fits_collection(origin: Any, inner: tuple[Any, ...], value: Any) -> bool:
    if origin is collections.abc.Callable:
        return callable(value)
    if isinstance(value, str | bytes) or not isinstance(value, origin):
        return False
    if issubclass(origin, Mapping):
        return all(isinstance(key, str) for key in value)
    if isinstance(value, Collection) and inner:  # an iterator can be read once
        return all(_fits(inner[0], one) for one in value)
    return True


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


def _in_words(hint: Any) -> str:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return "one of " + ", ".join(map(repr, inner))
    if origin is collections.abc.Callable:
        return "a function"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a mapping by names"
    if _is_list(hint):
        choices = inner and typing.get_origin(inner[0]) is Literal
        return f"a list of {'names' if choices else {str: 'texts'}.get(inner[0], 'values') if inner else 'values'}"
    return _WORDS.get(hint, getattr(hint, "__name__", str(hint)))
