"""Video ids and file names: a normal form for ids, and a safe file name for any id."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from jostle.core.formatting import join_names
from jostle.errors import BadValue, DataError

# File systems allow 255 bytes; the rest is for temporary names such as `<name>.part`.
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
# Beginnings of options, hidden files and home folders; the last three start a formula in spreadsheets.
_BAD_BEGINNINGS = frozenset("-.~=+@")
# Letters, marks and numbers: readable, and without meaning to file systems and terminals.
_PLAIN_CATEGORIES = frozenset("LMN")
_RESERVED = frozenset(
    ["CON", "PRN", "AUX", "NUL"]
    + [device + digit for device in ("COM", "LPT") for digit in "0123456789\u00b9\u00b2\u00b3"]
)


def normalize_id(video_id: str) -> str:
    r"""Return the normal form of an id, which is the same for all its Unicode forms.

    Bytes that the locale could not decode, and that Python escaped, are decoded as UTF-8 if possible.

    >>> normalize_id("cafe\u0301") == "caf\u00e9"
    True
    >>> normalize_id("caf\udcc3\udca9") == "caf\u00e9"
    True
    """
    # A lone surrogate may stand for no byte, as "\ud83d" in JSON; then there is nothing to decode.
    with contextlib.suppress(UnicodeEncodeError):
        video_id = video_id.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    return unicodedata.normalize("NFC", video_id)


def id_of(path: str | os.PathLike[str]) -> str:
    """Return the id of a video file: its stem, the same in every locale.

    >>> id_of("videos/v_-abc.mp4")
    'v_-abc'
    """
    stem = (path if isinstance(path, Path) else Path(path)).stem  # an address has its own
    return normalize_id(os.fsencode(stem).decode("utf-8", "surrogateescape"))


def path_for(folder: Path, name: str) -> Path:
    """Return the path of `name` in `folder`, with the same bytes on disk in every locale."""
    return folder / os.fsdecode(name.encode("utf-8", "surrogateescape"))


def file_name_for(video_id: str, suffix: str) -> str:
    """Return a file name for an id that is safe on every system, and different for different ids.

    A harmless id is its own name. Any other id keeps its readable part, followed by `~` and a hash of the id,
    and so does an id that already ends like such a name: names of two ids are equal only if their hashes are.
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
    original = normalize_id(video_id)
    max_bytes = MAX_NAME_BYTES - len(suffix)
    stem = re.sub(r"\.{2,}", "_", "".join(c if _is_plain(c) else "_" for c in original))
    if not stem or stem[0] in _BAD_BEGINNINGS or stem.split(".")[0].upper() in _RESERVED:
        stem = "_" + stem
    ends_safely = not (stem.endswith(".") or _HASHED.search(stem))
    if stem == original and ends_safely and len(stem.encode()) <= max_bytes:
        return stem + suffix
    mark = "~" + hashlib.blake2b(original.encode("utf-8", "surrogatepass"), digest_size=_HASH_DIGITS // 2).hexdigest()
    # Cut between characters.
    return stem.encode()[: max_bytes - len(mark)].decode("utf-8", "ignore") + mark + suffix


def collisions(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Group names that are the same file on a disk that ignores case or Unicode form.

    >>> collisions(["a.mp4", "B.mp4", "A.mp4"])
    [('a.mp4', 'A.mp4')]
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        # Canonical caseless matching (Unicode 3.13, D145): folding works on decomposed text and can recompose.
        folded = unicodedata.normalize("NFD", normalize_id(name)).casefold()
        groups.setdefault(unicodedata.normalize("NFD", folded), []).append(name)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def refuse_collisions(names: Iterable[str], where: str) -> None:
    """Raise a DataError that lists the names that would overwrite each other in `where`."""
    groups = collisions(names)
    if groups:
        examples = join_names([" = ".join(map(quote_name, group)) for group in groups], separator="; ")
        raise DataError(
            f"{where}: {len(groups)} group(s) of names are one file on a disk that ignores case or Unicode "
            f"form: {examples}; rename one of each, or write them to different folders",
            fault="F24",
        )


def quote_name(name: str) -> str:
    """Format a name for a message: plain words as they are, others quoted and escaped.

    >>> quote_name("v_1"), quote_name("a b")
    ('v_1', "'a b'")
    """
    return name if name and name.isprintable() and not set(name) & set(" ,;'\"") else repr(name)


def _is_plain(character: str) -> bool:
    if character.isascii():
        return character.isalnum() or character in _PLAIN_PUNCTUATION
    category = unicodedata.category(character)
    return category[0] in _PLAIN_CATEGORIES or category == "So"
