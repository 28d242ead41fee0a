"""JSON of a run folder as frozen dataclasses: whatever does not have their shape is refused by its place in the file.

A record is written down once, as a dataclass; its type hints are all there is to say about what a file may hold. Keys
that no record knows are let through, as a later version may write more.
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

from jostle.errors import DataError
from jostle.io.files.text import describe, read_json

R = TypeVar("R")
Fit = Callable[[Any], Any]

DEEPEST = 20  # of values that nothing is known of
MOST = 2**63 - 1  # of whole numbers: what an array can hold


@dataclass(frozen=True)
class Within:
    """The ends between which a number lies, both included."""

    least: float
    most: float = math.inf


Count = Annotated[int, Within(0)]
Share = Annotated[float, Within(0, 1)]
Interval = tuple[Share, Share]


class Misfit(Exception):
    """A value that does not have its shape. A record may raise it of itself when it is made."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self._keys: list[str | int] = []

    def under(self, key: str | int) -> Misfit:
        """The same, seen from one level further out."""
        self._keys.insert(0, key)
        return self

    def __str__(self) -> str:
        place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in self._keys).lstrip(".")
        return f"{place} {self.args[0]}".lstrip()


def read_record(kind: type[R], path: Path, remedy: str) -> R:
    """The record in a JSON file.

    Args:
        remedy: what to do where the file is missing or damaged.

    Raises:
        DataError: if the file cannot be read, is no JSON, or does not have the record's shape.
    """
    if not path.exists() and not path.is_symlink():
        raise DataError(f"{path}: not there; {remedy}")
    try:
        return fitted(kind, read_json(path))
    except Misfit as misfit:
        raise DataError(f"{path}: {misfit}; {remedy}", fault="F110") from None
    except DataError as error:
        raise DataError(f"{error}; {remedy}", fault="F110") from None


def fitted(kind: type[R], value: Any) -> R:
    """A plain value in the shape of a record.

    Raises:
        Misfit: if it does not have it.
    """
    fit: Callable[[Any], R] = _fit_for(typing.cast(Any, kind))
    return fit(value)


@cache
def _fit_for(hint: Any) -> Fit:
    """What turns a plain value into one of a type; made once a type, as journals are long."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return partial(_between, _fit_for(inner[0]), inner[1])
    if origin is Literal:
        return partial(_one_of, inner)
    if origin in (Union, types.UnionType):
        return partial(_any_of, tuple(_fit_for(choice) for choice in inner if choice is not type(None)))
    if origin is tuple:
        if inner[-1] is Ellipsis:
            return partial(_each, _fit_for(inner[0]))
        return partial(_row, tuple(map(_fit_for, inner)))
    if origin is dict:
        return partial(_table, _number_in_words if inner[0] is int else _text, _fit_for(inner[1]))
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        fields = [field for field in dataclasses.fields(hint) if field.init]
        wanted = {field.name for field in fields if field.default is dataclasses.MISSING}
        return partial(_made, hint, {field.name: _fit_for(hints[field.name]) for field in fields}, wanted)
    return _PLAIN[hint]


def _made(kind: Callable[..., Any], fits: Mapping[str, Fit], wanted: set[str], value: Any) -> Any:
    if not isinstance(value, dict):
        raise _wrong(value, "an object")
    values = {}
    for name, fit in fits.items():
        if name in value:
            try:
                values[name] = fit(value[name])
            except Misfit as misfit:
                raise misfit.under(name) from None
        elif name in wanted:
            raise Misfit("is missing").under(name)
    return kind(**values)


def _each(fit: Fit, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _wrong(value, "a list")
    made = []
    for place, part in enumerate(value):
        try:
            made.append(fit(part))
        except Misfit as misfit:
            raise misfit.under(place) from None
    return tuple(made)


def _row(fits: tuple[Fit, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple) or len(value) != len(fits):
        raise _wrong(value, f"a list of {len(fits)}")
    return tuple(fit(part) for fit, part in zip(fits, value, strict=True))


def _table(key: Fit, fit: Fit, value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise _wrong(value, "an object")
    made = {}
    for name, part in value.items():
        try:
            made[key(name)] = fit(part)
        except Misfit as misfit:
            raise misfit.under(name) from None
    return made


def _any_of(fits: tuple[Fit, ...], value: Any) -> Any:
    """One of several types or null; the first that fits."""
    if value is None:
        return None
    for fit in fits[:-1]:
        try:
            return fit(value)
        except Misfit:
            continue
    return fits[-1](value)


def _one_of(choices: tuple[Any, ...], value: Any) -> Any:
    if not isinstance(value, str | int) or isinstance(value, bool) or value not in choices:
        raise _wrong(value, " or ".join(map(repr, choices)))
    return value


def _between(fit: Fit, ends: Within, value: Any) -> Any:
    made = fit(value)
    if not ends.least <= made <= ends.most:
        most = "" if math.isinf(ends.most) else f" and at most {ends.most:g}"
        raise _wrong(value, f"at least {ends.least:g}{most}")
    return made


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(value, "text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Misfit("holds half a character") from None
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MOST:
        raise _wrong(value, f"a whole number of at most {MOST}")
    return value


def _number_in_words(value: Any) -> int:
    """The key of an object, which JSON has as text."""
    try:
        return _whole(int(value))
    except ValueError:
        raise Misfit("is no whole number") from None


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise _wrong(value, "a number")
    return float(value)


def _yes_or_no(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(value, "true or false")
    return value


def _anything(value: Any, depth: int = 0) -> Any:
    """A value that is only shown; one without end could not even be shown."""
    if depth > DEEPEST:
        raise Misfit("is nested too deeply")
    if isinstance(value, str):
        return _text(value)
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        _anything(part, depth + 1)
    for key in value if isinstance(value, dict) else ():
        _text(key)
    return value


_PLAIN: dict[Any, Fit] = {str: _text, int: _whole, float: _number, bool: _yes_or_no, Any: _anything}


def _wrong(value: Any, wanted: str) -> Misfit:
    return Misfit(f"is {describe(value)}, not {wanted}")
