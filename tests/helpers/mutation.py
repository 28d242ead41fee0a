"""Files gone wrong, drawn from a seed: bytes and numbers changed anywhere, and where a format keeps its own."""

from __future__ import annotations

import io
import json
import pickletools
import re
import struct
import warnings
import zipfile
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

Mutator = Callable[[bytes, Random], bytes]

NUMBERS = (0, 1, 2, 7, 127, 128, 255, 256, 32767, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1, 2**64 - 1)
NUMBER_WORDS = (
    *(
        b"0",
        b"-1",
        b"1e999",
        b"-1e999",
        b"1e-400",
        b"1e308",
        b"NaN",
        b"nan",
        b"Infinity",
        b"inf",
        b"-inf",
        b"0.0",
        b"1.",
    ),
    *(b"9" * 20, b"9" * 310, b"9" * 5000, b"1e999999999", b"0x" + b"f" * 80, b"1_000", b"+5", b"true", b"null", b'"7"'),
    *(b"1979-05-27", b"07:32:00", "²".encode(), "٣".encode(), b"1/0", b"1,5"),
)
WORDS = (
    *(
        b"",
        b"\0",
        b"\n",
        b"\r",
        b"\t",
        b" " * 3000,
        b'"',
        b"'",
        b'"""',
        b"\\",
        b",",
        b":",
        b"[",
        b"]",
        b"{",
        b"}",
        b"=",
    ),
    *(
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\xff",
        b"\xc3",
        "\u2028".encode(),
        b"\\ud800",
        b"\\u0000",
        b"../",
        b"/etc/passwd",
    ),
    *(b"null", b"[[]]", b"{}", b"a.b.c", b"#", b"x" * 5000, b"\x80\x04", b"\x1f\x8b", b"PK\x03\x04", b"\x93NUMPY"),
)
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**70, 1.5, -0.0, 1e308, 1e-320, float("nan"), float("inf")),
    *("", " ", "x", "\0", "\ud800", "x" * 3000, "7", "nan", "1/0", "1e999999999", "../..", "e\u0301", "²"),
    *([], [[]], {}, [0] * 3, [None, None], ["a", 1], {"a": {}}, {"label": 1}, [1, 0], [-1, 5], [0.0, float("nan")]),
)
_DIGITS = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def mutated(data: bytes, others: Sequence[bytes], mutators: Sequence[Mutator], rng: Random) -> bytes:
    """A sample after one to four changes; the first uses what is known of the format, if anything is.

    Args:
        others: samples that a piece may come from.
        mutators: those that know the format.
    """
    for turn in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        known = mutators and rng.random() < (0.6 if turn == 0 else 0.3)
        change = rng.choice(mutators) if known else rng.choice(ANYWHERE)
        data = spliced(data, rng.choice(others), rng) if not known and rng.random() < 0.08 else change(data, rng)
    return data


def _place(data: bytes, rng: Random) -> int:
    """Anywhere, but more often near the beginning or the end, where headers and indices are."""
    length = len(data)
    if length < 64 or rng.random() < 0.5:
        return rng.randrange(length + 1)
    near = min(length, 1 << rng.randrange(4, 12))
    return rng.randrange(near) if rng.random() < 0.7 else length - rng.randrange(near)


def flipped(data: bytes, rng: Random) -> bytes:
    made = bytearray(data or b"\0")
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        made[min(_place(data, rng), len(made) - 1)] ^= 1 << rng.randrange(8)
    return bytes(made)


def overwritten(data: bytes, rng: Random) -> bytes:
    at, count = _place(data, rng), rng.choice((1, 2, 4, 16))
    fill = rng.choice((rng.randbytes(count), bytes(count), b"\xff" * count))
    return data[:at] + fill + data[at + count :]


def with_number(data: bytes, rng: Random) -> bytes:
    """A binary number of an extreme value, of any width and either order of bytes."""
    at, (width, order) = (
        _place(data, rng),
        rng.choice(((1, "<"), (2, "<"), (4, "<"), (8, "<"), (2, ">"), (4, ">"), (8, ">"))),
    )
    value = (rng.choice(NUMBERS) + rng.choice((-1, 0, 0, 1))) % (1 << 8 * width)
    return data[:at] + value.to_bytes(width, "little" if order == "<" else "big") + data[at + width :]


def cut(data: bytes, rng: Random) -> bytes:
    at = _place(data, rng)
    return data[at:] if rng.random() < 0.15 else data[:at]


def without(data: bytes, rng: Random) -> bytes:
    at = _place(data, rng)
    return data[:at] + data[at + rng.choice((1, 2, 4, 8, 100, 1000)) :]


