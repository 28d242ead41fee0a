"""A user's own benchmark: a recipe in a TOML file."""

from __future__ import annotations

from pathlib import Path

from jostle.benchmarks.recipe import Recipe, benchmarks
from jostle.datasets.dataset import datasets
from jostle.errors import BadValue, JostleError
from jostle.settings import is_toml, read_settings


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
