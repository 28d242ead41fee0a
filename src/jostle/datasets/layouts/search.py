"""Search of data folders for annotation files, and names of subsets in paths."""

from __future__ import annotations

import filecmp
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from jostle.core.formatting import join_names
from jostle.errors import DataError
from jostle.io.files.video_ids import quote_name

DEPTH = 3  # depth of folders below the root to search for annotations
MOST_FOLDERS = 80  # a folder with more entries holds videos or classes, and is not searched for annotations

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
    """Raise if the root is not a folder."""
    if not root.is_dir():
        raise DataError(f"{root}: no such folder; give the one that holds the annotations and videos of {what}")


def folders_of(root: Path, depth: int = DEPTH) -> Iterator[Path]:
    """Yield `root` and the folders below it, nearest first; links to folders are followed in `root` only.

    Folders of runs are left out: the annotations in them are copies.
    """
    level = [root]
    for below in range(depth + 1):
        yield from level
        inside: list[Path] = []
        for folder in level:
            folders = [
                path for name in entries(folder) if (path := Path(folder, name)).is_dir() and not path.is_symlink()
            ]
            if len(folders) <= MOST_FOLDERS:
                inside += folders
        if below == 0:
            inside += linked_folders(root)
        level = [folder for folder in inside if not _is_run(folder)]


def _is_run(folder: Path) -> bool:
    return (folder / "run.json").is_file() and (folder / "journal.jsonl").is_file()


def linked_folders(root: Path) -> list[Path]:
    """Return links in `root` to folders elsewhere, but not to a parent of it."""
    home = root.resolve()
    links = [path for name in entries(root) if (path := Path(root, name)).is_symlink() and path.is_dir()]
    return [p for p in links if not p.resolve().is_relative_to(home) and not home.is_relative_to(p.resolve())]


def small_files(root: Path, depth: int = DEPTH) -> list[Path]:
    """Return files that may be annotations or lists, by suffix, gzipped or not; nearest first."""
    return [
        Path(folder, name)
        for folder in folders_of(root, depth)
        for name in entries(folder)
        if Path(plain_name(name)).suffix in _SUFFIXES and Path(folder, name).is_file()
    ]


def named(files: Iterable[Path], patterns: Sequence[str]) -> list[Path]:
    """Return the files whose name matches a pattern; those of an earlier pattern come first."""
    every = list(files)
    matches = [file for pattern in patterns for file in every if fnmatchcase(plain_name(file.name), pattern)]
    return list(dict.fromkeys(matches))


def plain_name(name: str) -> str:
    """Return a name as patterns are matched against it.

    >>> plain_name("Val.CSV.gz")
    'val.csv'
    """
    return name.lower().removesuffix(".gz")


def subset_named(name: str) -> str:
    """Return the subset that a name contains, or "" if it contains none or several.

    >>> subset_named("thumos14_test_extra"), subset_named("kinetics400_val_list"), subset_named("train_val")
    ('test', 'validation', '')
    """
    words = _words(name)
    spoken = [subset for subset, spelled in SUBSET_WORDS.items() if words & set(spelled)]
    return spoken[0] if len(spoken) == 1 else ""


def subset_of_path(path: Path, root: Path) -> str:
    """Return the subset of the nearest folder of a file that is named after one, or "".

    >>> [subset_of_path(Path(path), Path("d")) for path in ("d/TH14_test_set_mp4/v.mp4", "d/val/training dog/v.mp4")]
    ['test', 'validation']
    """
    parts = path.relative_to(root).parts[:-1]
    return next((subset for part in reversed(parts) if (subset := _subset_folder(part))), "")


@lru_cache(maxsize=1 << 14)
def _subset_folder(name: str) -> str:
    """Return the subset that a folder is named after, if all words of its name allow it."""
    return subset_named(name) if is_plain_folder(name) else ""


def is_plain_folder(name: str) -> bool:
    """Return whether a folder's name denotes videos or a subset rather than a class.

    >>> is_plain_folder("videos_val"), is_plain_folder("training dog"), is_plain_folder("k400_256")
    (True, False, False)
    """
    words = _words(name)
    return bool(words) and words <= _FILLING | _SPELLED


def _words(name: str) -> set[str]:
    """Return the words of a name, without short ones with a number, such as `k400` or `th14`."""
    parts = {part: re.sub(r"\d+", "", part) for part in re.split(r"[^a-z0-9]+", name.lower())}
    return {word for part, word in parts.items() if word and (word == part or len(word) > _SHORT or word in _SPELLED)}


def no_annotations(root: Path, what: str, patterns: Sequence[str]) -> DataError:
    """Return the error for a folder without annotations; it lists what was expected and what is there."""
    there = join_names([quote_name(name) for name in entries(root)], limit=5) or "nothing"
    return DataError(
        f"{root}: no annotations of {what}: searched for {', '.join(patterns)} there and in folders below; "
        f"the folder holds {there}; put the annotations there, or name their file (annotations=...); "
        "docs/how-to/get-the-data.md lists the layouts; videos of your own are the data set 'folder'"
    )


def only_one(places: Sequence[Path], what: str) -> Path | None:
    """Return the single path, or None if there is none; copies of a file count once.

    Raises:
        DataError: F20 if there are several, of which none is guessed.
    """
    own = [p for i, p in enumerate(places) if not any(_same(p, other) for other in places[:i])]
    if len(own) > 1:
        raise DataError(
            f"{len(own)} places could be the annotations of {what}: {join_names([str(p) for p in own], limit=5)}; "
            "keep one, or name it (annotations=...)",
            fault="F20",
        )
    return own[0] if own else None


def _same(one: Path, other: Path) -> bool:
    return one.is_file() and other.is_file() and filecmp.cmp(one, other, shallow=False)


def entries(folder: Path) -> list[str]:
    """Return the names in a folder, sorted, without hidden ones; none if it cannot be read."""
    try:
        return sorted((name for name in os.listdir(folder) if name[0] not in "._"), key=os.fsencode)
    except OSError:
        return []  # `every_video` lists folders that cannot be read
