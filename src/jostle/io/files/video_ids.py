"""Video ids and file names: one id in every Unicode form, a safe file name for any id."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from jostle.errors import BadValue, DataError

# File systems stop at 255 bytes; the rest is left to whoever writes `<name>.part` beside the target first.
MAX_NAME_BYTES = 230

VIDEO_SUFFIXES = frozenset(
    (
        *(".mp4", ".m4v", ".mov", ".3gp", ".mkv", ".webm", ".avi", ".wmv", ".flv", ".ogv"),
        *(".mpg", ".mpeg", ".ts", ".mts", ".m2ts"),
    )
)

_HASH_DIGITS = 16
_HASHED = re.compile(rf"~[0-9a-f]{{{_HASH_DIGITS}}}\Z")
_SUFFIX = re.compile(r"(\.[A-Za-z0-9_-]{1,16}){0,3}")
_PLAIN_PUNCTUATION = frozenset("-_.+=@,~")
# An option, a hidden file, a home folder; the last three start a formula where a table of names is opened.
_BAD_BEGINNINGS = frozenset("-.~=+@")
# Letters, marks, numbers and pictures: what a reader recognises and no file system or terminal acts upon.
_PLAIN_CATEGORIES = frozenset("LMN")
_RESERVED = frozenset(
    ["CON", "PRN", "AUX", "NUL"]
    + [device + digit for device in ("COM", "LPT") for digit in "0123456789\u00b9\u00b2\u00b3"]
)


def normal_id(video_id: str) -> str:
    r"""The one spelling of an id that all its Unicode forms share.

    Bytes that reached us escaped, because the locale could not read them, are read as UTF-8 if they are that.

    >>> normal_id("cafe\u0301") == "caf\u00e9"
    True
    >>> normal_id("caf\udcc3\udca9") == "caf\u00e9"
    True
    """
    # A lone surrogate may stand for no byte, as "\ud83d" in JSON; then there is nothing to read again.
    with contextlib.suppress(UnicodeEncodeError):
        video_id = video_id.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    return unicodedata.normalize("NFC", video_id)


def same_id(a: str, b: str) -> bool:
    """Whether two ids name one video: equal under NFC, and different if only the case differs."""
    return normal_id(a) == normal_id(b)


def id_of(path: str | os.PathLike[str]) -> str:
    """The id that a file's name stands for: its stem, the same in every locale.

    >>> id_of("videos/v_-abc.mp4")
    'v_-abc'
    """
    return normal_id(os.fsencode(Path(path).stem).decode("utf-8", "surrogateescape"))


def path_for(folder: Path, name: str) -> Path:
    """The path of `name` in `folder`, spelled so that the same bytes reach the disk in every locale."""
    return folder / os.fsdecode(name.encode("utf-8", "surrogateescape"))


def file_name_for(video_id: str, suffix: str) -> str:
    """A file name that is safe on every system for any id, and different for different ids.

    A harmless id is its own name. Anything else keeps its readable part and gains `~` and a hash of the id,
    and so does an id that already ends like such a name: two ids meet in one name only if their hashes do.
    Ids that differ by case alone keep their case; `refuse_collisions` finds those.

    Args:
        video_id: any text, also empty.
        suffix: plain ASCII such as `.mp4`, or nothing.

    >>> file_name_for("video_test_0000004", ".mp4")
    'video_test_0000004.mp4'
    >>> file_name_for("../etc/passwd", ".mp4")
    '__etc_passwd~3cba4c3a335390b6.mp4'
    """
    if not _SUFFIX.fullmatch(suffix):
        raise BadValue(f"a file suffix must be plain, such as '.mp4', got {suffix!r}")
    original = normal_id(video_id)
    room = MAX_NAME_BYTES - len(suffix)
    stem = re.sub(r"\.{2,}", "_", "".join(c if _is_plain(c) else "_" for c in original))
    if not stem or stem[0] in _BAD_BEGINNINGS or stem.split(".")[0].upper() in _RESERVED:
        stem = "_" + stem
    ends_safely = not (stem.endswith(".") or _HASHED.search(stem))
    if stem == original and ends_safely and len(stem.encode()) <= room:
        return stem + suffix
    mark = "~" + hashlib.blake2b(original.encode("utf-8", "surrogatepass"), digest_size=_HASH_DIGITS // 2).hexdigest()
    return _cut(stem, room - len(mark)) + mark + suffix


def collisions(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Groups of names that are one file on a disk that ignores case or Unicode form, in order of appearance.

    >>> collisions(["a.mp4", "B.mp4", "A.mp4"])
    [('a.mp4', 'A.mp4')]
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        # Canonical caseless matching (Unicode 3.13, D145): folding works on decomposed text and can recompose.
        folded = unicodedata.normalize("NFD", normal_id(name)).casefold()
        groups.setdefault(unicodedata.normalize("NFD", folded), []).append(name)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def refuse_collisions(names: Iterable[str], where: str) -> None:
    """Raise a DataError that lists the names which would overwrite each other in `where`."""
    groups = collisions(names)
    if groups:
        listed = listing([" = ".join(map(shown, group)) for group in groups], separator="; ")
        raise DataError(
            f"{where}: {len(groups)} group(s) of names are one file on a disk that ignores case or Unicode "
            f"form: {listed}; rename one of each, or write them to different folders",
            fault="F24",
        )


def shown(name: str) -> str:
    """A name as messages print it: itself if that is one plain word, otherwise quoted and escaped.

    >>> shown("v_1"), shown("a b")
    ('v_1', "'a b'")
    """
    return name if name and name.isprintable() and not set(name) & set(" ,;'\"") else repr(name)


def listing(names: Iterable[str], *, limit: int = 3, separator: str = ", ") -> str:
    """The first few names, and how many more there are.

    >>> listing("abcde")
    'a, b, c and 2 more'
    """
    every = list(names)
    rest = f" and {len(every) - limit} more" if len(every) > limit else ""
    return separator.join(every[:limit]) + rest


def _is_plain(character: str) -> bool:
    if character.isascii():
        return character.isalnum() or character in _PLAIN_PUNCTUATION
    category = unicodedata.category(character)
    return category[0] in _PLAIN_CATEGORIES or category == "So"


def _cut(stem: str, room: int) -> str:
    """The longest beginning of `stem` that fits into `room` bytes without splitting a character."""
    return stem.encode()[:room].decode("utf-8", "ignore")
