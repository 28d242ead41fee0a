"""Videos of a data set: search of folders, duplicates, coverage of a list, and whether each of them opens."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.core.formatting import join_names
from jostle.core.results import Result
from jostle.core.tables import Table, findings_table
from jostle.core.types.video_location import is_address
from jostle.datasets.dataset import Dataset
from jostle.errors import DataError, JostleError
from jostle.io.files.video_ids import id_of, normalize_id, quote_name
from jostle.io.video.frame_folder import is_image_name
from jostle.io.video.location import is_member
from jostle.io.video.source import fingerprint_of, identity_of, probe
from jostle.io.video.validation import Identity
from jostle.io.video.video_source import video_suffixes

_FLOW = frozenset(("flow", "flow_x", "flow_y", "flow_u", "flow_v"))  # folders of optical flow, as images
_PAIRS = {"u": "v", "v": "u", "x": "y", "y": "x"}  # and what such a folder is called beside another


class VideoFiles(dict[str, Path]):
    """Video files by id, or folders of images, and the files that were skipped.

    Attributes:
        skipped: (path, reason) of everything that is named like a video and was not taken.
    """

    def __init__(self, files: Mapping[str, Path], skipped: Iterable[tuple[Path, str]] = ()) -> None:
        super().__init__(files)
        self.skipped = tuple(skipped)

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each reason to skip, with a count and the first few paths."""
        counts = Counter(reason for _, reason in self.skipped)
        return tuple(
            f"{count} skipped, {reason}: " + join_names(str(path) for path, why in self.skipped if why == reason)
            for reason, count in sorted(counts.items())
        )


def id_at(path: Path) -> str:
    """Return the id of a video: a file name without suffix, or the name of a folder of images.

    >>> id_at(Path("videos/a.mp4"))
    'a'
    >>> id_at(Path("shard.tar#b.mp4"))
    'b'
    """
    if path.is_dir():
        return normalize_id(os.fsencode(path.resolve().name).decode("utf-8", "surrogateescape"))
    return id_of(path.name.rpartition("#")[2] if is_member(path) else path)


def holds_frames(folder: Path) -> bool:
    """Return whether a folder is one video: it holds numbered images, and no video file.

    Raises:
        DataError: F20 if it holds both, of which neither is guessed.
    """
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise DataError(f"{folder}: cannot be read ({error.strerror})") from None
    images, files = any(map(is_image_name, names)), [name for name in names if _named_as_video(name)]
    if images and files:
        raise DataError(
            f"{folder}: holds both images and video files ({join_names(map(quote_name, sorted(files)))}); pass one of "
            "the files, or put the images into a folder of their own",
            fault="F20",
        )
    return images


def find_videos(root: str | Path) -> VideoFiles:
    """Find every video under `root`, by id; the id is the file's name without its suffix.

    Where there are no video files, folders of images are the videos, and their names the ids; `root` itself may be
    one. Beside video files they are left out, as pictures of something else.

    Links to folders are never followed, so a loop cannot trap the search: a folder inside `root` is met by
    its own path, and one outside is refused, as a link to a file outside is. Paths keep the bytes of names.

    Raises:
        DataError: if there is no such folder, or if two files have one id.
    """
    top = Path(root)
    by_id, skipped = every_video(top)
    frames = {video_id: own for video_id, paths in by_id.items() if (own := [p for p in paths if p.is_dir()])}
    if sum(map(len, frames.values())) < sum(map(len, by_id.values())):
        skipped += [(path, "folder of images beside video files") for paths in frames.values() for path in paths]
        files = {video_id: [path for path in paths if not path.is_dir()] for video_id, paths in by_id.items()}
        by_id = {video_id: paths for video_id, paths in files.items() if paths}
    files = dict(sorted(by_id.items()))
    doubles = [
        f"{quote_name(video_id)} ({' and '.join(quote_name(str(p.relative_to(top))) for p in paths)})"
        for video_id, paths in files.items()
        if len(paths) > 1
    ]
    if doubles:
        raise DataError(
            f"{top}: {len(doubles)} id(s) have more than one file: {join_names(doubles, separator='; ')}; "
            "move one of each away, or pass an explicit map from id to file",
            fault="F20",
        )
    return VideoFiles({video_id: paths[0] for video_id, paths in files.items()}, skipped)


