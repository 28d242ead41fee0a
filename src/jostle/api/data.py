"""Data sets by name: made on first use, checked on every use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.api.corrupting import cores

if TYPE_CHECKING:
    from jostle.datasets.dataset import Dataset

Progress = Callable[[int, int], None]


def load_dataset(
    name: str,
    subset: str = "test",
    *,
    seed: int = 0,
    root: str | Path | None = None,
    jobs: int | None = None,
    verify: bool = False,
    progress: Progress | None = None,
) -> Dataset:
    """One subset of a data set, its files on disk and whole.

    What is missing is made first, which takes a while the first time; work that was stopped goes on where it was.
    Files whose size is not the recorded one, or whose time and content are not, are made again.

    Args:
        name: one of `jostle names datasets`.
        subset: `puppets` has extractor, training, validation and test.
        seed: another seed gives other videos, in another folder.
        root: the folder that holds data sets; by default the cache, `$JOSTLE_CACHE` or `~/.cache/jostle`.
        jobs: processes; by default one a core. The bytes do not depend on it.
        verify: compare every file with its hash.
        progress: called with (files ready, files in all).

    Raises:
        ResourceError: if the disk is full; finished files are kept.
        DataError: if the folder cannot be used.
    """
    from jostle.cache import cache_folder
    from jostle.datasets.dataset import Request, datasets

    kind = datasets[name]
    kind.check_subset(subset)
    place = cache_folder() if root is None else Path(root)
    return kind.load(Request(subset, place, seed, cores() if jobs is None else jobs, verify, progress))
