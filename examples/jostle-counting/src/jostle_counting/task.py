"""Counting task: one number for a video."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from jostle.extend import (
    AnsweredItem,
    BadValue,
    BenchmarkModel,
    Dataset,
    GivenAnswer,
    InferenceConfig,
    Item,
    ItemTableView,
    Recipe,
    Task,
    Words,
    task,
    whole_video_model,
)

MOST = 9  # events of a video


@dataclass(frozen=True)
class Counts:
    """Numbers of events, by video; also what truth.json holds of them."""

    task: ClassVar[str] = "counting"
    holds: ClassVar[str] = "numbers of events"
    unit: ClassVar[str] = "events"

    events: Mapping[str, int]

    @property
    def videos(self) -> Sequence[str]:
        """Ids of the videos."""
        return tuple(self.events)

    def of_videos(self, names: Collection[str]) -> Counts:
        """Return the numbers of the named videos."""
        return Counts({name: number for name, number in self.events.items() if name in names})

    def __len__(self) -> int:
        return sum(self.events.values())


@dataclass(frozen=True)
class StoredCounts:
    """Content of truth.json."""

    events: dict[str, int]

    def annotations(self) -> Counts:
        """Return the numbers that were stored."""
        return Counts(self.events)


@task("counting")
class CountingTask(Task[Counts, int]):
    """Task with one number for each video."""

    words = Words(
        title="Event counting",
        tag="video-event-counting",
        has_pipeline=False,
        predictions="JSON with a number by the id of a video",
        loss_rule="another number than the true one",
    )
    reads = Counts
    stored = StoredCounts
    models = None

    def plain_truth(self) -> Mapping[str, Any]:
        return {"events": dict(self.annotations.events)}

    @classmethod
    def build_model(
        cls, recipe: Recipe, data: Dataset, config: InferenceConfig, device: str, *, here: bool
    ) -> BenchmarkModel:
        return whole_video_model(recipe, config, as_count)

    def from_plain(self, value: Any) -> int:
        return as_count(value)

    def items(self, name: str) -> tuple[Item, ...]:
        return (Item(f"{self.annotations.events[name]} events"),)

    def judge(self, name: str, output: int, threshold: float) -> tuple[np.ndarray, np.ndarray]:
        off = abs(output - self.annotations.events[name])
        return np.array([1.0 - off]), np.array([off == 0])

    def view(
        self, name: str, clean: Any, corrupted: Any, *, tiou: float | None = None, brief: bool = False
    ) -> ItemTableView:
        """Return the video as one question with a number for an answer."""
        options, true = tuple(map(str, range(MOST + 1))), self.annotations.events[name]
        answers = (
            GivenAnswer(given if given <= MOST else None, str(given), given == true, None, None)
            for given in (side[name] for side in (clean, corrupted))
        )
        return ItemTableView(
            name, (AnsweredItem("events", "How many events?", "", options, true, None, None, None, *answers),)
        )


def as_count(value: Any) -> int:
    """Return what a model gave as a number of events."""
    number = int(value)
    if number != value or number < 0:
        raise BadValue(f"{value!r} is no number of events; it must be a whole number of at least 0")
    return number