def every_video(root: str | Path) -> tuple[dict[str, list[Path]], list[tuple[Path, str]]]:
    """Return all videos under `root` by id, and (path, reason) of skipped ones; see `find_videos`.

    A folder of numbered images is a video, unless video files lie in it too; `root` is one if there is nothing else.

    A link to another file of the same id counts once.
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
            by_id.setdefault(id_at(path), []).append(path)
    if len(by_id) > 1 or any(top not in paths for paths in by_id.values()):
        by_id = {video_id: left for video_id, paths in by_id.items() if (left := [p for p in paths if p != top])}
    return {video_id: _distinct(paths) for video_id, paths in by_id.items()}, skipped


def duplicates(files: Mapping[str, Path]) -> list[tuple[str, ...]]:
    """Return groups of ids whose files are identical, in the order of `files`.

    Folders of images are the same if their images are, by name and content. Only files of equal size are read. Empty
    files are no copies of each other: they are each broken alone.
    """
    by_size: dict[int, dict[tuple[int, int], list[str]]] = {}
    for video_id, path in files.items():
        facts = _facts(path)
        if facts.size:
            inodes = by_size.setdefault(facts.size, {})
            inodes.setdefault((facts.device, facts.inode), []).append(video_id)
    groups = []
    for inodes in by_size.values():
        by_content: dict[str, list[str]] = {}
        for ids in inodes.values():
            content = fingerprint_of(files[ids[0]]) if len(inodes) > 1 else ""
            by_content.setdefault(content, []).extend(ids)
        groups += [tuple(ids) for ids in by_content.values() if len(ids) > 1]
    order = {video_id: place for place, video_id in enumerate(files)}
    return sorted(groups, key=lambda ids: order[ids[0]])


@dataclass(frozen=True)
class VideoCoverage:
    """Coverage of a list of videos by existing files, reported with every score computed from them.

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
            parts.append(f"{len(self.missing)} missing: {join_names(map(quote_name, self.missing))}")
        if self.unlisted:
            parts.append(f"{len(self.unlisted)} unlisted")
        gaps = f" ({'; '.join(parts)})" if parts else ""
        return f"{len(self.used)} of {len(self.used) + len(self.missing)} videos{gaps}"


def coverage(listed_ids: Iterable[str], present_ids: Iterable[str]) -> VideoCoverage:
    """Compare a list with the videos that exist, by ids in NFC.

    >>> print(coverage(["a", "b", "c"], ["c", "a", "x"]))
    2 of 3 videos (1 missing: b; 1 unlisted)
    """
    listed = dict.fromkeys(map(normalize_id, listed_ids))
    present = dict.fromkeys(map(normalize_id, present_ids))
    return VideoCoverage(
        used=tuple(i for i in listed if i in present),
        missing=tuple(i for i in listed if i not in present),
        unlisted=tuple(i for i in present if i not in listed),
    )


def _candidates(top: Path, home: Path, skipped: list[tuple[Path, str]]) -> Iterator[Path]:
    """Yield paths with names of videos, in sorted order; unreadable folders go to `skipped`."""

    def note(error: OSError) -> None:
        skipped.append((Path(error.filename), "folder that cannot be read"))

    for folder, folders, names in os.walk(top, onerror=note):
        folders.sort(key=os.fsencode)
        links = [name for name in folders if Path(folder, name).is_symlink()]
        outside = [name for name in links if not _lies_in(Path(folder, name), home)]
        skipped += [(Path(folder, name), "link to a folder outside the root") for name in outside]
        for name in sorted({*names, *folders} - {*links}, key=os.fsencode):
            if _named_as_video(name):
                yield Path(folder, name)
        if any(map(_is_numbered_image, names)):
            if any(map(_named_as_video, names)):
                skipped.append((Path(folder), "images beside video files"))
            else:
                yield Path(folder)


