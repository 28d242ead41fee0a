"""The task of a benchmark."""

from __future__ import annotations

from typing import Any

from jostle.benchmarks.recipe import Recipe
from jostle.datasets.dataset import Dataset
from jostle.evaluation.detection_task import DetectionTask
from jostle.evaluation.frames_task import FramesTask
from jostle.evaluation.recognition_task import RecognitionTask
from jostle.evaluation.task import Task

TASKS: dict[str, type[Task[Any]]] = {
    "detection": DetectionTask,
    "recognition": RecognitionTask,
    "frames": FramesTask,
}


def task_of(recipe: Recipe, data: Dataset) -> Task[Any]:
    """What a run of the benchmark on the data set is about.

    Raises:
        BadValue: if the data set is annotated with something else.
    """
    made = TASKS[recipe.task](recipe, data)
    made.videos  # noqa: B018  (raises)
    return made
