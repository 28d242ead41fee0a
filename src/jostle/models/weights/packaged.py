"""Weights that are installed with jostle: the inspector's, and those of the distribution `jostle-puppets`.

`studies/` trains them. `jostle-puppets` holds files and no code, as they are fifteen times the size of jostle itself.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from jostle.errors import MissingExtra, UnknownName

PUPPETS = "jostle_puppets"
TREATMENTS = ("clean", "robust")  # how a packaged model was trained
FOLDER = Path(__file__).parent
# Networks that are trained on the puppets, with the treatment where they have two.
_OF_PUPPETS = re.compile(r"(puppet_\w+|\w+_puppets)(-\w+)?")


@cache
def _files() -> dict[str, Path]:
    """Return the files of packaged weights by name."""
    puppets = find_spec(PUPPETS)
    folders = [FOLDER, *map(Path, (puppets and puppets.submodule_search_locations) or ())]
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.safetensors"))}


def packaged_names() -> list[str]:
    """Return the names of packaged weights: `puppet_net`, `actionformer_puppets-clean` ..."""
    return sorted(_files())


def is_packaged(name: str) -> bool:
    """Whether there are packaged weights of a name.

    Raises:
        MissingExtra: if they are in `jostle-puppets`, which is not installed.
    """
    if is_missing(name):
        raise MissingExtra(f"loading the weights {name} of jostle-puppets", "puppets")
    return name in _files()


def is_missing(name: str) -> bool:
    """Whether weights of a name, or of a network, are in `jostle-puppets`, which is not installed."""
    return _OF_PUPPETS.fullmatch(name) is not None and not any(map(_OF_PUPPETS.fullmatch, _files()))


def weights_file(name: str) -> Path:
    """Return the file of packaged weights called `name`.

    Raises:
        MissingExtra: if they are in `jostle-puppets`, which is not installed.
        UnknownName: if there are none of this name.
    """
    if not is_packaged(name):
        raise UnknownName("packaged weights", name, packaged_names())
    return _files()[name]


def default_weights(model: str) -> str | None:
    """Return `clean` for a model with packaged weights, None for any other."""
    return TREATMENTS[0] if is_packaged(f"{model}-{TREATMENTS[0]}") else None


def trained_weights(model: str, weights: str | Path) -> Path:
    """Resolve `weights` for a model: `clean` or `robust` for packaged ones, or a path."""
    if str(weights) not in TREATMENTS:
        return Path(weights)
    name = f"{model}-{weights}"
    if not is_packaged(name):
        known = [other.removesuffix(f"-{weights}") for other in packaged_names() if other.endswith(f"-{weights}")]
        raise UnknownName("model with weights that come with jostle", model, known)
    return weights_file(name)
