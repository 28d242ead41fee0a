"""Where in a JSON text something stands: line, column, path and nearest key, also when the text is broken.

The standard parser says at most a position. This walk starts again from the beginning, without recursion, and
is only taken once something is already known to be wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

# A string, a bracket or separator, or a run of anything else: a number or a word.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)
# A list of numbers, or an object of such lists and of plain values, taken at once and without ever going back.
_FLAT = re.compile(r'\[[^\[\]{}"]*+\]|\{(?:[^{}\[\]"]++|"(?:[^"\\]|\\.)*+"|\[[^\[\]{}"]*+\])*+\}', re.DOTALL)
_PATH_PARTS = 6


@dataclass(frozen=True)
class Place:
    """A spot in a JSON text; `str()` gives it the way messages print it.

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
class _Open:
    """A bracket that is still open: the key or index under it, and the keys met so far."""

    is_object: bool
    at: str | int | None
    expects_key: bool
    keys: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Step:
    """One token with its surroundings as they are before it takes effect."""

    start: int
    token: str
    opened: list[_Open]
    is_key: bool
    last_key: str | None


def place_at(text: str, position: int) -> Place:
    """The place of the character at `position`."""
    opened: list[_Open] = []
    key = None
    for step in _steps(text, whole_until=position):
        opened, key = step.opened, step.last_key
        if step.start >= position:
            break
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return Place(line, column, _path(opened), key)


def find_word(text: str, pattern: re.Pattern[str]) -> int:
    """The position of the first number or bare word that matches `pattern`, or else the end of the text."""
    for step in _steps(text):
        if step.token[0] not in '"{}[],:' and pattern.fullmatch(step.token):
            return step.start
    return len(text)


def find_repeated_key(text: str) -> tuple[str, int, int]:
    """The first key that its object already holds, and the positions of the two.

    Raises:
        ValueError: if no key is repeated.
    """
    for step in _steps(text):
        if step.is_key:
            key = _decoded(step.token)
            keys = step.opened[-1].keys
            if key in keys:
                return key, keys[key], step.start
            keys[key] = step.start
    raise ValueError("no key is repeated")


def _steps(text: str, *, whole_until: int = 0) -> Iterator[_Step]:
    """Every token; flat containers that end before `whole_until` are passed over, which is ten times as fast."""
    opened: list[_Open] = []
    last_key: str | None = None
    position, passed = 0, ""
    while match := _TOKEN.search(text, position):
        token = match.group()
        position = match.end()
        if token in "{[" and whole_until and (flat := _FLAT.match(text, match.start())) and flat.end() <= whole_until:
            position = flat.end()
            if '"' in flat.group():  # a list of numbers has no key, and hides none that came before it
                passed = flat.group()
            continue
        if passed and match.end() > whole_until:  # the end is near: which key was the last?
            last_key, passed = _last_key(passed, last_key), ""
        inner = opened[-1] if opened else None
        is_key = token[0] == '"' and inner is not None and inner.expects_key
        yield _Step(match.start(), token, opened, is_key, last_key)
        if token in "{[":
            opened.append(_Open(token == "{", None if token == "{" else 0, expects_key=token == "{"))
        elif inner is None:
            continue
        elif token in "}]":
            opened.pop()
        elif token == ",":
            if isinstance(inner.at, int):
                inner.at += 1
            else:
                inner.at = None
            inner.expects_key = inner.is_object
        elif is_key:
            inner.at = last_key = _decoded(token)
            inner.expects_key, passed = False, ""
    yield _Step(len(text), " ", opened, False, _last_key(passed, last_key))


def _last_key(passed: str, before: str | None) -> str | None:
    """The last key in a container that was passed over, or the one before it."""
    last = before
    for step in _steps(passed) if passed else ():
        last = last if step.last_key is None else step.last_key
    return last


def _decoded(token: str) -> str:
    try:
        return str(json.loads(token, strict=False))
    except ValueError:  # a broken escape: the raw text is the best name there is
        return token[1:-1]


def _path(opened: list[_Open]) -> str:
    parts = [_part(frame.at) for frame in opened if frame.at is not None]
    if len(parts) > _PATH_PARTS:
        half = _PATH_PARTS // 2
        parts = [*parts[:half], " ... ", *parts[-half:]]
    return "".join(parts).removeprefix(".")


def _part(at: str | int | None) -> str:
    if isinstance(at, int):
        return f"[{at}]"
    return f".{at}" if at and re.fullmatch(r"[\w-]+", at) else f"[{at!r}]"
