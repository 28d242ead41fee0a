"""Base class and registry of tasks: everything that depends on what a model is asked about a video."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import numpy.typing as npt

from jostle.core.registry import Registry
from jostle.core.schema import Mismatch, parse
from jostle.core.types.columns import Flags, Floats
from jostle.core.types.segments import Segments
from jostle.datasets.dataset import Dataset, datasets
from jostle.errors import BadValue, DataError, JostleError
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.jobs import Output, VideoJob
from jostle.evaluation.recipes.recipe import Cell, Recipe
from jostle.evaluation.run_folder.metadata import Content
from jostle.evaluation.tasks.actions import action_pairs, known_actions, segments_from_pairs
from jostle.evaluation.tasks.storage import OutputStorage
from jostle.evaluation.tasks.views import VideoView
from jostle.evaluation.tasks.words import Words
from jostle.io.files.atomic import write_text
from jostle.io.files.text import read_json
from jostle.metrics.measured import Measured, MetricValue
from jostle.metrics.metric import Metric, check_value, find_metric, measure
from jostle.models.loading.names import check_model

if TYPE_CHECKING:
    from jostle.evaluation.config import InferenceConfig

Array = npt.NDArray[Any]
Kind = TypeVar("Kind", bound="Task[Any, Any]")
Annotations = TypeVar("Annotations")
Need = Literal["required", "allowed"]  # of a field of a recipe

_TRUTH_ANEW = "delete it, and the same `jostle run` writes it anew"


@dataclass(frozen=True)
class Item:
    """Part of a video that a model gets right or loses: an action, a label, a frame, a question or a sentence."""

    label: str  # class of the item, by which breaking points are broken down
    start: float | None = None  # seconds; None for the whole video
    end: float | None = None
    frame: str = ""  # `<video>/<name>` of an item that is a single frame
    text: str = ""  # question or sentence, where the item is one


@dataclass(frozen=True)
class StoredTruth(Generic[Annotations]):
    """Annotations of all videos, with the spans of their actions."""

    annotations: Annotations
    spans: Mapping[str, Segments] | None  # actions of each video, for placements; None in older runs


class Task(OutputStorage[Output], ABC, Generic[Annotations, Output]):
    """One benchmark with its annotations: everything in a run that depends on the task.

    A task is made from a data set, for a run, or from the truth.json of a run folder.

    Attributes:
        words: what readers call things.
        reads: type of its annotations in a data set.
        models: registry that names its models, as `jostle names` lists it; None if they are not registered.
        takes: fields of a recipe that it needs or allows, besides those of every benchmark.
        refuses: why an option of a run does not suit its models, by the name of the option.
        stored: dataclass of what truth.json has, with `annotations()`, and `actions` where spans of actions are kept.
        indent: of truth.json.
        clean_is_enough: whether a benchmark may consist of the clean cell alone.
    """

    words: ClassVar[Words]
    reads: ClassVar[type]
    models: ClassVar[str | None] = "models"
    takes: ClassVar[Mapping[str, Need]] = {}
    refuses: ClassVar[Mapping[str, str]] = {}
    stored: ClassVar[type]
    indent: ClassVar[int | None] = None
    clean_is_enough: ClassVar[bool] = False

    def __init__(
        self,
        benchmark: Recipe | Content,
        load: Callable[[], StoredTruth[Annotations]],
        missing: Collection[str] = (),
        data: Dataset | None = None,
    ) -> None:
        """Hold the task of a benchmark.

        Args:
            load: reads the annotations, when they are first needed.
            missing: ids that are annotated and have no file.
            data: with the videos, where the task is to be run.
        """
        self.benchmark, self.missing, self._load, self._data = benchmark, missing, load, data

    @property
    def recipe(self) -> Recipe:
        """Recipe of the benchmark, of a task that is to be run."""
        assert isinstance(self.benchmark, Recipe), "this task was read from a run folder"
        return self.benchmark

    @property
    def data(self) -> Dataset:
        """Data set with the videos, of a task that is to be run."""
        assert self._data is not None, "this task was read from a run folder"
        return self._data

    # The annotations.

    @classmethod
    def of_data(cls: type[Kind], recipe: Recipe, data: Dataset) -> Kind:
        """Return the task of a benchmark on a data set."""
        return cls(recipe, partial(_read_data, cls, data), data.missing, data)

    @classmethod
    def of_file(
        cls: type[Kind], content: Content, path: Path, classes: Sequence[str], missing: Collection[str]
    ) -> Kind:
        """Return the task of a run from the truth.json in its folder.

        Args:
            classes: all classes of the run, where predictions files name them.
        """
        return cls(content, partial(_read_file, cls, path, tuple(classes)), missing)

    @classmethod
    def annotations_in(cls, data: Dataset) -> Annotations:
        """Return the annotations of a data set that the task is scored by; raises BadValue if there are none."""
        return data.annotated(cls.reads)

    @classmethod
    def actions_in(cls, data: Dataset, annotations: Annotations) -> Mapping[str, Segments]:
        """Return the actions of each video, for placements; by default those annotated besides."""
        return known_actions(data)

    @classmethod
    def read_truth(cls, path: Path, classes: Sequence[str]) -> StoredTruth[Annotations]:
        """Read what `write_truth` wrote; whatever is wrong with it raises JostleError or Mismatch."""
        stored: Any = parse(cls.stored, read_json(path))
        return StoredTruth(stored.annotations(), segments_from_pairs(getattr(stored, "actions", None)))

    def write_truth(self, path: Path) -> None:
        """Write the annotations as JSON."""
        actions = action_pairs(self.truth.spans, self.videos)
        content = {"format": 1, **self.plain_truth(), "actions": actions}
        write_text(path, [json.dumps(content, indent=self.indent), "\n"])

    def plain_truth(self) -> Mapping[str, Any]:
        """Return the annotations as plain values, in the fields of `stored`."""
        raise NotImplementedError

    @cached_property
    def truth(self) -> StoredTruth[Annotations]:
        """Annotations of all videos, with the spans of their actions."""
        return self._load()

    @property
    def annotations(self) -> Annotations:
        """Annotations that the task is scored by."""
        return self.truth.annotations

    @property
    def fingerprint(self) -> str:
        """`sha256:` and a hash of the annotations."""
        return hash_json(self.plain_truth())

    @property
    def videos(self) -> Sequence[str]:
        """Ids of the annotated videos, in the order of the annotations."""
        videos: Sequence[str] = self.annotations.videos  # type: ignore[attr-defined]
        return videos

    def uses_video(self, name: str) -> bool:
        """Whether the task uses a video."""
        return True

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

    # The model.

    @classmethod
    @abstractmethod
    def build_model(
        cls, recipe: Recipe, data: Dataset, config: InferenceConfig, device: str, *, here: bool
    ) -> BenchmarkModel:
        """Resolve what was requested of a model into a loadable one with its name and fingerprints.

        Args:
            here: whether this machine has the device, so that the model can be loaded and checked before the run.

        Raises:
            BadValue: if the model does not suit the benchmark, or its classes are not those of the data set.
            CheckpointError: if the weights do not fit.
        """

    @classmethod
    def check_model(cls, benchmark: str, model: object) -> None:
        """Raise BadValue or UnknownName unless a named model suits the task; other models are checked later."""
        check_model(benchmark, cls.name, cls.models, model)

    @classmethod
    def check_options(cls, recipe: Recipe, config: InferenceConfig) -> None:
        """Raise BadValue if an option does not suit the task of a benchmark."""
        if config.input:
            cls.check_input(config)
        for name, why in cls.refuses.items():
            if getattr(config, name) is not None:
                raise BadValue(f"{recipe.name} {why}; leave --{name} out")

    @classmethod
    def check_input(cls, config: InferenceConfig) -> None:
        """Raise unless the changes to the model's input are settings of its kind of model."""
        config.changes()

    def tries_model(self, *, begun: bool) -> bool:
        """Whether a model is tried on one video before a run; `begun` says whether the run goes on."""
        return True

    def make_job(
        self, name: str, path: Path, cells: tuple[Cell, ...], seed: int, portion: int | None = None
    ) -> VideoJob:
        """Return the job for a video, or for a portion of it."""
        spans = self.truth.spans or {}
        return VideoJob(name, path, cells, seed, spans.get(name), fps=self.data.rate_of(name))

    # What predictions are worth.

    @cached_property
    def metric(self) -> Metric:
        """Metric of the benchmark."""
        return find_metric(self.benchmark.metric)

    def truth_of(self, names: Sequence[str]) -> Any:
        """Return the annotations of some videos, as the metric takes them."""
        return self.annotations.of_videos(names)  # type: ignore[attr-defined]

    def measured(self, predictions: Any, names: Sequence[str]) -> Measured:
        """Measure the predictions of a cell on these videos."""
        return measure(self.metric, self.truth_of(names), self.restrict(predictions, names), self.benchmark)

    def measure(self, path: Path, names: Sequence[str]) -> MetricValue:
        """Compute the metric of the predictions in a file on these videos, and what scores.json has beside it."""
        predictions = self.read_predictions(path)
        measured = self.measured(predictions, names)
        value = check_value(self.metric, measured.value)
        return MetricValue(value, measured.more | self.further_values(path, predictions, names))

    def further_values(self, path: Path, predictions: Any, names: Sequence[str]) -> dict[str, Any]:
        """Return values for scores.json that need more than the predictions of a cell, as what it changes."""
        return {}

    def video_score(self, name: str, output: Output) -> float | None:
        """Return the score of one video whose mean over videos is the value of a cell; None if there is none."""
        if self.metric.mean_over != "videos" or not len(self.truth_of([name])):
            return None
        return self.measured(self.to_predictions({name: output}), [name]).value

    def diagnose(self, path: Path, names: Sequence[str]) -> dict[str, Any] | None:
        """Diagnose the errors of the predictions in a file on these videos; None if not applicable."""
        return None

    def items(self, name: str) -> Sequence[Item]:
        """Return the parts of a video that `judge` judges; none for a task without."""
        return ()

    def operating_threshold(self, outputs: Mapping[str, Output]) -> float:
        """Return the score from which predictions count, given those for clean videos; 0 where every one does."""
        return 0.0

    def judge(self, name: str, output: Output, threshold: float) -> tuple[Floats, Flags]:
        """Return a score for each item of a video, higher where it is safer, and whether the model gets it right."""
        raise NotImplementedError

    # What a reader sees of a video.

    def view(
        self, name: str, clean: Any, corrupted: Any, *, tiou: float | None = None, brief: bool = False
    ) -> VideoView | None:
        """Return a video with predictions of two cells, to be drawn; None where nothing can be drawn.

        Args:
            tiou: overlap from which something in time is right; by default the benchmark's.
            brief: for a report, which has room for the most confident predictions only.
        """
        return None


