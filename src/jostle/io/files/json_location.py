"""Locations in JSON texts, valid or broken: line, column, path and nearest key.

The standard parser reports at most a position. This scanner starts again from the beginning, without recursion, and
runs only after an error was found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

# A string, a bracket or separator, or a run of anything else: a number or a word.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)
# A list of numbers, or an object of such lists and plain values, matched without backtracking.
_FLAT = re.compile(r'\[[^\[\]{}"]*+\]|\{(?:[^{}\[\]"]++|"(?:[^"\\]|\\.)*+"|\[[^\[\]{}"]*+\])*+\}', re.DOTALL)
_PATH_PARTS = 6


@dataclass(frozen=True)
class JsonLocation:
    """Location in a JSON text; `str()` formats it for messages.

    Attributes:
        line: from 1.
        column: from 1.
        path: the containers around it, such as `database.v_1.annotations[0]`; empty at the top.
        key: the last key before it, or None.
    """

    line: int
    column: int
    path: str
    key: str | None

    def __str__(self) -> str:
        near = "" if self.key is None else f", nearest key {self.key!r}"
        inside = f", in {self.path}" if self.path else ""
        return f"line {self.line}, column {self.column}{near}{inside}"


@dataclass
class _Container:
    """An open bracket: the current key or index in it, and the keys so far."""

    is_object: bool
    at: str | int | None
    expects_key: bool
    keys: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Step:
    """A token and the state of the parser before it."""

    start: int
    token: str
    containers: list[_Container]
    is_key: bool
    last_key: str | None


def locate(text: str, position: int) -> JsonLocation:
    """Return the location of the character at `position`."""
    containers: list[_Container] = []
    key = None
    for step in _steps(text, whole_until=position):
        containers, key = step.containers, step.last_key
        if step.start >= position:
            break
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return JsonLocation(line, column, _path(containers), key)


def find_word(text: str, pattern: re.Pattern[str]) -> int:
    """Return the position of the first number or bare word that matches `pattern`, or the end of the text."""
    for step in _steps(text):
        if step.token[0] not in '"{}[],:' and pattern.fullmatch(step.token):
            return step.start
    return len(text)


def find_repeated_key(text: str) -> tuple[str, int, int]:
    """Return the first key that an object holds twice, with both positions.

    Raises:
        ValueError: if no key is repeated.
    """
    for step in _steps(text):
        if step.is_key:
            key = _decode(step.token)
            keys = step.containers[-1].keys
            if key in keys:
                return key, keys[key], step.start
            keys[key] = step.start
    raise ValueError("no key is repeated")


def _steps(text: str, *, whole_until: int = 0) -> Iterator[_Step]:
    """Yield every token; flat containers that end before `whole_until` are skipped, which is ten times as fast."""
    containers: list[_Container] = []
    last_key: str | None = None
    position, skipped = 0, ""
    while match := _TOKEN.search(text, position):
        token = match.group()
        position = match.end()
        if token in "{[" and whole_until and (flat := _FLAT.match(text, match.start())) and flat.end() <= whole_until:
            position = flat.end()
            if '"' in flat.group():  # a list of numbers has no keys
                skipped = flat.group()
            continue
        if skipped and match.end() > whole_until:  # the position is close: find the last key
            last_key, skipped = _last_key(skipped, last_key), ""
        inner = containers[-1] if containers else None
        is_key = token[0] == '"' and inner is not None and inner.expects_key
        yield _Step(match.start(), token, containers, is_key, last_key)
        if token in "{[":
            containers.append(_Container(token == "{", None if token == "{" else 0, expects_key=token == "{"))
        elif inner is None:
            continue
        elif token in "}]":
            containers.pop()
        elif token == ",":
            if isinstance(inner.at, int):
                inner.at += 1
            else:
                inner.at = None
            inner.expects_key = inner.is_object
        elif is_key:
            inner.at = last_key = _decode(token)
            inner.expects_key, skipped = False, ""
    yield _Step(len(text), " ", containers, False, _last_key(skipped, last_key))


def _last_key(skipped: str, before: str | None) -> str | None:
    """Return the last key in a skipped container, or the one before it."""
    last = before
    for step in _steps(skipped) if skipped else ():
        last = last if step.last_key is None else step.last_key
    return last


def _decode(token: str) -> str:
    try:
        return str(json.loads(token, strict=False))
    except ValueError:  # a broken escape: use the raw text
        return token[1:-1]


def _path(containers: list[_Container]) -> str:
    parts = [_format_part(frame.at) for frame in containers if frame.at is not None]
    if len(parts) > _PATH_PARTS:
        half = _PATH_PARTS // 2
        parts = [*parts[:half], " ... ", *parts[-half:]]
    return "".join(parts).removeprefix(".")


def _format_part(at: str | int | None) -> str:
    if isinstance(at, int):
        return f"[{at}]"
    return f".{at}" if at and re.fullmatch(r"[\w-]+", at) else f"[{at!r}]"
