"""Which data a recipe is done to: its own, or any other of its task."""

from __future__ import annotations

from pathlib import Path

from jostle.core.config import is_toml, read_settings
from jostle.datasets.dataset import Dataset, datasets
from jostle.errors import BadValue, JostleError
from jostle.evaluation.recipes.recipe import Recipe, benchmarks


def recipe_on(recipe: Recipe, dataset: str | None, subset: str | None, data: Path | None) -> Recipe:
    """The recipe, put on the data set that is asked for.

    Args:
        dataset: its name; None for the recipe's own.
        subset: which part; None for the recipe's, or where the data set is another, the one results are given for.
        data: the folder of the data set.

    Raises:
        BadValue: if the data set is for another task, or a folder is given for one that is made.
    """
    name = recipe.dataset if dataset is None else dataset
    kind = datasets[name]
    if not kind.on_disk and data is not None:
        raise BadValue(
            f"{recipe.name} is done to {name}, which jostle makes and does not read from {data}; leave --data out, or "
            f"put the recipe on your own videos: --dataset folder --data {data}"
        )
    if kind.task not in ("", recipe.task):
        raise BadValue(f"{name} is a data set for {kind.task}, and {recipe.name} a recipe for {recipe.task}")
    part = subset if subset is not None else recipe.subset or kind.usual if name == recipe.dataset else kind.usual
    kind.check_subset(part)
    if (name, part) == (recipe.dataset, recipe.subset or kind.usual):
        return recipe
    # A folder has no name of its own, so the one on the disk stands for it.
    called = f"{name} {data.resolve().name}" if name == "folder" and data is not None else name
    return recipe.on(name, part, called if part == kind.usual else f"{called} {part}")


def check_task(recipe: Recipe, data: Dataset) -> None:
    """Raise unless what is annotated in a folder is what the recipe is about."""
    if data.task != recipe.task:
        raise BadValue(
            f"{data.folder}: annotated for {data.task}, and {recipe.base or recipe.name} is a recipe for {recipe.task}"
        )


def load_benchmark(source: str | Path) -> Recipe:
    """The benchmark of a name, or the one that a TOML file holds."""
    return read_benchmark(source) if is_toml(source) else benchmarks[str(source)]


def read_benchmark(path: str | Path) -> Recipe:
    """The recipe in a TOML file, with every name in it looked up.

    Raises:
        BadValue: if the file is not TOML, holds a key, a value or a name that is not known, or takes the name of a
            benchmark that is something else.
    """
    try:
        recipe = read_settings(Recipe, path)
        recipe.check()
        data = datasets[recipe.dataset]
        data.check_subset(recipe.subset or data.usual)
        if data.task not in ("", recipe.task):
            raise BadValue(f"{recipe.dataset} is a data set for {data.task}, and the task is {recipe.task}")
    except JostleError as error:
        said = str(error)
        raise BadValue(said if said.startswith(f"{path}:") else f"{path}: {said}", fault=error.fault) from None
    if recipe.name in benchmarks and benchmarks[recipe.name].fingerprint != recipe.fingerprint:
        raise BadValue(f"{path}: {recipe.name} is the name of another benchmark, and its numbers would be mistaken "
                       "for that one's; choose another")  # fmt: skip
    return recipe