def _read_data(kind: type[Task[Any, Any]], data: Dataset) -> StoredTruth[Any]:
    annotations = kind.annotations_in(data)
    return StoredTruth(annotations, kind.actions_in(data, annotations))


def _read_file(kind: type[Task[Any, Any]], path: Path, classes: Sequence[str]) -> StoredTruth[Any]:
    if not path.exists():
        raise DataError(f"{path}: not there; run again into this folder, which writes it")
    with _refusing_truth(path):
        return kind.read_truth(path, classes)


@contextmanager
def _refusing_truth(path: Path) -> Iterator[None]:
    """Raise DataError F110 for whatever is wrong with a truth.json."""
    try:
        yield
    except (BadValue, Mismatch) as error:
        raise DataError(f"{path}: {error}; {_TRUTH_ANEW}", fault="F110") from None
    except JostleError as error:
        raise DataError(f"{error}; {_TRUTH_ANEW}", fault="F110") from None


tasks: Registry[type[Task[Any, Any]]] = Registry("task", "jostle.evaluation.tasks")


def task(name: str) -> Callable[[type[Kind]], type[Kind]]:
    """Register a `Task` class under its name in recipes."""

    def register(kind: type[Kind]) -> type[Kind]:
        kind.name = name
        tasks.add(name, kind)
        return kind

    return register


def hash_json(content: Any) -> str:
    """Return `sha256:` and the hash of plain values as JSON, whatever the order of keys."""
    return f"sha256:{hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()}"


def make_task(recipe: Recipe, data: Dataset) -> Task[Any, Any]:
    """Return the task of a benchmark on a data set.

    Raises:
        BadValue: if the data set has other annotations.
    """
    instance = tasks[recipe.task].of_data(recipe, data)
    instance.videos  # noqa: B018
    return instance
