"""Data sets of a recipe: its own, or any other of the same task."""

from __future__ import annotations

from pathlib import Path

from jostle.core.config import is_toml, read_settings
from jostle.datasets.dataset import Dataset, datasets
from jostle.errors import BadValue, JostleError
from jostle.evaluation.recipes.recipe import Recipe, benchmarks


def apply_recipe_to(recipe: Recipe, dataset: str | None, subset: str | None, data: Path | None) -> Recipe:
    """Return the recipe, applied to the requested data set.

    Args:
        dataset: its name; None for the recipe's own.
        subset: part of it; None for the recipe's, or for another data set its default.
        data: the folder of the data set.

    Raises:
        BadValue: if the data set is for another task, or a folder is given for one that jostle generates.
    """
    name = recipe.dataset if dataset is None else dataset
    kind = datasets[name]
    if not kind.on_disk and data is not None:
        raise BadValue(
            f"{recipe.name} uses {name}, which jostle generates and does not read from {data}; leave --data out, or "
            f"apply the recipe to your own videos: --dataset folder --data {data}"
        )
    if kind.task not in ("", recipe.task):
        raise BadValue(f"{name} is a data set for {kind.task}, and {recipe.name} is a recipe for {recipe.task}")
    part = subset if subset is not None else recipe.subset or kind.usual if name == recipe.dataset else kind.usual
    kind.check_subset(part)
    if (name, part) == (recipe.dataset, recipe.subset or kind.usual):
        return recipe
    # A data set in a folder is called by the name of the folder.
    called = f"{name} {data.resolve().name}" if name == "folder" and data is not None else name
    return recipe.on(name, part, called if part == kind.usual else f"{called} {part}")


def check_task(recipe: Recipe, data: Dataset) -> None:
    """Raise unless the annotations in a folder are for the task of the recipe."""
    if data.task != recipe.task:
        raise BadValue(
            f"{data.folder}: annotated for {data.task}, and {recipe.base or recipe.name} is a recipe for {recipe.task}"
        )


def load_benchmark(source: str | Path) -> Recipe:
    """Return the benchmark of a name, or read it from a TOML file."""
    return read_benchmark(source) if is_toml(source) else benchmarks[str(source)]


def read_benchmark(path: str | Path) -> Recipe:
    """Read a recipe from a TOML file, and check every name in it.

    Raises:
        BadValue: if the file is not TOML, contains an unknown key, value or name, or has the name of a different
            benchmark.
    """
    try:
        recipe = read_settings(Recipe, path)
        recipe.check()
        data = datasets[recipe.dataset]
        data.check_subset(recipe.subset or data.usual)
        if data.task not in ("", recipe.task):
            raise BadValue(f"{recipe.dataset} is a data set for {data.task}, and the task is {recipe.task}")
    except JostleError as error:
        message = str(error)
        raise BadValue(message if message.startswith(f"{path}:") else f"{path}: {message}", fault=error.fault) from None
    if recipe.name in benchmarks and benchmarks[recipe.name].fingerprint != recipe.fingerprint:
        raise BadValue(f"{path}: {recipe.name} is the name of another benchmark, with which its results would be "
                       "confused; choose another name")  # fmt: skip
    return recipe
