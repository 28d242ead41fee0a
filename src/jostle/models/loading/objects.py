"""Loading of object detectors by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.errors import BadValue
from jostle.models.loading.identity import Identity, identify_weights
from jostle.models.loading.names import need_torch
from jostle.models.weights.resolve import weights_path
from jostle.models.weights.sources import fetch_hint, source_of

if TYPE_CHECKING:
    from jostle.models.objects.object_detector import ObjectDetector


def load_object_detector(
    name: str, *, weights: str | Path | Mapping[str, Any] | None = None, device: str = "cpu"
) -> ObjectDetector:
    """Load an object detector by name: (N, H, W, 3) uint8 frames in, scored `Boxes` out.

    Args:
        name: one of `jostle names objectdetectors`.
        weights: a checkpoint, a folder of transformers, or tensors by name; for those that come with jostle `clean`;
            `random` for weights that mean nothing but are the same every time. None gives an error that says where to
            get them.
        device: `cpu` or `cuda`.

    Raises:
        BadValue: if no weights are given; the message says where they come from.
        CheckpointError: F54 if the weights do not fit.
        MissingExtra: if the library that the network comes from is not installed.
    """
    need_torch("object detectors")
    from jostle.models.checkpoints import read_weights
    from jostle.models.objects.object_detector import object_detectors

    kind = object_detectors[name]
    if weights is None:
        more = fetch_hint(source_of("objectdetectors", name))
        raise BadValue(f"{name}: an untrained network finds nothing; give its weights: {kind.source}{more}")
    if isinstance(weights, Mapping) or str(weights) == "random":
        return kind.load(weights if isinstance(weights, Mapping) else "random").to(device)
    path = weights_path("objectdetectors", name, weights)
    return kind.load(str(path) if path.is_dir() else read_weights(path)).to(device)


def identify_object_detector(name: str, weights: str | Path | None) -> Identity:
    """Return the fingerprint of an object detector's weights."""
    return identify_weights(None if weights is None else weights_path("objectdetectors", name, weights))
