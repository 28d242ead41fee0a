"""Checks of the names of models and of required packages, before anything is loaded."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from jostle.core.plugins import is_import_path, missing_plugins_hint
from jostle.core.plugins import plugin_names as foreign_names
from jostle.errors import BadValue, CheckpointError, MissingExtra, UnknownName
from jostle.models.weights.shipped import (
    TREATMENTS,
    default_weights,
    index_of_names,
    task_of_benchmark,
    trained_weights,
)
from jostle.models.weights.shipped.sources import is_fetched


def need_torch(what: str) -> None:
    """Raise with installation instructions if networks cannot run."""
    if find_spec("torch") is None:
        raise MissingExtra(what, "torch")


KIND = {
    "benchmarks": "benchmark",
    "datasets": "data set",
    "detectors": "detector",
    "models": "model",
    "objectdetectors": "object detector",
}
TITLES = {"detectors": "detector", "models": "recogniser", "objectdetectors": "object detector"}
FITTING = {"detection": "detectors", "objects": "objectdetectors"}  # models that are recognisers fit all other tasks


def check_known(registry: str, name: str) -> None:
    """Raise unless a registry has the name.

    Raises:
        UnknownName: with the names that come near.
    """
    known = names_of(registry)
    if name not in known and "/" not in name:  # names with a slash belong to a registered library
        raise UnknownName(KIND[registry], name, known, missing_plugins_hint())


def check_extractor(name: str) -> None:
    """Raise unless there is an extractor of the name; every recogniser is one as well.

    Raises:
        UnknownName: with the names that come near.
    """
    known = [*names_of("extractors"), *names_of("models")]
    if name not in known and "/" not in name:
        raise UnknownName("extractor", name, known, missing_plugins_hint())


def check_weights(model: str, weights: str | Path | None) -> None:
    """Raise unless the weights of a named model exist.

    Raises:
        CheckpointError: if there is no such file.
        UnknownName: if no weights come with jostle for this model.
    """
    if weights is None or str(weights) == "random" or is_fetched(weights):
        return
    if not trained_weights(model, weights).exists():
        hint = "" if default_weights(model) is None else f", or {' or '.join(TREATMENTS)}, which come with jostle"
        raise CheckpointError(f"{weights}: no such file; give the path of the weights of {model}{hint}")


def names_of(registry: str) -> list[str]:
    """Return the names in a registry."""
    return [*index_of_names()[registry], *foreign_names(registry)]


def registry_of(model: str) -> str:
    """Return the registry that contains a model, for the lookup of its weights."""
    return next((registry for registry in TITLES if model in names_of(registry)), "models")


def check_names(benchmark: str, model: object) -> None:
    """Raise unless the names of a benchmark and a model are known and compatible, by the index of names.

    Raises:
        BadValue: if the model is one for another task.
        UnknownName: if there is no such benchmark or model.
    """
    check_known("benchmarks", benchmark)
    task = task_of_benchmark(benchmark)
    if task is not None:  # a plugin's is known when it is loaded
        check_model(benchmark, task, model)


def check_model(benchmark: str, task: str, model: object) -> None:
    """Raise unless a named model suits the task of a benchmark; other models are checked later.

    Raises:
        BadValue: if it is the name of a model for another task.
        UnknownName: if it is none at all.
    """
    if not isinstance(model, str) or is_import_path(model):
        return
    right = FITTING.get(task, "models")
    for other in TITLES:
        if model not in names_of(right) and model in names_of(other):
            raise BadValue(f"{model} is a {TITLES[other]}, and {benchmark} is a benchmark of {task}")
    check_known(right, model)
