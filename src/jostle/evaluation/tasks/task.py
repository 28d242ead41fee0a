"""Base class and registry of tasks: annotations, predictions, their storage and their metric."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy.typing as npt

from jostle.core.registry import Registry
from jostle.datasets.dataset import Dataset, datasets
from jostle.evaluation.inference.jobs import Output, VideoJob
from jostle.evaluation.recipes.recipe import Cell, Recipe

Array = npt.NDArray[Any]
Kind = TypeVar("Kind", bound="Task[Any]")


@dataclass(frozen=True)
class MetricValue:
    """Metric value of a cell.

    Attributes:
        value: value of the benchmark's metric, a fraction.
        more: further values for scores.json.
    """

    value: float
    more: dict[str, Any] = field(default_factory=dict)


class Task(ABC, Generic[Output]):
    """One benchmark on one data set: everything in a run that depends on the task."""

    suffix: ClassVar[str]  # of predictions files

    def __init__(self, recipe: Recipe, data: Dataset) -> None:
        self.recipe, self.data = recipe, data

    @property
    @abstractmethod
    def videos(self) -> Sequence[str]:
        """Ids of the annotated videos, in the order of the annotations."""

    @property
    def classes(self) -> Sequence[str]:
        """All classes of detections; empty where the predictions files name them."""
        return ()

    def classes_in(self, names: Sequence[str]) -> int | None:
        """Return the number of classes that occur in these videos; None if not applicable."""
        return None

    def coverage(self, names: Sequence[str]) -> dict[str, int]:
        """Return the numbers of videos and classes used and in all, or in the publication if it has more."""
        kind = datasets[self.data.name] if self.data.name in datasets else None  # noqa: SIM401
        listed = 0 if kind is None else kind.videos.get(self.data.subset, 0)
        coverage = {"videos": len(names), "of": max(len(self.videos), listed)}
        used, every = self.classes_in(names), self.classes_in(self.videos)
        if used is not None and every is not None:
            coverage |= {"classes": used, "of_classes": max(every, 0 if kind is None else kind.classes)}
        return coverage

    def uses_video(self, name: str) -> bool:
        """Whether the task uses a video."""
        return True

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """`sha256:` and a hash of the annotations."""

    @abstractmethod
    def write_truth(self, path: Path) -> None:
        """Write the annotations as JSON."""

    def diagnose(self, path: Path, names: Sequence[str]) -> dict[str, Any] | None:
        """Diagnose the errors of the predictions in a file on these videos; None if not applicable."""
        return None

    def portions(self, name: str) -> Sequence[int | None]:
        """Return the numbers of the portions that results of a video are stored by; (None,) for the whole."""
        return (None,)

    def join_portions(self, outputs: Sequence[Output]) -> Output:
        """Join the predictions for the portions of a video."""
        (whole,) = outputs
        return whole

    @abstractmethod
    def make_job(
        self, name: str, path: Path, cells: tuple[Cell, ...], seed: int, portion: int | None = None
    ) -> VideoJob:
        """Return the job for a video, or for a portion of it."""

    @abstractmethod
    def pack(self, outputs: Mapping[str, Output]) -> tuple[dict[str, Array], list[str]]:
        """Convert the predictions for a video, by cell, to arrays and the class names they index."""

    @abstractmethod
    def unpack(self, arrays: Mapping[str, Array], classes: Sequence[str]) -> dict[str, Output]:
        """Convert the arrays of `pack` back to predictions."""

    @abstractmethod
    def write(self, path: Path, outputs: Mapping[str, Output]) -> None:
        """Write the predictions of one cell, by video."""

    @abstractmethod
    def read(self, path: Path) -> dict[str, Output]:
        """Read the predictions that `write` wrote, by video."""

    @abstractmethod
    def measure(self, path: Path, names: Sequence[str]) -> MetricValue:
        """Compute the metric of the predictions in a file on these videos."""

    def video_score(self, name: str, output: Output) -> float | None:
        """Return the score of one video whose mean over videos is the value of a cell; None if there is none."""
        return None


tasks: Registry[type[Task[Any]]] = Registry("task", "jostle.evaluation.tasks")


def task(name: str) -> Callable[[type[Kind]], type[Kind]]:
    """Register a task class under its name in recipes."""

    def register(kind: type[Kind]) -> type[Kind]:
        tasks.add(name, kind)
        return kind

    return register


def make_task(recipe: Recipe, data: Dataset) -> Task[Any]:
    """Return the task of a benchmark on a data set.

    Raises:
        BadValue: if the data set has other annotations.
    """
    instance = tasks[recipe.task](recipe, data)
    instance.videos  # noqa: B018
    return instance
