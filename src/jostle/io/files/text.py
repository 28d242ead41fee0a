"""Reading of untrusted text and JSON files as UTF-8, with errors that name the place.

The standard JSON parser reports at most a position. Line, column, path and nearest key are found by a scanner that
starts again from the beginning, without recursion, and runs only after an error was found.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from jostle.core.formatting import describe
from jostle.errors import DataError

# Parsed JSON takes about ten times the memory of its text.
MAX_BYTES = 512 << 20
# A file of brackets and commas takes far more memory than one of text: each may become a value.
MAX_VALUES = 100_000_000
# All shorter integers fit a float; Python's own limit of 4300 digits can be switched off from outside.
MAX_DIGITS = 300

# Of an unpacked gzip file to its size: text seldom reaches ten, and zeros a thousand.
MAX_RATIO = 100
_MIN_UNPACKED_LIMIT = 64 << 20
_READ_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARKS = (  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16, little-endian"),
    (b"\xfe\xff", "UTF-16, big-endian"),
)
_OTHER_FORMATS = (
    (b"PK\x03\x04", "a zip archive"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04", "a Python pickle"),
    (b"\x80\x05", "a Python pickle"),
)
_CONSTANT = re.compile(r"-?Infinity|NaN")
_LONG_INTEGER = re.compile(rf"-?\d{{{MAX_DIGITS + 1},}}")


class _ParserStop(Exception):
    """Base class of exceptions that stop the JSON parser; the location is determined afterwards."""


class RepeatedKey(_ParserStop):
    """An object that holds a key twice; raised by object hooks."""


class TooManyObjects(_ParserStop):
    """More objects than memory should hold; raised by object hooks with the limit."""


class _Constant(_ParserStop):
    pass


class _LongInteger(_ParserStop):
    pass


def read_text(path: str | Path, *, max_bytes: int = MAX_BYTES) -> str:
    r"""Read a UTF-8 file, plain or gzipped, without byte order mark and with `\n` at every line's end.

    Raises:
        DataError: if the file cannot be read, is larger than `max_bytes` (unpacked), or is not UTF-8.
    """
    file = Path(path)
    data = read_bytes(file, max_bytes=max_bytes)
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            _refuse_encoding(file, data, 0, encoding)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse_encoding(file, data, error.start, _guess_encoding(data, error))
    nul = data.find(b"\0")
    if nul >= 0:
        _refuse_encoding(file, data, nul, _guess_format_with_nul(data))
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def read_json(path: str | Path, *, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Read the object in a JSON file, plain or gzipped.

    Raises:
        DataError: if the text is broken, holds a key twice in one object, NaN or Infinity, a number of more
            than `MAX_DIGITS` digits, brackets nested too deeply, more than `MAX_VALUES` values, or anything
            but an object.
    """
    return parse_json(read_text(path, max_bytes=max_bytes), path)


