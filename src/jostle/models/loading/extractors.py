"""Loading of extractors: by name, or from a recogniser's last layer, and adapting one of the caller's own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from jostle.core.plugins import import_object, is_import_path, missing_plugins_hint
from jostle.errors import BadValue, UnknownName
from jostle.io.video.source import file_fingerprint
from jostle.models.loading.identity import Identity
from jostle.models.loading.names import need_torch
from jostle.models.loading.recognisers import identify_recogniser, load_recogniser
from jostle.models.weights.packaged import is_packaged, weights_file
from jostle.models.weights.resolve import weights_path
from jostle.models.weights.sources import is_fetched

if TYPE_CHECKING:
    from jostle.models.extractors.protocol import FeatureExtractor


def load_extractor(
    name: str, *, weights: str | Path | Mapping[str, Any] | None = None, device: str = "cpu", **changes: Any
) -> FeatureExtractor:
    """Load a feature extractor: (B, T, H, W, 3) uint8 frames in, (B, C) float32 features out.

    Args:
        name: one of `jostle names extractors`; or one of `jostle names models`, whose features are what its last layer
            makes scores of; or `package.module:attribute`, an extractor or recogniser of your own.
        weights: a checkpoint in the public layout, for a model what `jostle.load_recogniser` takes; of a network in two
            streams, a folder with the public file of each, or one file with the tensors of both; `public` or
            `hf:ORG/NAME[/file]` to have it fetched; `random` for weights that mean nothing but are the same every time;
            tensors by name; None for those that come with jostle, and where none do, an error that says where to get
            them.
        device: `cpu` or `cuda`.
        changes: fields of its `InputSpec` to replace, such as `stride=8`.

    Raises:
        CheckpointError: if the weights do not fit.
        MissingExtra: if the library that the network comes from is not installed.
    """
    need_torch("extractors")
    from jostle.models.extractors.extractor import as_extractor, build_extractor

    if is_import_path(name):
        if weights is not None:
            refuse_weights(name)
        return adapt_extractor(import_object(name, "--extractor"), name, device, changes)
    if _is_model(name):
        return as_extractor(load_recogniser(name, weights=weights, device=device, **changes))
    if not isinstance(weights, Mapping):
        path = _weights(name, weights)
        weights = str(path) if str(path) == "random" else None if path is None else _tensors(name, Path(path))
    return build_extractor(name, weights, device, **changes)


def recorded_extractor(detector: str, weights: str | Path | None, subject: object) -> str:
    """Return the extractor that the weights of a detector record as that of their features.

    Args:
        subject: what needs one, for the message.

    Raises:
        BadValue: if they record none.
    """
    from jostle.models.checkpoints import read_metadata

    path = None if weights is None else weights_path("detectors", detector, weights)
    name = None if path is None else read_metadata(path).get("extractor")
    if not name:
        raise BadValue(
            f"{subject}: features need an extractor, and the weights of {detector} record none; name it with "
            "--extractor NAME; `jostle names extractors` lists them"
        )
    return name


def refuse_weights(name: str) -> NoReturn:
    """Raise because weights are given for an extractor of the caller's own."""
    raise BadValue(f"weights are for named extractors, and {name} has its weights already; leave them out")


def adapt_extractor(thing: Any, name: str, device: str, changes: Mapping[str, Any]) -> FeatureExtractor:
    """Return the caller's own extractor on a device, with fields of its spec replaced; a recogniser becomes one.

    Raises:
        BadValue: if it is no extractor, or brings a spec that cannot be changed.
    """
    from jostle.models.extractors.extractor import Extractor, as_extractor
    from jostle.models.recognition.recogniser import Recogniser, changed

    model = as_extractor(thing) if isinstance(thing, Recogniser) else thing
    if isinstance(model, Extractor):
        kind = replace(model.kind, spec=changed(name, model.spec, changes)) if changes else model.kind
        return Extractor(kind, model.network.to(device))
    lacking = [part for part in ("spec", "dim", "frame_dim") if not hasattr(model, part)]
    if lacking or not callable(model):
        raise BadValue(
            f"{name}: a {type(model).__name__} is no extractor: give a Recogniser with its head, one that "
            f"as_extractor made, or something called on clips with spec, dim and frame_dim"
        )
    if changes:
        raise BadValue(f"{name}: brings its own spec; change {', '.join(changes)} there")
    extractor: FeatureExtractor = model
    return extractor


def identify_extractor(name: str, weights: str | Path | None) -> Identity:
    """Return the fingerprint of an extractor's weights. Damaged files fail when they are loaded."""
    if _is_model(name):
        return identify_recogniser(name, weights)
    path = _weights(name, weights)
    if path is None or str(path) == "random":
        return (None if path is None else "random"), "nothing"
    parts = list(_streams(name, Path(path)).values())
    if not all(part.is_file() for part in parts):
        return None, "nothing"
    fingerprints = [file_fingerprint(part) for part in parts]
    if len(fingerprints) == 1:
        return fingerprints[0], "file"
    return f"sha256:{hashlib.sha256(' '.join(fingerprints).encode()).hexdigest()}", "folder"


def _is_model(name: str) -> bool:
    """Whether a name is that of a recogniser, and not of an extractor."""
    from jostle.models.extractors.extractor import extractors
    from jostle.models.recognition.recogniser import recognisers

    if "/" in name:
        return True  # of a library of recognisers, whose own names it knows
    if name not in extractors and name not in recognisers:
        raise UnknownName("extractor", name, [*extractors, *recognisers], missing_plugins_hint())
    return name not in extractors


def _streams(extractor: str, weights: Path) -> dict[str, Path]:
    """Return the files of the weights, by the prefix of their tensors' names."""
    from jostle.models.extractors.extractor import extractors

    parts = extractors[extractor].streams
    if not parts or not weights.is_dir():
        return {"": weights}
    return {f"{part}.": weights / file for part, file in parts.items()}


def _tensors(extractor: str, weights: Path) -> dict[str, Any]:
    from jostle.models.checkpoints import read_weights

    tensors: dict[str, Any] = {}
    for prefix, path in _streams(extractor, weights).items():
        tensors |= {f"{prefix}{name}": tensor for name, tensor in read_weights(path).items()}
    return tensors


def _weights(extractor: str, weights: str | Path | None) -> str | Path | None:
    if weights is None:
        return weights_file(extractor) if is_packaged(extractor) else None
    return weights_path("extractors", extractor, weights) if is_fetched(weights) else weights
