"""What a run is about: what is annotated, what is found in a video, how that is kept, and what it is worth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy.typing as npt

from jostle.core.registry import Registry
from jostle.datasets.dataset import Dataset, datasets
from jostle.evaluation.inference.jobs import Found, Order
from jostle.evaluation.recipes.recipe import Cell, Recipe

Array = npt.NDArray[Any]
Kind = TypeVar("Kind", bound="Task[Any]")


@dataclass(frozen=True)
class Measured:
    """What the predictions of a cell are worth.

    Attributes:
        value: by the benchmark's metric, a fraction.
        more: further numbers for scores.json.
    """

    value: float
    more: dict[str, Any] = field(default_factory=dict)


class Task(ABC, Generic[Found]):
    """One benchmark on one data set. What the runner does is the same for all tasks; what differs is here."""

    suffix: ClassVar[str]  # of a file of predictions

    def __init__(self, recipe: Recipe, data: Dataset) -> None:
        self.recipe, self.data = recipe, data

    @property
    @abstractmethod
    def videos(self) -> Sequence[str]:
        """Ids that are annotated, in their order."""

    @property
    def classes(self) -> Sequence[str]:
        """Classes of detections, also those that do not occur; none where the files of predictions name them."""
        return ()

    def classes_in(self, names: Sequence[str]) -> int | None:
        """How many classes occur in these videos; None where that is not asked."""
        return None

    def coverage(self, names: Sequence[str]) -> dict[str, int]:
        """On how many videos and classes results are, and of how many: of those of the publication, if it has more."""
        kind = datasets[self.data.name] if self.data.name in datasets else None  # noqa: SIM401
        listed = 0 if kind is None else kind.videos.get(self.data.subset, 0)
        told = {"videos": len(names), "of": max(len(self.videos), listed)}
        used, every = self.classes_in(names), self.classes_in(self.videos)
        if used is not None and every is not None:
            told |= {"classes": used, "of_classes": max(every, 0 if kind is None else kind.classes)}
        return told

    def looks_at(self, name: str) -> bool:
        """Whether there is anything to look at in a video."""
        return True

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """`sha256:` and a hash of what is annotated."""

    @abstractmethod
    def write_truth(self, path: Path) -> None:
        """Write what is annotated, as JSON."""

    def diagnosed(self, path: Path, names: Sequence[str]) -> dict[str, Any] | None:
        """Why the predictions in a file fail on these videos; None where there is nothing to say."""
        return None

    def portions(self, name: str) -> Sequence[int | None]:
        """What the results of a video are kept by: numbers of portions of it, or None alone for the whole."""
        return (None,)

    def joined(self, found: Sequence[Found]) -> Found:
        """What was found in a video, from what was found in its portions."""
        (whole,) = found
        return whole

    @abstractmethod
    def order(self, name: str, path: Path, cells: tuple[Cell, ...], seed: int, portion: int | None = None) -> Order:
        """What is told of a video, or of a portion of it, to whoever looks at it."""

    @abstractmethod
    def packed(self, found: Mapping[str, Found]) -> tuple[dict[str, Array], list[str]]:
        """What was found in a video, by cell, as arrays and the names of classes that these count."""

    @abstractmethod
    def unpacked(self, arrays: Mapping[str, Array], classes: Sequence[str]) -> dict[str, Found]:
        """What `packed` was given."""

    @abstractmethod
    def write(self, path: Path, found: Mapping[str, Found]) -> None:
        """Write the predictions of one cell, given by video."""

    @abstractmethod
    def read(self, path: Path) -> dict[str, Found]:
        """What `write` was given."""

    @abstractmethod
    def measured(self, path: Path, names: Sequence[str]) -> Measured:
        """What the predictions in a file are worth, on these videos."""

    def glance(self, name: str, found: Found) -> float | None:
        """A number for one video whose mean over videos is the value of a cell; None where there is none."""
        return None


tasks: Registry[type[Task[Any]]] = Registry("task", "jostle.evaluation.tasks")


def task(name: str) -> Callable[[type[Kind]], type[Kind]]:
    """Put a kind of benchmark on the shelf, under the name that recipes have for it."""

    def put(kind: type[Kind]) -> type[Kind]:
        tasks.add(name, kind)
        return kind

    return put


def task_of(recipe: Recipe, data: Dataset) -> Task[Any]:
    """What a run of the benchmark on the data set is about.

    Raises:
        BadValue: if the data set is annotated with something else.
    """
    made = tasks[recipe.task](recipe, data)
    made.videos  # noqa: B018
    return made
