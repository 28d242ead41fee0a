"""Folder of generated files with a manifest, which are rebuilt if they differ from it.

A manifest in the folder has a line for each finished file, appended after the file was renamed into place. A file
without a line was not finished and counts as missing. Interrupted work is resumed, and two processes may fill one
folder at the same time, as they write the same bytes.
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

from jostle.datasets.dataset import FileCounts, Progress
from jostle.errors import DataError, JostleError, MediaError, ResourceError
from jostle.io.video.source import fingerprint_of, identity_of
from jostle.parallel.workers import map_unordered

MANIFEST = "manifest.jsonl"
STALE_S = 600.0  # age from which a temporary file counts as abandoned

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class FileRecipe(Protocol):
    """Recipe of one file; plain data, as it is sent to other processes.

    Attributes:
        name: path of the file inside its folder, with slashes.
        key: everything else that determines its bytes; a file with another key counts as another file.
    """

    @property
    def name(self) -> str: ...

    @property
    def key(self) -> str: ...

    def write(self, path: Path) -> None:
        """Write the file; it must appear under `path` only when it is complete."""


@dataclass(frozen=True)
class ManifestLine:
    """Manifest line of a finished file."""

    file: str
    key: str
    size: int
    mtime_ns: int
    sha256: str


def fill(
    folder: Path,
    recipes: Sequence[FileRecipe],
    *,
    jobs: int = 1,
    verify: bool = False,
    on_bad: Callable[[FileRecipe, JostleError], None] | None = None,
    progress: Progress | None = None,
) -> FileCounts:
    """Ensure that every file exists in `folder` and is intact, generating those that are not.

    The size of every file is checked, and its hash too if its time is not the recorded one, or if `verify`.

    Args:
        on_bad: called with a file that cannot be generated, which is skipped; without it the first error is raised.

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
        finished = map_unordered(partial(_start_worker, folder), missing, jobs)
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
    return FileCounts(len(missing) - replaced - bad, len(recipes) - len(missing), replaced)


def read_hashes(folder: Path) -> dict[str, str]:
    """Return the hash of each file of the folder's manifest, by its path inside the folder."""
    return {line.file: line.sha256 for line in _read_manifest(folder).values()}


def _start_worker(folder: Path) -> Callable[[FileRecipe], JostleError | None]:
    return partial(_attempt, folder)


def _attempt(folder: Path, recipe: FileRecipe) -> JostleError | None:
    try:
        recipe.write(folder / recipe.name)
    except JostleError as error:
        return error
    return None


def _is_whole(folder: Path, recipe: FileRecipe, lines: dict[str, ManifestLine], *, verify: bool) -> bool:
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
        # Copied or touched, but identical. In a read-only folder it is hashed again next time.
        with contextlib.suppress(JostleError), _Journal(folder) as journal:
            journal.add(replace(line, mtime_ns=changed_ns))
    return True


def _line(folder: Path, recipe: FileRecipe) -> ManifestLine:
    path = folder / recipe.name
    try:
        return ManifestLine(recipe.name, recipe.key, *_state(path), sha256_of(path))
    except OSError as error:
        raise _wrap_os_error(error, path, "read") from None


def _state(path: Path) -> tuple[int, int]:
    if path.is_dir():
        _, identity = identity_of(path)
        return identity.size, identity.mtime_ns
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns


def sha256_of(path: Path) -> str:
    """Return the hash of a file, or of a folder of images.

    Raises:
        OSError, MediaError: if it cannot be read.
    """
    if path.is_dir():
        return fingerprint_of(path).removeprefix("sha256:")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_manifest(folder: Path) -> dict[str, ManifestLine]:
    """Read the last line of each file; invalid lines are ignored, and their files generated again."""
    path = folder / MANIFEST
    if path.exists() and not path.is_file():  # reading a pipe might never end
        raise DataError(
            f"{path}: not a regular file; delete it, or choose another folder by $JOSTLE_CACHE", fault="F137"
        )
    try:
        text = path.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _wrap_os_error(error, path, "read") from None
    lines = {}
    for written in text.split("\n"):
        try:
            line = ManifestLine(**json.loads(written))
        except (ValueError, TypeError, RecursionError):
            continue
        if isinstance(line.file, str):
            lines[line.file] = line
    return lines


class _Journal:
    """The manifest, open for appending lines."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / MANIFEST
        try:
            self._handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise _wrap_os_error(error, self._path, "written") from None

    def add(self, line: ManifestLine) -> None:
        """Append a line at once, after a newline in case a killed process left a partial line."""
        data = f"\n{json.dumps(asdict(line))}\n".encode()
        try:
            if os.write(self._handle, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._handle)
        except OSError as error:
            raise _wrap_os_error(error, self._path, "written") from None

    def __enter__(self) -> _Journal:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)


def _make_folders(folder: Path, recipes: Sequence[FileRecipe]) -> None:
    for directory in dict.fromkeys([folder, *((folder / recipe.name).parent for recipe in recipes)]):
        try:
            directory.mkdir(parents=True, exist_ok=True)
            _sweep(directory)
        except OSError as error:
            raise _wrap_os_error(error, directory, "written") from None


def _sweep(directory: Path) -> None:
    """Remove temporary files of killed processes."""
    oldest = time.time() - STALE_S
    for left in directory.glob(".*.part-*"):
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < oldest:
                shutil.rmtree(left) if left.is_dir() else left.unlink()


def _wrap_os_error(error: OSError, path: Path, what: str) -> JostleError:
    if error.errno in _FULL:
        return ResourceError(f"no space left on the disk for {path}; free some, then run again")
    return DataError(
        f"{path}: cannot be {what} ({error.strerror}); correct that, or choose another folder by $JOSTLE_CACHE",
        fault="F65",
    )
