"""Bundled weights and their paths (created by `studies/`), and an index of names."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import cache
from pathlib import Path

from jostle.errors import UnknownName

FOLDER = Path(__file__).parent
TREATMENTS = ("clean", "robust")  # how a shipped model was trained


@cache
def index_of_names() -> dict[str, Collection[str]]:
    """Return the names of jostle's networks and benchmarks by registry."""
    names: dict[str, Collection[str]] = json.loads((FOLDER / "names.json").read_text(encoding="utf-8"))
    return names


def shipped_names() -> list[str]:
    """Return the names of bundled weights: `puppet_net`, `actionformer_puppets-clean` ..."""
    return sorted(path.stem for path in FOLDER.glob("*.safetensors"))


def weights_file(name: str) -> Path:
    """Return the file of bundled weights called `name`."""
    if name not in shipped_names():
        raise UnknownName("shipped weights", name, shipped_names())
    return FOLDER / f"{name}.safetensors"


def default_weights(model: str) -> str | None:
    """Return `clean` for a model with bundled weights, None for any other."""
    return TREATMENTS[0] if f"{model}-{TREATMENTS[0]}" in shipped_names() else None


def trained_weights(model: str, weights: str | Path) -> Path:
    """Resolve `weights` for a model: `clean` or `robust` for bundled ones, or a path."""
    if str(weights) not in TREATMENTS:
        return Path(weights)
    name = f"{model}-{weights}"
    if name not in shipped_names():
        known = [other.removesuffix(f"-{weights}") for other in shipped_names() if other.endswith(f"-{weights}")]
        raise UnknownName("model with weights that come with jostle", model, known)
    return weights_file(name)
