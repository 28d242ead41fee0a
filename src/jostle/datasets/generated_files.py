"""Folder of generated files with a manifest, which are rebuilt if they differ from it.

A manifest in the folder has a line for each finished file, appended after the file was renamed into place. A file
without a line was not finished and counts as missing. Interrupted work is resumed, and two processes may fill one
folder at the same time, as they write the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Protocol

from jostle.datasets.dataset import FileCounts, Progress
from jostle.errors import JostleError, ResourceError
from jostle.io.files.atomic import disk_error, remove_leftovers
from jostle.io.files.ledger import Manifest
from jostle.parallel.workers import map_unordered

_REMEDY = "correct that, or choose another folder by $JOSTLE_CACHE"


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
    manifest = Manifest(folder, _REMEDY, "F137")
    missing, replaced = [], 0
    for recipe in recipes:
        if not manifest.is_whole(recipe.name, recipe.key, verify=verify):
            missing.append(recipe)
            replaced += os.path.lexists(folder / recipe.name)
    ready, bad = len(recipes) - len(missing), 0
    if missing:
        _make_folders(folder, missing)
        manifest.create()
        with closing(map_unordered(partial(_start_worker, folder), missing, jobs)) as finished:
            for recipe, error in finished:
                if error is None:
                    manifest.add(recipe.name, recipe.key)
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
    return {file: line.sha256 for file, line in Manifest(folder, _REMEDY, "F137").lines.items()}


def _start_worker(folder: Path) -> Callable[[FileRecipe], JostleError | None]:
    return partial(_attempt, folder)


def _attempt(folder: Path, recipe: FileRecipe) -> JostleError | None:
    try:
        recipe.write(folder / recipe.name)
    except JostleError as error:
        return error
    return None


def _make_folders(folder: Path, recipes: Sequence[FileRecipe]) -> None:
    for directory in dict.fromkeys([folder, *((folder / recipe.name).parent for recipe in recipes)]):
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise disk_error(error, directory, "written", _REMEDY, "F65") from None
        remove_leftovers(directory)
