"""Whether a name is that of a model, told without loading one: shelves of networks import torch, which takes seconds.

Names of jostle's own lie in `jostle/shipped/names.json`, which `make reference` writes from the shelves.
"""

from __future__ import annotations

from jostle.errors import BadValue, UnknownName
from jostle.plugins import hint, is_place
from jostle.plugins import names as foreign_names
from jostle.shipped import index_of_names

KIND = {"detectors": "detector", "models": "model", "extractors": "extractor"}
SAID = {"detectors": "detector", "models": "recogniser"}


def check_known(shelf: str, name: str) -> None:
    """Raise unless a shelf of networks has the name.

    Raises:
        UnknownName: with the names that come near.
    """
    known = names_of(shelf)
    if name not in known and "/" not in name:  # of a whole library, whose own names the shelf knows
        raise UnknownName(KIND[shelf], name, known, hint())


def names_of(shelf: str) -> list[str]:
    """The names of a shelf of networks."""
    return [*index_of_names()[shelf], *foreign_names(shelf)]


def check_model(benchmark: str, task: str, model: object) -> None:
    """Raise unless a name is one for the task of a benchmark; what is no name is looked at later.

    Raises:
        BadValue: if it is the name of a model for another task.
        UnknownName: if it is none at all.
    """
    if not isinstance(model, str) or is_place(model):
        return
    right, other = ("detectors", "models") if task == "detection" else ("models", "detectors")
    if model not in names_of(right) and model in names_of(other):
        raise BadValue(f"{model} is a {SAID[other]}, and {benchmark} is a benchmark of {task}")
    check_known(right, model)
