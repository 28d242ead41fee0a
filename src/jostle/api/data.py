"""Data sets by name: made on first use, or found in the folder where they lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.workers import cores

if TYPE_CHECKING:
    from jostle.benchmarks.recipe import Recipe
    from jostle.datasets.dataset import Dataset

Progress = Callable[[int, int], None]


def load_dataset(
    name: str,
    subset: str | None = None,
    *,
    seed: int = 0,
    root: str | Path | None = None,
    jobs: int | None = None,
    verify: bool = False,
    progress: Progress | None = None,
    annotations: str | Path | None = None,
    first: int | None = None,
    fps: Fraction | float | None = None,
) -> Dataset:
    """One subset of a data set: what is annotated in it, and where its videos lie.

    What is missing of `puppets` is made first, which takes a while the first time; work that was stopped goes on
    where it was. Files whose size is not the recorded one, or whose time and content are not, are made again.
    Other data sets are looked for in `root`, in the layouts people have them; a copy may be partial, and the result
    says what it lacks.

    Args:
        name: one of `jostle names datasets`.
        subset: `puppets` has extractor, training, validation and test; by default the one that results are given for.
        seed: another seed gives other videos, in another folder.
        root: for `puppets` the folder that holds data sets, by default the cache, `$JOSTLE_CACHE` or
            `~/.cache/jostle`; for others the folder with the annotations and videos.
        jobs: processes; by default one a core. The bytes do not depend on it.
        verify: compare every file with its hash.
        progress: called with (files ready, files in all).
        annotations: the file or folder of annotations, if it is not in `root` or is one of several there.
        first: make only so many videos of `puppets`; the others count as missing.
        fps: the rate of folders of images, where neither they nor the annotations say it.

    Raises:
        BadValue: if a folder is needed and none is given.
        ResourceError: if the disk is full; finished files are kept.
        DataError: if the folder cannot be used, or holds no annotations of the data set.
    """
    from jostle.cache import cache_folder
    from jostle.datasets.dataset import Request, datasets
    from jostle.errors import BadValue

    kind = datasets[name]
    part = kind.usual if subset is None else subset
    kind.check_subset(part)
    if kind.on_disk and root is None:
        raise BadValue(
            f"{name} is not made by jostle: give the folder with its annotations and videos as root; "
            "docs/how-to/get-the-data.md says where they come from"
        )
    if annotations is not None and not kind.on_disk:
        raise BadValue(f"{name} comes with its own annotations; leave annotations out")
    if first is not None and kind.on_disk:
        raise BadValue(f"{name} is not made by jostle, so none of its videos can be left unmade; leave first out")
    place = cache_folder() if root is None else Path(root)
    chosen = None if annotations is None else Path(annotations)
    found = kind.load(Request(part, place, seed, cores() if jobs is None else jobs, verify, progress, chosen, first))
    if fps is None:
        return found
    from jostle.types.clip import checked_rate

    return replace(found, fps=checked_rate(fps))


@dataclass(frozen=True)
class AskedData:
    """The data that a caller wants a recipe to be done to; see `run`."""

    folder: str | Path | None = None
    dataset: str | None = None
    subset: str | None = None
    fps: Fraction | float | None = None

    def put_under(self, recipe: Recipe) -> Recipe:
        """The recipe on these data."""
        from jostle.benchmarks.data import recipe_on

        return recipe_on(recipe, self.dataset, self.subset, None if self.folder is None else Path(self.folder))

    def load(self, recipe: Recipe) -> Dataset:
        """The data set, as the recipe needs it."""
        from jostle.benchmarks.data import check_task

        # The data are the same for every seed of the corruptions.
        found = load_dataset(recipe.dataset, recipe.subset or None, root=self.folder, fps=self.fps)
        check_task(recipe, found)
        return found
