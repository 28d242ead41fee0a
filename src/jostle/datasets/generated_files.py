"""A folder of files made by recipe: whole, recorded, and made again when they are not what was recorded.

A manifest in the folder has a line for each finished file, added when the file is in its place. A file without a
line was not finished and counts as absent. Work that is killed goes on where it was, and two processes may fill one
folder at the same time, as they make the same bytes.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from jostle.datasets.dataset import Files, Progress
from jostle.errors import DataError, JostleError, MediaError, ResourceError
from jostle.io.video.source import fingerprint_of, identity_of
from jostle.parallel.workers import worked

MANIFEST = "manifest.jsonl"
STALE_S = 600.0  # a temporary file that nobody has touched for so long was left by a process that is gone

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Recipe(Protocol):
    """How one file is made; it travels to another process, so it is plain data.

    Attributes:
        name: the file's path inside its folder, with slashes.
        key: what else decides its bytes; a file with another key counts as another file.
    """

    @property
    def name(self) -> str: ...

    @property
    def key(self) -> str: ...

    def write(self, path: Path) -> None:
        """Make the file; it must appear under `path` only when it is whole."""


@dataclass(frozen=True)
class Line:
    """What is recorded of a finished file."""

    file: str
    key: str
    size: int
    mtime_ns: int
    sha256: str


def fill(
    folder: Path,
    recipes: Sequence[Recipe],
    *,
    jobs: int = 1,
    verify: bool = False,
    on_bad: Callable[[Recipe, JostleError], None] | None = None,
    progress: Progress | None = None,
) -> Files:
    """See to it that every file is in `folder` and whole; make those that are not.

    The size of every file is checked, and its hash too if its time is not the recorded one, or if `verify`.

    Args:
        jobs: processes that work at once; the bytes do not depend on it.
        on_bad: told of a file that cannot be made, which is then left out; without it the first one ends it all.
        progress: called with (files ready, files in all).

    Raises:
        ResourceError: if the disk is full. What was finished before stays and is recorded.
        DataError: if the folder cannot be read or written.
    """
    lines = _read_manifest(folder)
    missing, replaced = [], 0
    for recipe in recipes:
        if not _is_whole(folder, recipe, lines, verify=verify):
            missing.append(recipe)
            replaced += os.path.lexists(folder / recipe.name)
    ready, bad = len(recipes) - len(missing), 0
    if missing:
        _make_folders(folder, missing)
        finished = worked(partial(_making_in, folder), missing, jobs)
        with _Journal(folder) as journal, contextlib.closing(finished):
            for recipe, error in finished:
                if error is None:
                    journal.add(_line(folder, recipe))
                elif on_bad is None or isinstance(error, ResourceError):
                    raise error
                else:
                    on_bad(recipe, error)
                    bad += 1
                ready += 1
                if progress:
                    progress(ready, len(recipes))
    return Files(len(missing) - replaced - bad, len(recipes) - len(missing), replaced)


def recorded(folder: Path) -> dict[str, str]:
    """The hash of each file that the folder's manifest knows, by its path inside the folder."""
    return {line.file: line.sha256 for line in _read_manifest(folder).values()}


def _making_in(folder: Path) -> Callable[[Recipe], JostleError | None]:
    return partial(_attempt, folder)


def _attempt(folder: Path, recipe: Recipe) -> JostleError | None:
    try:
        recipe.write(folder / recipe.name)
    except JostleError as error:
        return error
    return None


def _is_whole(folder: Path, recipe: Recipe, lines: dict[str, Line], *, verify: bool) -> bool:
    line = lines.get(recipe.name)
    if line is None or line.key != recipe.key:
        return False
    path = folder / recipe.name
    try:
        size, changed_ns = _state(path)
        if size != line.size:
            return False
        if changed_ns == line.mtime_ns and not verify:
            return True
        if sha256_of(path) != line.sha256:
            return False
    except (OSError, MediaError):
        return False
    if changed_ns != line.mtime_ns:
        # Copied or touched, and the same. A folder that cannot be written to is read again next time.
        with contextlib.suppress(JostleError), _Journal(folder) as journal:
            journal.add(replace(line, mtime_ns=changed_ns))
    return True


def _line(folder: Path, recipe: Recipe) -> Line:
    path = folder / recipe.name
    try:
        return Line(recipe.name, recipe.key, *_state(path), sha256_of(path))
    except OSError as error:
        raise _explained(error, path, "read") from None


def _state(path: Path) -> tuple[int, int]:
    if path.is_dir():
        _, found = identity_of(path)
        return found.size, found.mtime_ns
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns


def sha256_of(path: Path) -> str:
    """The hash of a file, or of a folder of images.

    Raises:
        OSError, MediaError: if it cannot be read.
    """
    if path.is_dir():
        return fingerprint_of(path).removeprefix("sha256:")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_manifest(folder: Path) -> dict[str, Line]:
    """The last line of each file. What cannot be understood is passed over, and its file made again."""
    path = folder / MANIFEST
    try:
        text = path.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _explained(error, path, "read") from None
    lines = {}
    for written in text.split("\n"):
        try:
            line = Line(**json.loads(written))
        except (ValueError, TypeError):
            continue
        if isinstance(line.file, str):
            lines[line.file] = line
    return lines


class _Journal:
    """The manifest, open for adding lines."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / MANIFEST
        try:
            self._handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise _explained(error, self._path, "written") from None

    def add(self, line: Line) -> None:
        """Add a line in one piece. It begins with a line end, in case a killed process left half a line."""
        data = f"\n{json.dumps(asdict(line))}\n".encode()
        try:
            if os.write(self._handle, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._handle)
        except OSError as error:
            raise _explained(error, self._path, "written") from None

    def __enter__(self) -> _Journal:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)


def _make_folders(folder: Path, recipes: Sequence[Recipe]) -> None:
    for place in dict.fromkeys([folder, *((folder / recipe.name).parent for recipe in recipes)]):
        try:
            place.mkdir(parents=True, exist_ok=True)
            _sweep(place)
        except OSError as error:
            raise _explained(error, place, "written") from None


def _sweep(place: Path) -> None:
    """Remove what killed processes left behind."""
    oldest = time.time() - STALE_S
    for left in place.glob(".*.part-*"):
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < oldest:
                shutil.rmtree(left) if left.is_dir() else left.unlink()


def _explained(error: OSError, path: Path, what: str) -> JostleError:
    if error.errno in _FULL:
        return ResourceError(f"no room on the disk for {path}; free some, then run again")
    return DataError(
        f"{path}: cannot be {what} ({error.strerror}); correct that, or choose another folder by $JOSTLE_CACHE",
        fault="F65",
    )
