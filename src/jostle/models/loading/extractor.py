"""Loading of extractors: by name, from a user's module, as objects, or from a recogniser's last layer."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.plugins import import_object, is_import_path, missing_plugins_hint
from jostle.errors import BadValue, UnknownName
from jostle.models.loading.models import NamedRecogniser, load_recogniser
from jostle.models.loading.names import need_torch
from jostle.models.weights.packaged import is_packaged, weights_file
from jostle.models.weights.resolve import weights_path
from jostle.models.weights.sources import is_fetched

if TYPE_CHECKING:
    from jostle.models.extractors.protocol import FeatureExtractor


def load_extractor(
    name: str, *, weights: str | Path | None = None, device: str = "cpu", **changes: Any
) -> FeatureExtractor:
    """Load a feature extractor: (B, T, H, W, 3) uint8 frames in, (B, C) float32 features out.

    Args:
        name: one of `jostle names extractors`; or one of `jostle names models`, whose features are what its last layer
            makes scores of; or `package.module:attribute`, an extractor or recogniser of your own.
        weights: a checkpoint in the public layout, for a model what `jostle.load_recogniser` takes; of a network in two
            streams, a folder with the public file of each, or one file with the tensors of both; `public` or
            `hf:ORG/NAME[/file]` to have it fetched; None for those that come with jostle, and where none do, an error
            that says where to get them.
        device: `cpu` or `cuda`.
        changes: fields of its `InputSpec` to replace, such as `stride=8`.

    Raises:
        CheckpointError: if the weights do not fit.
        MissingExtra: if the library that the network comes from is not installed.
    """
    need_torch("extractors")
    from jostle.models.extractors.extractor import as_extractor
    from jostle.models.extractors.extractor import load_extractor as load

    if is_import_path(name):
        return ExtractorSpec(name, weights).get(device, **changes)
    if _is_model(name):
        return as_extractor(load_recogniser(name, weights=weights, device=device, **changes))
    path = _weights(name, weights)
    return load(name, weights=None if path is None else _tensors(name, Path(path)), device=device, **changes)


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


@dataclass(frozen=True)
class ExtractorSpec:
    """Picklable specification of an extractor, which loads it in any process."""

    # a name, `package.module:attribute`, or an object: an extractor, or a recogniser that names its head
    extractor: Any
    weights: str | Path | None = None  # weights of a named extractor

    def __post_init__(self) -> None:
        if self.weights is not None and not self._by_name:
            raise BadValue(f"weights are for named extractors, and {self.name} has its weights already; leave them out")

    @property
    def name(self) -> str:
        """Name recorded as the source of features."""
        if isinstance(self.extractor, str):
            return self.extractor
        own = getattr(getattr(self.extractor, "kind", self.extractor), "name", "")
        return own if isinstance(own, str) and own else type(self.extractor).__qualname__

    def get(self, device: str = "cpu", **changes: Any) -> FeatureExtractor:
        """Load the extractor on a device, with fields of its spec replaced."""
        if self._by_name:
            return load_extractor(self.extractor, weights=self.weights, device=device, **changes)
        from jostle.models.extractors.extractor import Extractor, as_extractor
        from jostle.models.recognition.recogniser import Recogniser, changed

        model = import_object(self.extractor, "--extractor") if isinstance(self.extractor, str) else self.extractor
        if isinstance(model, Recogniser):
            model = as_extractor(model)
        if isinstance(model, Extractor):
            kind = replace(model.kind, spec=changed(self.name, model.spec, changes)) if changes else model.kind
            return Extractor(kind, model.network.to(device))
        lacking = [part for part in ("spec", "dim", "frame_dim") if not hasattr(model, part)]
        if lacking or not callable(model):
            raise BadValue(
                f"{self.name}: a {type(model).__name__} is no extractor: give a Recogniser with its head, one that "
                f"as_extractor made, or something called on clips with spec, dim and frame_dim"
            )
        if changes:
            raise BadValue(f"{self.name}: brings its own spec; change {', '.join(changes)} there")
        extractor: FeatureExtractor = model
        return extractor

    def fingerprint(self) -> str | None:
        """Return the fingerprint of the weights, or None. Damaged files fail when they are loaded."""
        from jostle.io.video.source import file_fingerprint

        if not self._by_name:
            from jostle.models.checkpoints import tensors_fingerprint

            return tensors_fingerprint(self.get())
        if _is_model(self.extractor):
            return NamedRecogniser(self.extractor, self.weights).identity()[0]
        path = _weights(self.extractor, self.weights)
        if path is None:
            return None
        parts = list(_streams(self.extractor, Path(path)).values())
        if not all(part.is_file() for part in parts):
            return None
        fingerprints = [file_fingerprint(part) for part in parts]
        return (
            fingerprints[0]
            if len(fingerprints) == 1
            else f"sha256:{hashlib.sha256(' '.join(fingerprints).encode()).hexdigest()}"
        )

    @property
    def _by_name(self) -> bool:
        return isinstance(self.extractor, str) and not is_import_path(self.extractor)


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