def _refusal(path: Path, home: Path) -> str:
    """Return why a path with the name of a video is skipped; empty if it is not."""
    if path.name.startswith("._"):
        return "resource fork of another file"
    if _is_flow(path):
        return "optical flow"
    try:
        mode = path.stat().st_mode
    except OSError:
        return "dangling or looping link" if path.is_symlink() else "file that cannot be read"
    if path.is_symlink() and not _lies_in(path, home):
        return "link to a file outside the root"
    if stat.S_ISDIR(mode) and not _named_as_video(path.name):
        with os.scandir(path) as entries:
            links = [Path(entry) for entry in entries if entry.is_symlink() and is_image_name(entry.name)]
        return "" if all(_lies_in(link, home) for link in links) else "images that are links to files outside the root"
    return "" if stat.S_ISREG(mode) else "not a regular file"


def _is_flow(path: Path) -> bool:
    name = path.name.lower()
    return path.is_dir() and (name in _FLOW or (name in _PAIRS and path.with_name(_PAIRS[name]).is_dir()))


def _named_as_video(name: str) -> bool:
    return Path(name).suffix.lower() in video_suffixes()


def _is_numbered_image(name: str) -> bool:
    return is_image_name(name) and any(c in "0123456789" for c in name.rpartition(".")[0])


def _lies_in(path: Path, home: Path) -> bool:
    try:
        return path.resolve().is_relative_to(home)
    except (OSError, RuntimeError):  # a loop: RuntimeError up to Python 3.12, OSError after
        return False


def _distinct(paths: list[Path]) -> list[Path]:
    """Return `paths` without links to others among them; a file comes before a link to it."""
    if len(paths) == 1:
        return paths
    unique: dict[Path, Path] = {}
    for path in sorted(paths, key=lambda p: (p.is_symlink(), os.fsencode(p))):
        unique.setdefault(path.resolve(), path)
    return list(unique.values())


def _facts(path: Path) -> Identity:
    if path.is_dir() or is_address(path) or is_member(path):
        return identity_of(path)[1]
    try:
        status = path.stat()
        return Identity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None


@dataclass(frozen=True)
class CheckedData(Result):
    """Result of a check of a data set."""

    data: Dataset
    lacking: tuple[str, ...]  # videos that are not there or cannot be opened, and those that are there twice
    altered: tuple[str, ...] = ()  # nothing, as nobody knows what the files of others were

    @property
    def summary(self) -> str:
        """Summary of the result in one line."""
        variant = f", {self.data.variant}" if self.data.variant else ""
        return f"{self.data!r}{variant}"

    def tables(self) -> tuple[Table, ...]:
        """Return what is altered and what is lacking."""
        return (findings_table(self.summary, self.altered, self.lacking),)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready data."""
        data = self.data
        facts: dict[str, Any] = {"dataset": data.name, "subset": data.subset, "folder": str(data.folder)}
        facts |= {"task": data.task, "variant": data.variant, "videos": len(data.videos)}
        facts |= {"missing": list(data.missing), "unlisted": [str(path) for path in data.unlisted]}
        return {"format": 1, **facts, "notes": list(data.notes), "altered": [], "lacking": list(self.lacking)}


def check_data(data: Dataset, progress: Callable[[int, int], None] | None = None) -> CheckedData:
    """Open every video of a data set, without decoding it, and find those that appear under several ids (F20)."""
    lacking, sound = [], {}
    if data.missing:
        lacking.append(
            f"{len(data.missing)} are annotated and have no file: {join_names(map(quote_name, data.missing))}"
        )
    for done, (name, path) in enumerate(data.videos.items(), 1):
        why = _wrong_with(path)
        if why is not None:
            lacking.append(f"{quote_name(name)} cannot be used: {why}")
        else:
            sound[name] = path
        if progress is not None:
            progress(done, len(data.videos))
    groups = [" = ".join(map(quote_name, ids)) for ids in duplicates(sound)]
    if groups:
        lacking.append(
            f"{len(groups)} video(s) appear under more than one id and count as often: "
            f"{join_names(groups, separator='; ')}; remove all but one of each"
        )
    return CheckedData(data, tuple(lacking))


def _wrong_with(path: Path) -> str | None:
    try:
        probe(path)
    except JostleError as error:
        return str(error)
    return None
