"""Checks of a recipe, and of what a run recorded of one, against what its task takes."""

from __future__ import annotations

from jostle.core.schema import Mismatch
from jostle.errors import BadValue
from jostle.evaluation.recipes.recipe import Recipe
from jostle.evaluation.run_folder.metadata import Content
from jostle.evaluation.tasks.task import tasks
from jostle.metrics.metric import metrics, statistics

FIELDS = ("protocol", "tious", "k", "labels_of", "sampling")  # of a recipe, that not every task takes


def check_fields(recipe: Recipe) -> None:
    """Raise BadValue unless a recipe has the fields that its task takes, and no others."""
    for name in FIELDS:
        if fault := _fault_of(recipe, name):
            raise BadValue(f"{recipe.name}: {name} {fault}")


def check_content(content: Content) -> None:
    """Raise Mismatch unless the content of a benchmark has the fields that its task takes, and no others."""
    if content.task not in tasks:
        raise Mismatch(f"is {content.task!r}, not one of {', '.join(tasks)}").under("task")
    for name in FIELDS:
        if fault := _fault_of(content, name):
            raise Mismatch(fault).under(name)


def _fault_of(given: Recipe | Content, name: str) -> str:
    """Return what is wrong with a field; empty if nothing is."""
    value, need = getattr(given, name), tasks[given.task].takes.get(name)
    if need == "required" and value is None:
        return f"is missing; a benchmark of {given.task} needs it"
    if need is None and value not in (None, ()):
        takers = ", ".join(one for one in tasks if name in tasks[one].takes)
        return f"is for {takers}; the task is {given.task}"
    return ""


def check_recipe(recipe: Recipe) -> None:
    """Raise BadValue unless every name in a recipe exists, and its metric and its cells suit its task."""
    check_fields(recipe)
    own = recipe.metric in metrics
    known = metrics[recipe.metric] if own or recipe.metric not in statistics else statistics[recipe.metric]
    if known.task != recipe.task:
        raise BadValue(f"{recipe.name}: {recipe.metric} is a metric for {known.task}, and the task is {recipe.task}")
    if not own:
        names = " or ".join(name for name in metrics if metrics[name].task == recipe.task)
        raise BadValue(
            f"{recipe.name}: cells of {recipe.task} are scored by {names}, and {recipe.metric} would be replaced by "
            "it, as it is a statistic; name one of these or a Metric class of yours, and compute the other from the "
            "predictions"
        )
    if len(recipe.cells) == 1 and not tasks[recipe.task].clean_is_enough:
        raise BadValue(f"{recipe.name}: it has only the clean cell; give a group of cells")