def repeated(data: bytes, rng: Random) -> bytes:
    at, length = _place(data, rng), rng.choice((1, 2, 4, 16, 100, 1000))
    piece = data[at : at + length]
    return data[:at] + piece * rng.choice((2, 2, 3, 10, 100, 2000 // max(length // 16, 1))) + data[at + length :]


def moved(data: bytes, rng: Random) -> bytes:
    a, b = sorted((_place(data, rng), _place(data, rng)))
    length = rng.choice((1, 4, 16, 100))
    return data[:a] + data[b : b + length] + data[a:b] + data[b + length :]


def with_word(data: bytes, rng: Random) -> bytes:
    at = _place(data, rng)
    return data[:at] + rng.choice(WORDS) + data[at + rng.choice((0, 0, 1, 5)) :]


def with_digits(data: bytes, rng: Random) -> bytes:
    """A number that is written out becomes one that nobody expects."""
    found = list(_DIGITS.finditer(data[:200_000]))
    if not found:
        return with_number(data, rng)
    match = rng.choice(found)
    return data[: match.start()] + rng.choice(NUMBER_WORDS) + data[match.end() :]


def deepened(data: bytes, rng: Random) -> bytes:
    at, levels = _place(data, rng), rng.choice((5, 50, 500, 1200, 5000, 100_000))
    start, end = rng.choice(
        ((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"), (b"{a=", b"}"), (b"a.", b""), (b"\x85", b""))
    )
    return data[:at] + start * levels + data[at:] + (end * levels if rng.random() < 0.5 else b"")


def spliced(data: bytes, other: bytes, rng: Random) -> bytes:
    return data[: _place(data, rng)] + other[_place(other, rng) :]


ANYWHERE: tuple[Mutator, ...] = (
    *(flipped, flipped, overwritten, with_number, with_number, cut, without, repeated, moved, with_word, with_digits),
    deepened,
)


def json_changed(data: bytes, rng: Random) -> bytes:
    """A document in which a value, a key or an element is another, gone, or there twice."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return with_digits(data, rng)
    places: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting and len(places) < 5000:
        held = waiting.pop()
        keys = list(held) if isinstance(held, dict) else range(len(held)) if isinstance(held, list) else ()
        places += [(held, key) for key in keys]
        waiting += [held[key] for key in keys]
    if not places:
        return json.dumps(rng.choice(ODD)).encode("utf-8", "replace")
    held, key = rng.choice(places)
    how = rng.randrange(6)
    if how == 0:
        del held[key]
    elif how == 1 and isinstance(held, dict):
        held[str(rng.choice(ODD))] = held.pop(key)
    elif how == 2 and isinstance(held, list):
        held.extend([held[key]] * rng.choice((1, 2, 100)))
    elif how == 3:
        other, at = rng.choice(places)
        held[key] = json.loads(json.dumps(other[at]))
    else:
        held[key] = rng.choice(ODD)
    text = json.dumps(document, ensure_ascii=rng.random() < 0.5)
    if how == 5 and isinstance(key, str):  # the same key once more
        text = text.replace(json.dumps(key) + ":", f"{json.dumps(key)}: 0, {json.dumps(key)}:", 1)
    return text.encode("utf-8", "surrogatepass")


def line_changed(data: bytes, rng: Random) -> bytes:
    """A field of a line of text that is another, gone, or there twice; or a line."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    parting = b"," if b"," in lines[at] else b" "
    fields = lines[at].split(parting)
    place = rng.randrange(len(fields))
    how = rng.randrange(5)
    if how == 0:
        fields[place] = rng.choice((*NUMBER_WORDS, *WORDS))
    elif how == 1:
        del fields[place]
    elif how == 2:
        fields[place:place] = [fields[place]] * rng.choice((1, 3, 1000))
    lines[at] = parting.join(fields)
    if how == 3:
        lines[at:at] = [lines[at]] * rng.choice((1, 2, 1000))
    elif how == 4:
        del lines[at]
    return b"\n".join(lines)


def zip_changed(data: bytes, rng: Random) -> bytes:
    """An archive that is whole, with a member that is not: changed inside, renamed, doubled, packed, or gone."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(entry.filename, archive.read(entry)) for entry in archive.infolist()]
    except Exception:
        return flipped(data, rng)
    if not members:
        return flipped(data, rng)
    at, how = rng.randrange(len(members)), rng.randrange(8)
    name, content = members[at]
    packing = zipfile.ZIP_STORED
    if how == 0:
        members[at] = (rng.choice(("-", "..", "/a", "a" * 300, name.upper(), name + "/", "data.pkl")), content)
    elif how == 1:
        members.append((name, members[rng.randrange(len(members))][1]))
    elif how == 2:
        del members[at]
    elif how == 3:
        packing = rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    else:
        change = rng.choice((*ANYWHERE, pickle_changed, header_changed))
        members[at] = (name, change(content, rng))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", packing) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a name is there twice
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name) if packing == zipfile.ZIP_STORED else name, content)
    return made.getvalue()


def header_changed(data: bytes, rng: Random) -> bytes:
    """A NumPy array, or a file of safetensors, whose header is as long as it says, and says something else."""
    start, width = (8, 2) if data.startswith(b"\x93NUMPY") else (0, 8)
    length = int.from_bytes(data[start : start + width], "little")
    text, rest = data[start + width :][:length], data[start + width + length :]
    change = rng.choice((with_digits, with_digits, with_word, json_changed, cut, deepened))
    text = change(text, rng)[: (1 << 8 * width) - 1]
    return data[:start] + len(text).to_bytes(width, "little") + text + rest


# One of each kind: marks, containers, calls, memory, and instructions that no data needs.
_INSTRUCTIONS = (
    *(b"(", b"0", b"1", b"2", b"N", b"\x88", b")", b"]", b"}", b"t", b"\x85", b"\x86", b"\x87", b"l", b"d", b"a", b"e"),
    *(
        b"s",
        b"u",
        b"R",
        b"b",
        b"\x8f",
        b"\x90",
        b"\x91",
        b"\x93",
        b"\x94",
        b"q\x00",
        b"h\x00",
        b"h\x01",
        b"Q",
        b"o",
        b".",
    ),
    *(b"j\xff\xff\xff\x7f", b"r\xff\xff\xff\x7f", b"K\xff", b"J\xff\xff\xff\xff", b"\x8a\xff" + b"\xff" * 255, b"I9\n"),
    *(b"G\x7f\xf0\0\0\0\0\0\0", b"X\xff\xff\xff\x7f", b"\x8e" + b"\xff" * 8, b"\x8d\0\0\0\0\1\0\0\0", b"B\0\0\0\x40"),
    *(b"cos\nsystem\n", b"cbuiltins\neval\n", b"cnumpy\ndtype\n", b"ctorch\nSize\n", b"ccollections\nOrderedDict\n"),
    *(b"h\x00h\x00\x86q\x00" * 40, b"\x85" * 3000, b")" + b"\x85" * 300_000, b"(" * 5000),
)


def pickle_changed(data: bytes, rng: Random) -> bytes:
    """A pickle whose instructions are sound, one of them another, gone, there twice, or somewhere else."""
    places = []
    try:
        for _code, _argument, at in pickletools.genops(data):
            places.append(at)
            if len(places) > 2000:
                break
    except Exception:
        pass
    if len(places) < 3:
        return flipped(data, rng)
    i = rng.randrange(1, len(places) - 1)
    start, end = places[i], places[i + 1]
    how = rng.randrange(4)
    if how == 0:
        return data[:start] + data[end:]
    if how == 1:
        return data[:start] + data[start:end] * rng.choice((2, 3, 1000)) + data[end:]
    if how == 2:
        to = rng.choice(places)
        return data[:to] + data[start:end] + data[to:]
    return data[:start] + rng.choice(_INSTRUCTIONS) + data[rng.choice((start, end)) :]


_BOXES = (
    b"moov",
    b"mvhd",
    b"trak",
    b"tkhd",
    b"edts",
    b"elst",
    b"mdia",
    b"mdhd",
    b"hdlr",
    b"minf",
    b"stbl",
    b"stsd",
    b"avc1",
)
_TABLES = (b"stts", b"stss", b"stsc", b"stsz", b"stco", b"ctts", b"avcC", b"mdat", b"free", b"ftyp", b"colr", b"pasp")
_CHUNKS = (b"RIFF", b"LIST", b"hdrl", b"avih", b"strl", b"strh", b"strf", b"movi", b"idx1", b"00dc", b"JUNK")
_ELEMENTS = (
    b"\x1a\x45\xdf\xa3",
    b"\x18\x53\x80\x67",
    b"\x16\x54\xae\x6b",
    b"\x1f\x43\xb6\x75",
    b"\x1c\x53\xbb\x6b",
    b"\x2a\xd7\xb1",
)


def container_changed(data: bytes, rng: Random) -> bytes:
    """A box, chunk or element whose size, or one of whose numbers, is another; or that is gone or there twice."""
    here = [(kind, at) for kind in (*_BOXES, *_TABLES, *_CHUNKS, *_ELEMENTS) if (at := data.find(kind)) >= 0]
    if not here:
        return with_number(data, rng)
    kind, at = rng.choice(here)
    big = kind in _BOXES or kind in _TABLES
    size_at = at - 4 if big else at + 4
    value = (rng.choice(NUMBERS) + rng.choice((-8, -1, 0, 1, 8))) % (1 << 32)
    how = rng.randrange(4)
    if how == 0 and size_at >= 0:
        return data[:size_at] + struct.pack(">I" if big else "<I", value) + data[size_at + 4 :]
    if how == 1:
        inside = at + 4 + 4 * rng.randrange(16)
        return data[:inside] + struct.pack(">I" if big else "<I", value) + data[inside + 4 :]
    size = int.from_bytes(data[size_at : size_at + 4], "big" if big else "little") if size_at >= 0 else 0
    start, end = (at - 4, at - 4 + size) if big else (at, at + 8 + size)
    if how == 2 and 8 <= size < len(data) and start >= 0:
        return data[:start] + data[end:]
    if how == 3 and 8 <= size < len(data) and start >= 0:
        return data[:end] + data[start:end] * rng.choice((1, 2, 50)) + data[end:]
    return data[:at] + rng.choice(here)[0] + data[at + 4 :]
