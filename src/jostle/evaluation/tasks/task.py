"""Base class and registry of tasks: annotations, predictions, their storage and their metric."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from jostle.core.registry import Registry
from jostle.core.types.columns import Flags, Floats
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.datasets.dataset import Dataset, datasets
from jostle.evaluation.inference.jobs import Output, VideoJob
from jostle.evaluation.recipes.recipe import Cell, Recipe
from jostle.metrics.metric import Metric, check_value, find_metric, measure

Array = npt.NDArray[Any]
Kind = TypeVar("Kind", bound="Task[Any]")


@dataclass(frozen=True)
class MetricValue:
    """Metric value of a cell."""

    value: float  # value of the benchmark's metric, a fraction
    more: dict[str, Any] = field(default_factory=dict)  # further values for scores.json


@dataclass(frozen=True)
class Item:
    """Part of a video that a model gets right or loses: an action, a label, a frame, a question or a sentence."""

    label: str  # class of the item, by which breaking points are broken down
    start: float | None = None  # seconds; None for the whole video
    end: float | None = None
    frame: str = ""  # `<video>/<name>` of an item that is a single frame
    text: str = ""  # question or sentence, where the item is one


class Task(ABC, Generic[Output]):
    """One benchmark on one data set: everything in a run that depends on the task."""

    suffix: ClassVar[str]  # of predictions files
    loss_rule: ClassVar[str] = ""  # when the model loses an item, in words; empty for a task without items

    def __init__(self, recipe: Recipe, data: Dataset) -> None:
        self.recipe, self.data = recipe, data

    @property
    @abstractmethod
    def annotations(self) -> Any:
        """Annotations that the task is scored by."""

    @property
    def videos(self) -> Sequence[str]:
        """Ids of the annotated videos, in the order of the annotations."""
        videos: Sequence[str] = self.annotations.videos
        return videos

    @cached_property
    def metric(self) -> Metric:
        """Metric of the benchmark."""
        return find_metric(self.recipe.metric)

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

    @cached_property
    def actions(self) -> dict[str, Segments]:
        """Actions of each video that the data set annotates besides its labels, for placements."""
        return known_actions(self.data)

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

    def measured_truth(self, names: Sequence[str]) -> Any:
        """Return the annotations of some videos, as the metric takes them."""
        return self.annotations.of_videos(names)

    @abstractmethod
    def to_predictions(self, outputs: Mapping[str, Output]) -> Any:
        """Join predictions by video to what the metric takes."""

    def read_predictions(self, path: Path, truth: Any) -> Any:
        """Read the predictions of a cell as the metric takes them."""
        return self.to_predictions(self.read(path))

    def measure(self, path: Path, names: Sequence[str]) -> MetricValue:
        """Compute the metric of the predictions in a file on these videos."""
        truth = self.measured_truth(names)
        predictions = self.read_predictions(path, truth)
        measured = measure(self.metric, truth, predictions, self.recipe)
        value = check_value(self.metric, measured.value)
        return MetricValue(value, measured.more | self.further_values(path, truth, predictions))

    def further_values(self, path: Path, truth: Any, predictions: Any) -> dict[str, Any]:
        """Return values for scores.json that need more than the predictions of a cell, as what it changes."""
        return {}

    def video_score(self, name: str, output: Output) -> float | None:
        """Return the score of one video whose mean over videos is the value of a cell; None if there is none."""
        if self.metric.mean_over != "videos":
            return None
        truth = self.measured_truth([name])
        if not len(truth):
            return None
        return measure(self.metric, truth, self.to_predictions({name: output}), self.recipe).value

    def items(self, name: str) -> Sequence[Item]:
        """Return the parts of a video that `judge` judges; none for a task without."""
        return ()

    def operating_threshold(self, outputs: Mapping[str, Output]) -> float:
        """Return the score from which predictions count, given those for clean videos; 0 where every one does."""
        return 0.0

    def judge(self, name: str, output: Output, threshold: float) -> tuple[Floats, Flags]:
        """Return a score for each item of a video, higher where it is safer, and whether the model gets it right."""
        raise NotImplementedError


ActionPairs = dict[str, list[list[float]]]


def known_actions(data: Dataset) -> dict[str, Segments]:
    """Return the actions of each video that the data set annotates besides its labels.

    A video without any counts as one action from beginning to end.
    """
    truth = next((part for part in data.annotations if isinstance(part, Truth)), None)
    return {} if truth is None else truth.actions


def action_pairs(actions: Mapping[str, Segments], videos: Iterable[str]) -> ActionPairs:
    """Return starts and ends in seconds by video, JSON-serializable, for those of `videos` with known actions."""
    known = ((name, actions[name]) for name in videos if name in actions)
    return {name: np.stack([segments.start, segments.end], 1).tolist() for name, segments in known}


def segments_from_pairs(places: Mapping[str, Iterable[Sequence[float]]]) -> dict[str, Segments]:
    """Invert `action_pairs`, without the labels, which placements do not need."""
    return {name: Segments.from_pairs(pairs) for name, pairs in places.items()}


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
