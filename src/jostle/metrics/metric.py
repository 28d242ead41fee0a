"""Metrics that cells of benchmarks are scored by, and statistics beside them; both are found by name."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, SupportsFloat, TypeVar

import numpy as np

from jostle.core.formatting import percent
from jostle.core.registry import Registry
from jostle.core.types.columns import Ints
from jostle.core.types.score_table import ScoreTable
from jostle.core.types.video_labels import VideoLabels
from jostle.errors import BadValue, JostleError
from jostle.metrics.measured import Measured
from jostle.metrics.proportion import clopper_pearson

Registered = TypeVar("Registered", bound=Callable[..., Any])
FUNCTION_TASKS = ("detection", "recognition", "questions", "moments")  # whose metrics can be functions of two arguments


class MetricOptions(Protocol):
    """What a metric reads of a recipe, or of the record of a run."""

    @property
    def name(self) -> str: ...
    @property
    def k(self) -> int | None: ...
    @property
    def labels_of(self) -> Literal["own", "anchor"] | None: ...
    @property
    def protocol(self) -> str | None: ...
    @property
    def tious(self) -> Sequence[float]: ...


@dataclass(frozen=True)
class Chance:
    """Expected score of random guessing."""

    score: float  # the share of right answers, all classes as likely; 0 where no answers are counted
    # how many independent ones are counted as right or wrong; None where a score is no share of such
    answers: int | None

    def explains(self, value: float | None, interval: tuple[float, float] | None) -> bool:
        """Whether a clean score is compatible with guessing: by an exact test for counts, else by its interval."""
        if value is None:
            return False
        exact = None if self.answers is None else clopper_pearson(round(value * self.answers), self.answers)
        return (exact or interval or (value,))[0] <= self.score

    @property
    def text(self) -> str:
        """The chance level in words, or the empty string where there is none."""
        return f"chance {percent(self.score, 1)}" if self.score else ""


class Metric(ABC):
    """Metric of a cell: what its value is called, what guesses would score, and how predictions are measured.

    Annotations and predictions are of the types of the task: `Truth` and `Predictions` for detection, `VideoLabels`
    and a `ScoreTable` of videos for recognition, `FrameSets` and a `ScoreTable` of frames for frames, `BoxSets` and
    `FrameBoxes` for objects, `QuestionSet` and `AnswerSet`, `MomentSet` and `MomentPredictions`.

    Attributes:
        name: in recipes; the decorator sets it.
        task: of the benchmarks that it is for.
        higher_is_better: whether a higher value is better.
        cites: key of the reference.
        function: that computes it for files; its docstring has the formula.
        mean_over: items that the value is a mean over: `videos`, of which each has one value, so that a run may stop
            after any of them, or items of videos, as `questions`; empty for a value of all videos together.
        has_intervals: whether what it measures can be drawn, for intervals.
        recorded: key of further values that reports need of every cell in scores.json, if any.
    """

    name: str = ""
    task: ClassVar[str]
    higher_is_better: bool = True
    cites: str = ""
    function: Callable[..., Any] | None = None
    mean_over: ClassVar[str] = ""
    has_intervals: ClassVar[bool] = False
    recorded: ClassVar[str] = ""

    @property
    def summary(self) -> str:
        """What it measures, in a sentence."""
        return first_paragraph(self.function or type(self))

    def label(self, options: MetricOptions) -> str:
        """Return the name of a cell's value, as in `mAP@0.5`; by default the name of the metric."""
        return self.name

    def classes(self, truth: Any) -> tuple[str, ...]:
        """Return the names that values are broken down by; by default the classes of the annotations, if any."""
        return tuple(getattr(truth, "classes", ()))

    def chance(self, truth: Any, predictions: Callable[[], Any], options: MetricOptions) -> Chance:
        """Return what guesses would score; by default nothing.

        Args:
            predictions: reads those for clean video.
        """
        return Chance(0.0, None)

    @abstractmethod
    def measure(self, truth: Any, predictions: Any, options: MetricOptions) -> Measured:
        """Measure the predictions of a cell against the annotations of its videos."""


