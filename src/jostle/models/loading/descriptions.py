"""What each network of a shelf wants to see, and where its weights are, in a few words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostle.models.loading.names import need_torch
from jostle.models.weights.resolve import public_place
from jostle.models.weights.shipped import TREATMENTS, shipped_names

if TYPE_CHECKING:
    from jostle.models.detection.config import DetectorConfig
    from jostle.models.input_spec import InputSpec

DESCRIBED = ("models", "extractors", "detectors", "objectdetectors")


@dataclass(frozen=True)
class Described:
    """One network.

    Attributes:
        name: on its shelf.
        sees: what it wants to see.
        weights: what to give as weights, and where they are.
    """

    name: str
    sees: str
    weights: str


def described(shelf: str) -> list[Described]:
    """Every network of a shelf: `models`, `extractors`, `detectors` or `objectdetectors`."""
    need_torch(f"what {shelf} want to see")
    if shelf == "detectors":
        from jostle.models.detection.detector import detectors

        return [
            Described(kind.name, _shown(kind.config()), _weights(shelf, kind.name, "a file of yours"))
            for kind in detectors.values()
        ]
    if shelf == "objectdetectors":
        from jostle.models.objects.object_detector import object_detectors

        return [
            Described(kind.name, "single frames, as they are", _weights(shelf, kind.name, kind.source))
            for kind in object_detectors.values()
        ]
    from jostle.models.extractors.extractor import extractors
    from jostle.models.recognition.recogniser import recognisers

    kinds = extractors.values() if shelf == "extractors" else recognisers.values()
    return [Described(kind.name, clips(kind.spec), _weights(shelf, kind.name, kind.source)) for kind in kinds]


def clips(spec: InputSpec | None) -> str:
    """What an `InputSpec` asks for.

    >>> from jostle.models.input_spec import InputSpec
    >>> clips(InputSpec(frames=16, stride=16, resize=(128, 171), size=112, fps=15, step=2))
    '16 frames, every 2nd at 15 a second, 112x112'
    """
    if spec is None:
        return "as its weights say"
    frames = "single frames" if spec.frames == 1 else f"{spec.frames} frames"
    every = f", every {spec.step}{ {2: 'nd', 3: 'rd'}.get(spec.step, 'th') }" if spec.step > 1 else ""
    rate = "" if spec.fps is None else f" at {spec.fps:g} a second"
    ten = ", ten crops" if spec.crops == "ten" else ""
    return f"{frames}{every}{rate}, {spec.size}x{spec.size}{ten}"


def _shown(config: DetectorConfig) -> str:
    """What a detector looks at: features, or frames."""
    from jostle.models.detection.frame_detector import FrameConfig

    many = "1 class" if config.classes == 1 else f"{config.classes} classes"
    if not isinstance(config, FrameConfig):
        return f"features of {config.input_dim}, {config.max_length} steps; {many}"
    rate = "over the whole video" if config.fps is None else f"at {config.fps:g} a second"
    return f"{config.max_length} frames {rate}, {config.crop}x{config.crop}; {many}"


def _weights(shelf: str, name: str, otherwise: str) -> str:
    ours = [how for how in TREATMENTS if f"{name}-{how}" in shipped_names()]
    if ours or name in shipped_names():
        return f"{' or '.join(ours)}{': ' if ours else ''}with jostle"
    place = public_place(shelf, name)
    return otherwise if place is None else place.said
