"""What has to be installed before a model can be had."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from jostle.core.plugins import hint, is_place
from jostle.core.plugins import names as foreign_names
from jostle.errors import BadValue, CheckpointError, MissingExtra, UnknownName
from jostle.models.weights.shipped import TREATMENTS, index_of_names, task_of_benchmark, trained_weights, usual_weights
from jostle.models.weights.shipped.sources import is_fetched


def need_torch(what: str) -> None:
    """Say what to install where networks cannot run."""
    if find_spec("torch") is None:
        raise MissingExtra(what, "torch")


KIND = {
    "benchmarks": "benchmark",
    "datasets": "data set",
    "detectors": "detector",
    "models": "model",
    "objectdetectors": "object detector",
}
SAID = {"detectors": "detector", "models": "recogniser", "objectdetectors": "object detector"}
FITTING = {"detection": "detectors", "objects": "objectdetectors"}  # models that are recognisers fit all other tasks


def check_known(shelf: str, name: str) -> None:
    """Raise unless a shelf has the name.

    Raises:
        UnknownName: with the names that come near.
    """
    known = names_of(shelf)
    if name not in known and "/" not in name:  # of a whole library, whose own names the shelf knows
        raise UnknownName(KIND[shelf], name, known, hint())


def check_extractor(name: str) -> None:
    """Raise unless there is an extractor of the name; every recogniser is one as well.

    Raises:
        UnknownName: with the names that come near.
    """
    known = [*names_of("extractors"), *names_of("models")]
    if name not in known and "/" not in name:
        raise UnknownName("extractor", name, known, hint())


def check_weights(model: str, weights: str | Path | None) -> None:
    """Raise unless the weights of a name are there.

    Raises:
        CheckpointError: if there is no such file.
        UnknownName: if no weights come with jostle for this model.
    """
    if weights is None or str(weights) == "random" or is_fetched(weights):
        return
    if not trained_weights(model, weights).exists():
        usual = "" if usual_weights(model) is None else f", or {' or '.join(TREATMENTS)}, which come with jostle"
        raise CheckpointError(f"{weights}: no such file; give the path of the weights of {model}{usual}")


def names_of(shelf: str) -> list[str]:
    """The names of a shelf."""
    return [*index_of_names()[shelf], *foreign_names(shelf)]


def shelf_of(model: str) -> str:
    """The shelf that a model stands on, by which its weights are looked for."""
    return next((shelf for shelf in SAID if model in names_of(shelf)), "models")


def check_names(benchmark: str, model: object) -> None:
    """Raise unless the names of a benchmark and a model are known and fit, as far as an index tells.

    Raises:
        BadValue: if the model is one for another task.
        UnknownName: if there is no such benchmark or model.
    """
    check_known("benchmarks", benchmark)
    task = task_of_benchmark(benchmark)
    if task is not None:  # a plugin's is known when it is loaded
        check_model(benchmark, task, model)


def check_model(benchmark: str, task: str, model: object) -> None:
    """Raise unless a name is one for the task of a benchmark; what is no name is looked at later.

    Raises:
        BadValue: if it is the name of a model for another task.
        UnknownName: if it is none at all.
    """
    if not isinstance(model, str) or is_place(model):
        return
    right = FITTING.get(task, "models")
    for other in SAID:
        if model not in names_of(right) and model in names_of(other):
            raise BadValue(f"{model} is a {SAID[other]}, and {benchmark} is a benchmark of {task}")
    check_known(right, model)
