"""Text and JSON files from anywhere, read as UTF-8 whatever the locale says, or refused with the place."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from jostle.errors import DataError
from jostle.io.files.json_location import find_repeated_key, find_word, place_at
from jostle.io.files.video_ids import listing

# Parsed JSON takes about ten times the room of its text.
MAX_BYTES = 512 << 20
# Two gigabytes of brackets and commas are another matter than two gigabytes of text: each may become a value.
MAX_VALUES = 100_000_000
# Shorter whole numbers all have a float; the parser's own limit, 4300, can be switched off from outside.
MAX_DIGITS = 300

# What is gzipped may unpack to this many times its size: text seldom comes to ten, and zeros to a thousand.
MAX_RATIO = 100
_UNPACKED_ANYWAY = 64 << 20
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


class _Found(Exception):
    """Stops the parser, which cannot say where it is, so that the place can be looked up."""


class RepeatedKey(_Found):
    """One object holds one key twice; a hook for objects raises it, and the reader looks up where."""


class TooMany(_Found):
    """More objects than memory should hold; a hook for objects raises it with their number."""


class _Constant(_Found):
    pass


class _LongInteger(_Found):
    pass


def read_text(path: str | Path, *, max_bytes: int = MAX_BYTES) -> str:
    r"""The text of a UTF-8 file, plain or gzipped, without byte order mark and with `\n` at every line's end.

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
        _refuse_encoding(file, data, error.start, _encoding_of(data, error))
    nul = data.find(b"\0")
    if nul >= 0:
        _refuse_encoding(file, data, nul, _format_with_nul(data))
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def read_json(path: str | Path, *, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """The object in a JSON file, plain or gzipped, with nothing guessed and nothing overwritten.

    Raises:
        DataError: if the text is broken, holds a key twice in one object, NaN or Infinity, a number of more
            than `MAX_DIGITS` digits, brackets nested too deeply, more than `MAX_VALUES` values, or anything
            but an object.
    """
    return parse_json(read_text(path, max_bytes=max_bytes), path)


def read_json_list(path: str | Path, *, max_bytes: int = MAX_BYTES) -> list[Any]:
    """The list in a JSON file, under the same conditions.

    Raises:
        DataError: as `read_json`, and if it holds anything but a list.
    """
    value = _parsed(read_text(path, max_bytes=max_bytes), path, unique_keys, None)
    if not isinstance(value, list):
        raise DataError(f"{path}: holds {describe(value)} at the top; a list [...] is needed", fault="F28")
    return value


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object as the parser met it; raises `RepeatedKey` where it holds a key twice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise RepeatedKey
    return made


def parse_json(
    text: str,
    path: str | Path,
    *,
    each_object: Callable[[list[tuple[str, Any]]], Any] = unique_keys,
    constants: Callable[[str], Any] | None = None,
) -> dict[str, Any]:
    """The object in a JSON text that came from `path`; see `read_json`.

    Args:
        each_object: what to make of each object, given its pairs as soon as it ends.
        constants: what to make of the words NaN and Infinity, which are refused if this is not given.
    """
    value = _parsed(text, path, each_object, constants)
    if not isinstance(value, dict):
        raise DataError(f"{path}: holds {describe(value)} at the top; an object {{...}} is needed", fault="F28")
    return value


def _parsed(
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
            text, object_pairs_hook=each_object, parse_constant=constants or _constant, parse_int=_integer
        )
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        advice = "the file looks cut off, fetch it again" if cut else "correct it there, or fetch the file again"
        place = place_at(text, error.pos)
        raise DataError(f"{path}: broken JSON at {place}: {error.msg}; {advice}", fault="F27") from None
    except RepeatedKey:
        key, first, second = find_repeated_key(text)
        raise DataError(
            f"{path}: the key {key!r} appears twice in {place_at(text, second).path or 'the top object'}, "
            f"in line {place_at(text, first).line} and line {place_at(text, second).line}; keep one of them",
            fault="F33",
        ) from None
    except _Constant as found:
        place = place_at(text, find_word(text, _CONSTANT))
        raise DataError(
            f"{path}: {found} is not a finite number, at {place}; correct or remove the entry",
            fault="F30",
        ) from None
    except _LongInteger:
        place = place_at(text, find_word(text, _LONG_INTEGER))
        raise DataError(
            f"{path}: a number of more than {MAX_DIGITS} digits at {place}; no time or count is that long",
            fault="F38",
        ) from None
    except TooMany as found:
        raise DataError(
            f"{path}: holds more than {found} objects besides detections; split the file", fault="F38"
        ) from None
    except RecursionError:
        raise DataError(
            f"{path}: brackets are nested too deeply to be annotations or predictions; fetch the file again",
            fault="F38",
        ) from None


def describe(value: object) -> str:
    """A JSON value as messages name it.

    >>> describe([1, 2]), describe(None), describe("x")
    ('a list of 2', 'null', "the text 'x'")
    """
    if isinstance(value, dict):
        return f"an object with keys {listing(map(repr, value), limit=5)}" if value else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, str):
        return f"the text {value if len(value) <= 40 else value[:40] + '...'!r}"
    return json.dumps(value) if value is None or isinstance(value, bool | int | float) else f"a {type(value).__name__}"


def read_bytes(path: str | Path, *, max_bytes: int = MAX_BYTES) -> bytearray:
    """The content of a regular file, unpacked if it is gzipped.

    Raises:
        DataError: if it cannot be read, or is larger than `max_bytes`; of what is gzipped, than `MAX_RATIO` times
            its size, once that is more than a short file could come to.
    """
    with _unpacked(Path(path)) as file:
        if isinstance(file, gzip.GzipFile):
            max_bytes = min(max_bytes, max(_UNPACKED_ANYWAY, MAX_RATIO * Path(path).stat().st_size))
        data = _read_upto(file, max_bytes)
    if len(data) > max_bytes:
        raise DataError(
            f"{path}: larger than the limit of {max_bytes} bytes; split the file or raise the limit",
            fault="F38",
        )
    return data


def read_head(path: str | Path, size: int = 1 << 16) -> bytes:
    """The first `size` bytes of a file, unpacked if it is gzipped: enough to tell what it is."""
    with _unpacked(Path(path)) as file:
        return file.read(size)


@contextlib.contextmanager
def _unpacked(file: Path) -> Iterator[io.BufferedIOBase]:
    try:
        facts = file.stat()
        if not stat.S_ISREG(facts.st_mode):  # a pipe would block, a device might never end
            raise DataError(f"{file}: not a regular file; give a file of text", fault="F18")
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
    """The content, or somewhat more than `max_bytes` of it: a small file can unpack to any size."""
    data = bytearray()
    while len(data) <= max_bytes and (block := file.read(_READ_BYTES)):
        data += block
    return data


def _encoding_of(data: bytearray, error: UnicodeDecodeError) -> str:
    for magic, name in _OTHER_FORMATS:
        if data.startswith(magic):
            return name
    if b"\0" in data:
        return _format_with_nul(data)
    if error.reason == "unexpected end of data":
        return "UTF-8 that was cut off in the middle of a character"
    high = {byte for byte in data[error.start : error.start + 4096] if byte >= 0x80}
    return "Windows-1252 or another 8-bit encoding" if min(high) < 0xA0 else "Latin-1 or another 8-bit encoding"


def _format_with_nul(data: bytearray) -> str:
    """UTF-16 has a NUL in every other byte wherever it is ASCII; anything else with NULs is not text."""
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


def _constant(word: str) -> NoReturn:
    raise _Constant(word)


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise _LongInteger
    return int(digits)
