"""Which videos a folder holds, whether two of them are one, and how many of the listed ones are there."""

from __future__ import annotations

import hashlib
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from jostle.errors import DataError
from jostle.filing.names import VIDEO_SUFFIXES, id_of, listing, normal_id, shown

_READ_BYTES = 1 << 20


class VideoFiles(dict[str, Path]):
    """Video files by id, and what the search left out.

    Attributes:
        skipped: (path, reason) of everything that is named like a video and was not taken.
    """

    def __init__(self, files: Mapping[str, Path], skipped: Iterable[tuple[Path, str]] = ()) -> None:
        super().__init__(files)
        self.skipped = tuple(skipped)

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each reason, with a count and the first few paths."""
        counts = Counter(reason for _, reason in self.skipped)
        return tuple(
            f"{count} skipped, {reason}: " + listing(str(path) for path, why in self.skipped if why == reason)
            for reason, count in sorted(counts.items())
        )


def find_videos(root: str | Path) -> VideoFiles:
    """Every video under `root`, by id; the id is the file's name without its suffix.

    Links to folders are never followed, so a loop cannot trap the search: a folder inside `root` is met by
    its own path, and one outside is refused, as a link to a file outside is. Paths keep the bytes of names.

    Raises:
        DataError: if there is no such folder, or if two files have one id.
    """
    top = Path(root)
    by_id, skipped = every_video(top)
    files = dict(sorted(by_id.items()))
    doubles = [
        f"{shown(video_id)} ({' and '.join(shown(str(p.relative_to(top))) for p in paths)})"
        for video_id, paths in files.items()
        if len(paths) > 1
    ]
    if doubles:
        raise DataError(
            f"{top}: {len(doubles)} id(s) have more than one file: {listing(doubles, separator='; ')}; "
            "move one of each away, or pass an explicit map from id to file",
            fault="F20",
        )
    return VideoFiles({video_id: paths[0] for video_id, paths in files.items()}, skipped)


def every_video(root: str | Path) -> tuple[dict[str, list[Path]], list[tuple[Path, str]]]:
    """All files under `root` that have an id, by id, and (path, reason) of what was left out; see `find_videos`.

    A link to another file of the same id counts once.

    Raises:
        DataError: if there is no such folder.
    """
    top = Path(root)
    if not top.is_dir():
        raise DataError(f"{top}: no such folder of videos; give the folder that holds them")
    skipped: list[tuple[Path, str]] = []
    by_id: dict[str, list[Path]] = {}
    home = top.resolve()
    for path in _candidates(top, home, skipped):
        reason = _refusal(path, home)
        if reason:
            skipped.append((path, reason))
        else:
            by_id.setdefault(id_of(path), []).append(path)
    return {video_id: _distinct(paths) for video_id, paths in by_id.items()}, skipped


def duplicates(files: Mapping[str, Path]) -> list[tuple[str, ...]]:
    """Groups of ids whose files are one file or hold the same bytes, in the order of `files`.

    Only files of equal size are read. Empty files are no copies of each other: they are each broken alone.
    """
    by_size: dict[int, dict[tuple[int, int], list[str]]] = {}
    for video_id, path in files.items():
        facts = _facts(path)
        if facts.st_size:
            inodes = by_size.setdefault(facts.st_size, {})
            inodes.setdefault((facts.st_dev, facts.st_ino), []).append(video_id)
    groups = []
    for inodes in by_size.values():
        by_content: dict[str, list[str]] = {}
        for ids in inodes.values():
            content = _sha256(files[ids[0]]) if len(inodes) > 1 else ""
            by_content.setdefault(content, []).extend(ids)
        groups += [tuple(ids) for ids in by_content.values() if len(ids) > 1]
    order = {video_id: place for place, video_id in enumerate(files)}
    return sorted(groups, key=lambda ids: order[ids[0]])


def refuse_duplicates(files: Mapping[str, Path]) -> None:
    """Raise a DataError that lists the ids under which one video appears more than once."""
    groups = duplicates(files)
    if groups:
        listed = [
            " = ".join(f"{shown(video_id)} ({shown(str(files[video_id]))})" for video_id in ids) for ids in groups
        ]
        raise DataError(
            f"{len(groups)} video(s) appear under more than one id: {listing(listed, separator='; ')}; "
            "remove one of each, or pass an explicit map from id to file",
            fault="F20",
        )


@dataclass(frozen=True)
class Coverage:
    """How many of the videos a list names are there; it travels with every number computed from them.

    Attributes:
        used: listed and present.
        missing: listed and not present.
        unlisted: present and not listed.
    """

    used: tuple[str, ...]
    missing: tuple[str, ...]
    unlisted: tuple[str, ...]

    @property
    def share(self) -> float:
        """Used videos / listed videos, in 0..1; 0 if nothing is listed."""
        listed = len(self.used) + len(self.missing)
        return len(self.used) / listed if listed else 0.0

    def __str__(self) -> str:
        parts = []
        if self.missing:
            parts.append(f"{len(self.missing)} missing: {listing(map(shown, self.missing))}")
        if self.unlisted:
            parts.append(f"{len(self.unlisted)} unlisted")
        gaps = f" ({'; '.join(parts)})" if parts else ""
        return f"{len(self.used)} of {len(self.used) + len(self.missing)} videos{gaps}"


def coverage(listed_ids: Iterable[str], present_ids: Iterable[str]) -> Coverage:
    """What a list and a folder have in common, matched under NFC; every id comes back in its normal form.

    >>> print(coverage(["a", "b", "c"], ["c", "a", "x"]))
    2 of 3 videos (1 missing: b; 1 unlisted)
    """
    listed = dict.fromkeys(map(normal_id, listed_ids))
    present = dict.fromkeys(map(normal_id, present_ids))
    return Coverage(
        used=tuple(i for i in listed if i in present),
        missing=tuple(i for i in listed if i not in present),
        unlisted=tuple(i for i in present if i not in listed),
    )


def _candidates(top: Path, home: Path, skipped: list[tuple[Path, str]]) -> Iterator[Path]:
    """Paths named like videos, in sorted order; folders that cannot be entered go to `skipped`."""

    def note(error: OSError) -> None:
        skipped.append((Path(error.filename), "folder that cannot be read"))

    for folder, folders, names in os.walk(top, onerror=note):
        folders.sort(key=os.fsencode)
        links = [name for name in folders if Path(folder, name).is_symlink()]
        outside = [name for name in links if not _lies_in(Path(folder, name), home)]
        skipped += [(Path(folder, name), "link to a folder outside the root") for name in outside]
        for name in sorted({*names, *folders} - {*links}, key=os.fsencode):
            if Path(name).suffix.lower() in VIDEO_SUFFIXES:
                yield Path(folder, name)


def _refusal(path: Path, home: Path) -> str:
    """Why a path named like a video is not taken as one; empty if it is."""
    if path.name.startswith("._"):
        return "resource fork of another file"
    try:
        mode = path.stat().st_mode
    except OSError:
        return "dangling or looping link" if path.is_symlink() else "file that cannot be read"
    if path.is_symlink() and not _lies_in(path, home):
        return "link to a file outside the root"
    return "" if stat.S_ISREG(mode) else "not a regular file"


def _lies_in(path: Path, home: Path) -> bool:
    try:
        return path.resolve().is_relative_to(home)
    except (OSError, RuntimeError):  # a loop: RuntimeError up to Python 3.12, OSError after
        return False


def _distinct(paths: list[Path]) -> list[Path]:
    """`paths` without links to others among them; a file itself comes before a link to it."""
    if len(paths) == 1:
        return paths
    kept: dict[Path, Path] = {}
    for path in sorted(paths, key=lambda p: (p.is_symlink(), os.fsencode(p))):
        kept.setdefault(path.resolve(), path)
    return list(kept.values())


def _facts(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_READ_BYTES):
                digest.update(block)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
    return digest.hexdigest()
