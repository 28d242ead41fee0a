"""Short descriptions of networks: their input, and the source of their weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostle.models.loading.names import need_torch
from jostle.models.weights.resolve import public_source
from jostle.models.weights.shipped import TREATMENTS, shipped_names

if TYPE_CHECKING:
    from jostle.models.detection.config import DetectorConfig
    from jostle.models.input_spec import InputSpec

DESCRIBED = ("models", "extractors", "detectors", "objectdetectors")


@dataclass(frozen=True)
class ModelDescription:
    """Description of one registered network.

    Attributes:
        name: name in its registry.
        sees: what it wants to see.
        weights: what to give as weights, and where they are.
    """

    name: str
    sees: str
    weights: str


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
    ours = [how for how in TREATMENTS if f"{name}-{how}" in shipped_names()]
    if ours or name in shipped_names():
        return f"{' or '.join(ours)}{': ' if ours else ''}with jostle"
    place = public_source(registry, name)
    return otherwise if place is None else place.description
