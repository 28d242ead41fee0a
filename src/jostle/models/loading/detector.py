"""Loading of detectors by name, or from a user's module."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.plugins import import_object, is_import_path
from jostle.core.types.truth import Truth
from jostle.errors import BadValue
from jostle.models.loading.names import need_torch
from jostle.models.weights.resolve import weights_path

if TYPE_CHECKING:
    from jostle.models.detection.detector import Detector


def load_detector(name: str, *, weights: str | Path | None = None, **config: Any) -> Detector[Any]:
    """Load a detector by name, ready for inference.

    Weights that `jostle train` wrote bring their settings and class names along.

    Args:
        name: a variant such as `actionformer_thumos_i3d`, or `actionformer`, `tridet`, `temporalmaxer`; or
            `package.module:attribute`, something of your own with a method `detect`.
        weights: our `.safetensors`, an original's `.pth.tar` or OpenTAD's `.pth`; read without trusting a pickle. For
            the `_puppets` variants also `clean` or `robust`, the weights that come with jostle; `public` or
            `hf:ORG/NAME[/file]` to have them fetched.
        config: settings to change, such as `input_dim`, `dim`, `classes`, `max_length`.

    Raises:
        CheckpointError: if the weights do not fit; the message lists the differences.
    """
    if is_import_path(name):
        own_detector: Detector[Any] = _own(name, weights, config)
        return own_detector
    need_torch("detectors")
    from jostle.models.checkpoints import read_metadata, read_note
    from jostle.models.detection.detector import load_detector as load

    if weights is not None:
        weights = weights_path("detectors", name, weights)
        if read_metadata(weights).get("detector") == name:
            own: dict[str, Any] = read_note(weights, "settings", {})
            names: list[str] = read_note(weights, "classes", [])
            config = own | ({"class_names": names} if names else {}) | config
    return load(name, weights=weights, **config)


def _own(place: str, weights: str | Path | None, config: dict[str, Any]) -> Any:
    if weights is not None or config:
        raise BadValue(f"{place}: weights and settings go with the name of a detector; yours has them already")
    model = import_object(place, "--detector")
    if not hasattr(model, "detect"):
        raise BadValue(f"--detector {place}: a {type(model).__name__} has no method detect(features, fps=..., ...)")
    return model


def looks_at_frames(detector: object) -> bool:
    """Whether a detector processes the frames of a video itself; others take features."""
    return getattr(detector, "looks_at", "features") == "frames"


def name_classes(detector: Detector[Any], truth: Truth) -> None:
    """Set the class names of a detector with numbered classes from the ground truth."""
    import dataclasses

    config = getattr(detector, "config", None)
    if config is None or config.class_names or truth.label_ids is None:
        return
    by_number = dict(zip(truth.label_ids, truth.classes, strict=True))
    most = max([*by_number, detector.config.classes - 1]) + 1
    names = tuple(by_number.get(i, f"class {i}") for i in range(most))
    detector.config = dataclasses.replace(detector.config, class_names=names)
