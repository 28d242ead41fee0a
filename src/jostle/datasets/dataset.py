"""A data set by name: one function that sees to its files, one decorator, one shelf."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from jostle.errors import BadValue, UnknownName
from jostle.registry import Registry
from jostle.types.truth import Truth

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Files:
    """What became of the files of a data set.

    Attributes:
        made: files that were not there.
        kept: files that were there and are whole.
        rebuilt: files that were there but damaged, cut off, or of another recipe.
    """

    made: int = 0
    kept: int = 0
    rebuilt: int = 0

    def __add__(self, other: Files) -> Files:
        return Files(self.made + other.made, self.kept + other.kept, self.rebuilt + other.rebuilt)

    def __str__(self) -> str:
        return f"{self.made} files made, {self.kept} kept, {self.rebuilt} rebuilt"


@dataclass(frozen=True)
class Dataset:
    """One subset of a data set, with every file of it on disk and whole.

    Attributes:
        name: as `jostle names datasets` lists it.
        subset: which part of it.
        folder: where its annotations and lists lie.
        truth: what is annotated in the videos of the subset.
        videos: the file of each video, by its id, in the order of `truth.videos`.
        files: how many files had to be made for it.
    """

    name: str
    subset: str
    folder: Path
    truth: Truth
    videos: Mapping[str, Path]
    files: Files

    def __repr__(self) -> str:
        return f"Dataset({self.name} {self.subset}: {len(self.videos)} videos, {len(self.truth)} instances)"


@dataclass(frozen=True)
class Request:
    """What is asked of a data set.

    Attributes:
        subset: one of its subsets.
        root: the folder that holds data sets.
        seed: another seed gives other videos.
        jobs: processes that may work at once.
        verify: read every file and compare its hash, instead of only those whose size or time has changed.
        progress: called with (files ready, files in all).
    """

    subset: str
    root: Path
    seed: int = 0
    jobs: int = 1
    verify: bool = False
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise BadValue(f"jobs must be at least 1, got {self.jobs}")
        if self.seed < 0:
            raise BadValue(f"the seed of a data set must not be negative, got {self.seed}")


@dataclass(frozen=True)
class DatasetKind:
    """An entry of the shelf: the subsets there are, and the function that gives one of them."""

    name: str
    subsets: tuple[str, ...]
    load: Callable[[Request], Dataset]

    @property
    def summary(self) -> str:
        """The first sentence of the function's docstring."""
        return " ".join((self.load.__doc__ or "").strip().split("\n\n")[0].split())

    def check_subset(self, subset: str) -> None:
        """Raise unless there is a subset of this name."""
        if subset not in self.subsets:
            raise UnknownName(f"subset of {self.name}", subset, self.subsets)


Loader = TypeVar("Loader", bound=Callable[[Request], Dataset])

datasets: Registry[DatasetKind] = Registry("data set", "jostle.puppets")


def dataset(name: str, *, subsets: tuple[str, ...]) -> Callable[[Loader], Loader]:
    """Put a function that sees to the files of a data set on the shelf; see `DatasetKind`."""

    def put(load: Loader) -> Loader:
        datasets.add(name, DatasetKind(name, subsets, load))
        return load

    return put