class FunctionMetric(Metric):
    """Metric by a function of predictions and annotations; its value has no intervals.

    For recognition the function takes scores (N, C) and classes (N,), each video having one.
    """

    def __init__(self, function: Callable[..., Any], task: str, cites: str, *, higher_is_better: bool) -> None:
        self.function, self.task = function, task  # type: ignore[misc]
        self.cites, self.higher_is_better = cites, higher_is_better

    def measure(self, truth: Any, predictions: Any, options: MetricOptions) -> Measured:
        arguments = (predictions, truth)
        if isinstance(predictions, ScoreTable):
            arguments = (predictions.scores, self._only_class(truth, predictions.names))
        assert self.function is not None
        value = self.function(*arguments)
        if not isinstance(value, SupportsFloat):
            raise BadValue(f"metric {self.name} returned {value!r}; it must return one finite number")
        return Measured(float(value), getattr(truth, "videos", ()))

    def _only_class(self, labels: VideoLabels, videos: Sequence[str]) -> Ints:
        """Return the class of each video; raises BadValue if one has several or none."""
        index = {name: i for i, name in enumerate(labels.videos)}
        count = np.bincount(labels.video, minlength=len(labels.videos))
        rows = np.array([index[name] for name in videos], np.int64)
        several = np.flatnonzero(count[rows] != 1)
        if len(several):
            raise BadValue(f"{self.name} needs one class per video, and {videos[several[0]]} has several")
        label = np.zeros(len(index), np.int64)
        label[labels.video] = labels.label
        return label[rows]


class UnknownMetric(Metric):
    """Metric of a plugin that this process does not have; only the values that a run recorded are known."""

    task = ""

    def __init__(self, name: str) -> None:
        self.name = name

    def measure(self, truth: Any, predictions: Any, options: MetricOptions) -> Measured:
        return Measured(float("nan"))


@dataclass(frozen=True)
class Statistic:
    """Registered number that no single cell of a benchmark is scored by, as it needs several or other predictions."""

    name: str
    task: str  # kind of predictions that it is for
    function: Callable[..., Any]  # that computes it; its docstring has the formula
    higher_is_better: bool
    cites: str  # key of the reference

    @property
    def summary(self) -> str:
        """What it measures, in a sentence."""
        return first_paragraph(self.function)


metrics: Registry[Metric] = Registry("metric", "jostle.metrics")
statistics: Registry[Statistic] = Registry("statistic", "jostle.metrics")


def metric(
    name: str, *, task: str = "", cites: str = "", higher_is_better: bool = True
) -> Callable[[Registered], Registered]:
    """Register the decorated `Metric` class, or a function of predictions and annotations, as a metric.

    Args:
        task, cites, higher_is_better: of a function; a class has them as attributes. Functions are for `detection`,
            `recognition`, `questions` and `moments`; one for another task is a statistic.
    """

    def register(thing: Registered) -> Registered:
        entry: Metric
        if isinstance(thing, type):
            if not issubclass(thing, Metric) or task or cites or not higher_is_better:
                raise BadValue(f"metric {name}: a class must be a Metric, and have its task and the like as attributes")
            entry = thing()
        elif task in FUNCTION_TASKS:
            entry = FunctionMetric(thing, task, cites, higher_is_better=higher_is_better)
        else:
            return statistic(name, task=task, cites=cites, higher_is_better=higher_is_better)(thing)
        entry.name = name
        metrics.add(name, entry)
        return thing

    return register


def statistic(
    name: str, *, task: str, cites: str = "", higher_is_better: bool = True
) -> Callable[[Registered], Registered]:
    """Register the decorated function as a statistic and return it unchanged."""

    def register(function: Registered) -> Registered:
        statistics.add(name, Statistic(name, task, function, higher_is_better, cites))
        return function

    return register


def find_metric(name: str) -> Metric:
    """Return a metric; one that nothing is known of but its name if it is part of a plugin that is not here."""
    return metrics[name] if name in metrics else UnknownMetric(name)


def measure(metric: Metric, truth: Any, predictions: Any, options: MetricOptions) -> Measured:
    """Measure predictions by a metric, which may be one of a user's own: its errors are named.

    Raises:
        BadValue: if it fails, or returns something else.
    """
    try:
        measured = metric.measure(truth, predictions, options)
    except (JostleError, MemoryError):
        raise
    except Exception as error:
        raise BadValue(f"metric {metric.name} failed ({type(error).__name__}: {error})") from error
    if not isinstance(measured, Measured):
        raise BadValue(f"metric {metric.name} returned {measured!r}; a Metric must return a Measured")
    return measured


def check_value(metric: Metric, value: float) -> float:
    """Return the value of a cell; raises BadValue unless it is a finite number."""
    if not isinstance(value, SupportsFloat) or not math.isfinite(float(value)):
        raise BadValue(f"metric {metric.name} returned {value!r}; it must return one finite number")
    return float(value)


def first_paragraph(thing: Any) -> str:
    """Return the first paragraph of a docstring in one line."""
    return " ".join((thing.__doc__ or "").strip().split("\n\n")[0].split())
