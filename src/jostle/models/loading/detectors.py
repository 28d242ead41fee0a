"""Loading of detectors by name or import path, and the names of their classes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.plugins import import_object, is_import_path
from jostle.core.types.truth import Truth
from jostle.errors import BadValue
from jostle.models.loading.identity import Identity, identify_weights
from jostle.models.loading.names import need_torch
from jostle.models.weights.resolve import weights_path

if TYPE_CHECKING:
    from jostle.models.detection.detector import Detector


def load_detector(name: str, *, weights: str | Path | None = None, device: str = "cpu", **config: Any) -> Detector[Any]:
    """Load a detector by name, ready for inference.

    Weights that `jostle train` wrote bring their settings and class names along.

    Args:
        name: a variant such as `actionformer_thumos_i3d`, or `actionformer`, `tridet`, `temporalmaxer`; or
            `package.module:attribute`, something of your own with a method `detect`.
        weights: our `.safetensors`, an original's `.pth.tar` or OpenTAD's `.pth`; read without trusting a pickle. For
            the `_puppets` variants also `clean` or `robust`, the weights that come with jostle; `public` or
            `hf:ORG/NAME[/file]` to have them fetched; `random` for weights that mean nothing but are the same every
            time.
        device: `cpu` or `cuda`.
        config: settings to change, such as `input_dim`, `dim`, `classes`, `max_length`.

    Raises:
        CheckpointError: if the weights do not fit; the message lists the differences.
    """
    if is_import_path(name):
        own_detector: Detector[Any] = _own(name, weights, config)
        return own_detector
    need_torch("detectors")
    from jostle.models.checkpoints import read_metadata, read_note
    from jostle.models.detection.detector import make_detector

    if str(weights) == "random":
        return _random(name, config).to(device)
    if weights is not None:
        weights = weights_path("detectors", name, weights)
        if read_metadata(weights).get("detector") == name:
            own: dict[str, Any] = read_note(weights, "settings", {})
            names: list[str] = read_note(weights, "classes", [])
            config = own | ({"class_names": names} if names else {}) | config
    return make_detector(name, weights=weights, **config).to(device)


def identify_detector(name: str, weights: str | Path | None) -> Identity:
    """Return the fingerprint of a detector's weights."""
    return identify_weights(None if weights is None else weights_path("detectors", name, weights))


def _random(name: str, config: dict[str, Any]) -> Detector[Any]:
    import torch

    from jostle.models.detection.detector import make_detector

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make_detector(name, **config)


def _own(place: str, weights: str | Path | None, config: dict[str, Any]) -> Any:
    if weights is not None or config:
        raise BadValue(f"{place}: weights and settings go with the name of a detector; yours has them already")
    model = import_object(place, "--detector")
    if not hasattr(model, "detect"):
        raise BadValue(f"--detector {place}: a {type(model).__name__} has no method detect(features, fps=..., ...)")
    if "torch" in sys.modules:  # otherwise it is no network
        from jostle.models.finite import check_weights

        check_weights(model, place)
    return model


def looks_at_frames(detector: object) -> bool:
    """Whether a detector processes the frames of a video itself; others take features."""
    return getattr(detector, "looks_at", "features") == "frames"


def name_classes(detector: Detector[Any], truth: Truth) -> None:
    """Set the class names of a detector with numbered classes from the ground truth."""
    import dataclasses

    config = getattr(detector, "config", None)
    if config is None:
        return
    if config.class_names:
        _check_class_names(config.class_names, truth)
        return
    if truth.label_ids is None:
        return
    by_number = dict(zip(truth.label_ids, truth.classes, strict=True))
    most = max([*by_number, detector.config.classes - 1]) + 1
    names = tuple(by_number.get(i, f"class {i}") for i in range(most))
    detector.config = dataclasses.replace(detector.config, class_names=names)


def _check_class_names(names: Sequence[str], truth: Truth) -> None:
    """Raise if the truth lacks most classes of a detector, whose predictions could then not be scored."""
    unknown = [name for name in names if name not in truth.classes]
    if len(unknown) > len(names) / 2:
        raise BadValue(
            f"the detector finds {len(names)} classes, and the ground truth lacks {len(unknown)} of them, as "
            f"{unknown[0]!r}: most predictions could not be scored; give the annotations of all classes, or a detector "
            f"of {', '.join(truth.classes[:3])}{', ...' if len(truth.classes) > 3 else ''}",
            fault="F129",
        )
