"""Names of models: checks before anything is loaded, and descriptions of their input and source of weights."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.core.plugins import check_entry_points, is_import_path, missing_plugins_hint
from jostle.core.plugins import plugin_names as foreign_names
from jostle.errors import BadValue, CheckpointError, MissingExtra, UnknownName
from jostle.models.loading.name_index import own_names
from jostle.models.weights.packaged import (
    TREATMENTS,
    default_weights,
    is_missing,
    packaged_names,
    trained_weights,
)
from jostle.models.weights.sources import is_fetched

if TYPE_CHECKING:
    from jostle.models.detection.config import DetectorConfig
    from jostle.models.input_spec import InputSpec


def need_torch(what: str) -> None:
    """Raise with installation instructions if networks cannot run."""
    if find_spec("torch") is None:
        raise MissingExtra(what, "torch")
    check_entry_points()


KIND = {"detectors": "detector", "models": "model", "objectdetectors": "object detector"}
TITLES = {"detectors": "detector", "models": "recogniser", "objectdetectors": "object detector"}


def check_known(registry: str, name: str) -> None:
    """Raise unless a registry of networks has the name."""
    known = names_of(registry)
    if name not in known and "/" not in name:  # names with a slash belong to a registered library
        raise UnknownName(KIND[registry], name, known, missing_plugins_hint())


def check_extractor(name: str) -> None:
    """Raise unless there is an extractor of the name; every recogniser is one as well."""
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
    """Return the names in a registry of networks."""
    return [*own_names()[registry], *foreign_names(registry)]


def registry_of(model: str) -> str:
    """Return the registry that contains a model, for the lookup of its weights."""
    return next((registry for registry in TITLES if model in names_of(registry)), "models")


def check_model(benchmark: str, task: str, registry: str | None, model: object) -> None:
    """Raise unless a named model suits the task of a benchmark; other models are checked later.

    Args:
        registry: of the models for the task; None if they are not registered.

    Raises:
        BadValue: if it is the name of a model for another task.
        UnknownName: if it is none at all.
    """
    if not isinstance(model, str) or is_import_path(model) or registry is None:
        return
    for other in TITLES:
        if model not in names_of(registry) and model in names_of(other):
            raise BadValue(f"{model} is a {TITLES[other]}, and {benchmark} is a benchmark of {task}")
    check_known(registry, model)


DESCRIBED = ("models", "extractors", "detectors", "objectdetectors", "languagemodels")


@dataclass(frozen=True)
class ModelDescription:
    """Description of one registered network, or of video-language models with names of one form."""

    name: str  # name in its registry
    sees: str  # what it wants to see
    weights: str  # what to give as weights, and where they are


def describe_models(registry: str) -> list[ModelDescription]:
    """Describe every network of a registry: `models`, `extractors`, `detectors` or `objectdetectors`."""
    need_torch(f"descriptions of {registry}")
    if registry == "detectors":
        from jostle.models.detection.detector import detectors

        return [
            ModelDescription(
                kind.name, _describe_input(kind.config()), _weights(registry, kind.name, "a file of yours")
            )
            for kind in detectors.values()
        ]
    if registry == "objectdetectors":
        from jostle.models.objects.object_detector import object_detectors

        return [
            ModelDescription(kind.name, "single frames, as they are", _weights(registry, kind.name, kind.source))
            for kind in object_detectors.values()
        ]
    from jostle.models.extractors.extractor import extractors
    from jostle.models.recognition.recogniser import recognisers

    kinds = extractors.values() if registry == "extractors" else recognisers.values()
    return [
        ModelDescription(kind.name, describe_clips(kind.spec), _weights(registry, kind.name, kind.source))
        for kind in kinds
    ]


def describe_clips(spec: InputSpec | None) -> str:
    """Describe the clips of an `InputSpec`.

    >>> from jostle.models.input_spec import InputSpec
    >>> describe_clips(InputSpec(frames=16, stride=16, resize=(128, 171), size=112, fps=15, step=2))
    '16 frames, every 2nd at 15 a second, 112x112'
    """
    if spec is None:
        return "as its weights say"
    frames = "single frames" if spec.frames == 1 else f"{spec.frames} frames"
    every = f", every {spec.step}{ {2: 'nd', 3: 'rd'}.get(spec.step, 'th') }" if spec.step > 1 else ""
    rate = "" if spec.fps is None else f" at {spec.fps:g} a second"
    ten = ", ten crops" if spec.crops == "ten" else ""
    return f"{frames}{every}{rate}, {spec.size}x{spec.size}{ten}"


def _describe_input(config: DetectorConfig) -> str:
    """Describe the input of a detector: features, or frames."""
    from jostle.models.detection.frame_detector import FrameConfig

    many = "1 class" if config.classes == 1 else f"{config.classes} classes"
    if not isinstance(config, FrameConfig):
        return f"features of {config.input_dim}, {config.max_length} steps; {many}"
    rate = "over the whole video" if config.fps is None else f"at {config.fps:g} a second"
    return f"{config.max_length} frames {rate}, {config.crop}x{config.crop}; {many}"


def _weights(registry: str, name: str, otherwise: str) -> str:
    from jostle.models.weights.resolve import public_source  # takes a while, for what is checked before anything

    if is_missing(name):
        return "with jostle-puppets: pip install 'jostle[puppets]'"
    ours = [how for how in TREATMENTS if f"{name}-{how}" in packaged_names()]
    if ours or name in packaged_names():
        return f"{' or '.join(ours)}{': ' if ours else ''}with jostle"
    place = public_source(registry, name)
    return otherwise if place is None else place.description