def read_json_list(path: str | Path, *, max_bytes: int = MAX_BYTES) -> list[Any]:
    """Read the list in a JSON file, under the conditions of `read_json`.

    Raises:
        DataError: as `read_json`, and if it holds anything but a list.
    """
    value = _parse(read_text(path, max_bytes=max_bytes), path, unique_keys, None)
    if not isinstance(value, list):
        raise DataError(f"{path}: holds {describe(value)} at the top; a list [...] is needed", fault="F28")
    return value


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Convert the pairs of an object to a dictionary; raises `RepeatedKey` if a key appears twice."""
    result = dict(pairs)
    if len(result) < len(pairs):
        raise RepeatedKey
    return result


def parse_json(
    text: str,
    path: str | Path,
    *,
    each_object: Callable[[list[tuple[str, Any]]], Any] = unique_keys,
    constants: Callable[[str], Any] | None = None,
) -> dict[str, Any]:
    """Parse the object in a JSON text from `path` (see `read_json`), with converters of objects, NaN and Infinity."""
    value = _parse(text, path, each_object, constants)
    if not isinstance(value, dict):
        raise DataError(f"{path}: holds {describe(value)} at the top; an object {{...}} is needed", fault="F28")
    return value


def _parse(
    text: str,
    path: str | Path,
    each_object: Callable[[list[tuple[str, Any]]], Any],
    constants: Callable[[str], Any] | None,
) -> Any:
    if not text or text.isspace():
        raise DataError(f"{path}: the file is empty; fetch it again", fault="F27")
    if text.count(",") + text.count("[") + text.count("{") > MAX_VALUES:
        raise DataError(f"{path}: holds more than {MAX_VALUES} values; split the file", fault="F38")
    try:
        return json.loads(
            text, object_pairs_hook=each_object, parse_constant=constants or _refuse_constant, parse_int=_parse_integer
        )
    except json.JSONDecodeError as error:
        truncated = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        advice = "the file looks cut off, fetch it again" if truncated else "correct it there, or fetch the file again"
        location = locate(text, error.pos)
        raise DataError(f"{path}: broken JSON at {location}: {error.msg}; {advice}", fault="F27") from None
    except RepeatedKey:
        key, first, second = find_repeated_key(text)
        raise DataError(
            f"{path}: the key {key!r} appears twice in {locate(text, second).path or 'the top object'}, "
            f"in line {locate(text, first).line} and line {locate(text, second).line}; keep one of them",
            fault="F33",
        ) from None
    except _Constant as error:
        location = locate(text, find_word(text, _CONSTANT))
        raise DataError(
            f"{path}: {error} is not a finite number, at {location}; correct or remove the entry", fault="F30"
        ) from None
    except _LongInteger:
        location = locate(text, find_word(text, _LONG_INTEGER))
        raise DataError(
            f"{path}: a number of more than {MAX_DIGITS} digits at {location}; no time or count is that long",
            fault="F38",
        ) from None
    except TooManyObjects as error:
        raise DataError(
            f"{path}: holds more than {error} objects besides detections; split the file", fault="F38"
        ) from None
    except RecursionError:
        raise DataError(
            f"{path}: brackets are nested too deeply to be annotations or predictions; fetch the file again",
            fault="F38",
        ) from None


def read_bytes(path: str | Path, *, max_bytes: int = MAX_BYTES) -> bytearray:
    """Read a regular file, unpacked if it is gzipped.

    Raises:
        DataError: if it cannot be read, or is larger than `max_bytes`; a large gzip file also if it unpacks to more
            than `MAX_RATIO` times its size.
    """
    with _open_unpacked(Path(path)) as file:
        if isinstance(file, gzip.GzipFile):
            max_bytes = min(max_bytes, max(_MIN_UNPACKED_LIMIT, MAX_RATIO * Path(path).stat().st_size))
        data = _read_upto(file, max_bytes)
    if len(data) > max_bytes:
        raise DataError(
            f"{path}: larger than the limit of {max_bytes} bytes; split the file or raise the limit", fault="F38"
        )
    return data


def read_head(path: str | Path, size: int = 1 << 16) -> bytes:
    """Read the first `size` bytes of a file, unpacked if it is gzipped, to recognise its format."""
    with _open_unpacked(Path(path)) as file:
        return file.read(size)


@contextlib.contextmanager
def _open_unpacked(file: Path) -> Iterator[io.BufferedIOBase]:
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe would block, a device might never end
            raise DataError(f"{file}: not a regular file; give a text file", fault="F18")
        with file.open("rb") as plain:
            zipped = plain.read(2) == _GZIP
            plain.seek(0)
            if zipped:
                with gzip.GzipFile(fileobj=plain) as unpacked:
                    yield unpacked
            else:
                yield plain
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{file}: broken gzip data ({error}); fetch the file again", fault="F27") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{file}: cannot be read ({reason}); check the path and its permissions") from None


def _read_upto(file: io.BufferedIOBase, max_bytes: int) -> bytearray:
    """Read a file, or slightly more than `max_bytes` of it: a small file can unpack to any size."""
    data = bytearray()
    while len(data) <= max_bytes and (block := file.read(_READ_BYTES)):
        data += block
    return data


def _guess_encoding(data: bytearray, error: UnicodeDecodeError) -> str:
    for magic, name in _OTHER_FORMATS:
        if data.startswith(magic):
            return name
    if b"\0" in data:
        return _guess_format_with_nul(data)
    if error.reason == "unexpected end of data":
        return "UTF-8 that was cut off in the middle of a character"
    high = {byte for byte in data[error.start : error.start + 4096] if byte >= 0x80}
    return "Windows-1252 or another 8-bit encoding" if min(high) < 0xA0 else "Latin-1 or another 8-bit encoding"


def _guess_format_with_nul(data: bytearray) -> str:
    """Guess the encoding of data with NULs: UTF-16 has one in every other byte where it is ASCII."""
    head = data[:4096]
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if odd > len(head) // 4 and not even:
        return "UTF-16, little-endian, without a byte order mark"
    if even > len(head) // 4 and not odd:
        return "UTF-16, big-endian, without a byte order mark"
    return "a binary file"


def _refuse_encoding(file: Path, data: bytearray, offset: int, looks_like: str) -> NoReturn:
    line = data.count(b"\n", 0, offset) + 1
    raise DataError(
        f"{file}: not UTF-8 text at byte {offset} (0x{data[offset]:02x}, line {line}): it looks like "
        f"{looks_like}; save the file as UTF-8",
        fault="F25",
    )


def _refuse_constant(word: str) -> NoReturn:
    raise _Constant(word)


def _parse_integer(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise _LongInteger
    return int(digits)


# A string, a bracket or separator, or a run of anything else: a number or a word.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)
# A list of numbers, or an object of such lists and plain values, matched without backtracking.
_FLAT = re.compile(r'\[[^\[\]{}"]*+\]|\{(?:[^{}\[\]"]++|"(?:[^"\\]|\\.)*+"|\[[^\[\]{}"]*+\])*+\}', re.DOTALL)
_PATH_PARTS = 6


@dataclass(frozen=True)
class JsonLocation:
    """Location in a JSON text; `str()` formats it for messages."""

    line: int  # from 1
    column: int  # from 1
    path: str  # the containers around it, such as `database.v_1.annotations[0]`; empty at the top
    key: str | None  # the last key before it, or None

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
    """Return the first key that an object holds twice, with both positions; raises ValueError if no key is repeated."""
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
