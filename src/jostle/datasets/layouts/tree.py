"""Looking around in a folder of data: small files that may be annotations, and words for subsets in names."""

from __future__ import annotations

import filecmp
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from jostle.errors import DataError
from jostle.io.files.video_ids import listing, shown

DEPTH = 3  # folders below the root in which annotations are looked for
MOST_FOLDERS = 80  # a folder with more in it holds videos or classes, and is not looked into for annotations

SUBSET_WORDS = {
    "training": ("training", "train"),
    "validation": ("validation", "validate", "valid", "val"),
    "test": ("test", "testing"),
}
_SPELLED = frozenset(word for spelled in SUBSET_WORDS.values() for word in spelled)
# "training dog" is a class of Kinetics; "TH14_test_set_mp4", "k400_val_256" and "train_val_short" are folders.
_FILLING = frozenset(
    (
        *("video", "videos", "clip", "clips", "frame", "frames", "rawframes", "raw", "data", "files"),
        *("set", "subset", "split", "part", "short", "resized", "compress", "tiny", "mini"),
        *("mkv", "avi", "webm", "jpg", "fps", "px"),
        *("kinetics", "thumos", "multithumos", "anet", "activitynet", "ucf", "hmdb", "ssv", "sthv", "something"),
    )
)
_SHORT = 4  # letters
_SUFFIXES = frozenset((".json", ".jsonl", ".csv", ".txt"))


def check_root(root: Path, what: str) -> None:
    """Raise unless there is a folder to look in."""
    if not root.is_dir():
        raise DataError(f"{root}: no such folder; give the one that holds the annotations and videos of {what}")


def folders_of(root: Path, depth: int = DEPTH) -> Iterator[Path]:
    """`root` and the folders below it, nearest first; a link to a folder is followed in `root` itself only."""
    level = [root]
    for below in range(depth + 1):
        yield from level
        inside: list[Path] = []
        for folder in level:
            found = [
                path for name in entries(folder) if (path := Path(folder, name)).is_dir() and not path.is_symlink()
            ]
            if len(found) <= MOST_FOLDERS:
                inside += found
        if below == 0:
            inside += linked_folders(root)
        level = inside


def linked_folders(root: Path) -> list[Path]:
    """Links in `root` to folders elsewhere, but not to one around it: people put a root together from disks."""
    home = root.resolve()
    links = [path for name in entries(root) if (path := Path(root, name)).is_symlink() and path.is_dir()]
    return [p for p in links if not p.resolve().is_relative_to(home) and not home.is_relative_to(p.resolve())]


def small_files(root: Path, depth: int = DEPTH) -> list[Path]:
    """The files that may be annotations or lists, by their suffix, gzipped or not; nearest first."""
    return [
        Path(folder, name)
        for folder in folders_of(root, depth)
        for name in entries(folder)
        if Path(plain_name(name)).suffix in _SUFFIXES and Path(folder, name).is_file()
    ]


def named(files: Iterable[Path], patterns: Sequence[str]) -> list[Path]:
    """The files whose name matches a pattern; those of an earlier pattern come first."""
    every = list(files)
    found = [file for pattern in patterns for file in every if fnmatchcase(plain_name(file.name), pattern)]
    return list(dict.fromkeys(found))


def plain_name(name: str) -> str:
    """A name as patterns see it.

    >>> plain_name("Val.CSV.gz")
    'val.csv'
    """
    return name.lower().removesuffix(".gz")


def subset_named(name: str) -> str:
    """The subset that a name speaks of, or nothing if it speaks of none or of several.

    >>> subset_named("thumos14_test_extra"), subset_named("kinetics400_val_list"), subset_named("train_val")
    ('test', 'validation', '')
    """
    words = _words(name)
    spoken = [subset for subset, spelled in SUBSET_WORDS.items() if words & set(spelled)]
    return spoken[0] if len(spoken) == 1 else ""


def subset_of_path(path: Path, root: Path) -> str:
    """The subset that the nearest folder of a file is named after, below the root, or nothing.

    >>> [subset_of_path(Path(path), Path("d")) for path in ("d/TH14_test_set_mp4/v.mp4", "d/val/training dog/v.mp4")]
    ['test', 'validation']
    """
    parts = path.relative_to(root).parts[:-1]
    return next((subset for part in reversed(parts) if (subset := _subset_folder(part))), "")


@lru_cache(maxsize=1 << 14)
def _subset_folder(name: str) -> str:
    """The subset that a folder is named after: no word of its name may be one that only a class has."""
    return subset_named(name) if is_plain_folder(name) else ""


def is_plain_folder(name: str) -> bool:
    """Whether a folder's name only says that it holds videos, or a subset of them, so that it is no class.

    >>> is_plain_folder("videos_val"), is_plain_folder("training dog"), is_plain_folder("k400_256")
    (True, False, False)
    """
    words = _words(name)
    return bool(words) and words <= _FILLING | _SPELLED


def _words(name: str) -> set[str]:
    """The words of a name; short ones with a number, such as `k400` or `th14`, are left out."""
    parts = {part: re.sub(r"\d+", "", part) for part in re.split(r"[^a-z0-9]+", name.lower())}
    return {word for part, word in parts.items() if word and (word == part or len(word) > _SHORT or word in _SPELLED)}


def no_annotations(root: Path, what: str, patterns: Sequence[str]) -> DataError:
    """The error for a folder in which no annotations were found; it says what was looked for and what is there."""
    there = listing([shown(name) for name in entries(root)], limit=5) or "nothing"
    return DataError(
        f"{root}: no annotations of {what}: looked for {', '.join(patterns)} there and in folders below; "
        f"the folder holds {there}; put the annotations there, or name their file (annotations=...); "
        "docs/how-to/get-the-data.md lists the layouts; videos of your own are the data set 'folder'"
    )


def only_one(places: Sequence[Path], what: str) -> Path | None:
    """The one place, or None if there is none; copies of a file count once.

    Raises:
        DataError: F20 if there are several, of which none is guessed.
    """
    own = [p for i, p in enumerate(places) if not any(_same(p, other) for other in places[:i])]
    if len(own) > 1:
        raise DataError(
            f"{len(own)} places could be the annotations of {what}: {listing([str(p) for p in own], limit=5)}; "
            "keep one, or name it (annotations=...)",
            fault="F20",
        )
    return own[0] if own else None


def _same(one: Path, other: Path) -> bool:
    return one.is_file() and other.is_file() and filecmp.cmp(one, other, shallow=False)


def entries(folder: Path) -> list[str]:
    """The names in a folder, sorted, without hidden ones; none if it cannot be read."""
    try:
        return sorted((name for name in os.listdir(folder) if name[0] not in "._"), key=os.fsencode)
    except OSError:
        return []  # `every_video` lists folders that cannot be read
