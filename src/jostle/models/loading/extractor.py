"""Extractors: by name, from a module of one's own, or as they are; of a recogniser, what its last layer sees."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.plugins import found_at, hint, is_place
from jostle.errors import BadValue, UnknownName
from jostle.models.loading.names import need_torch
from jostle.models.loading.recogniser import load_recogniser
from jostle.models.loading.user_model import NamedRecogniser
from jostle.models.weights.resolve import weights_path
from jostle.models.weights.shipped import shipped_names, weights_file
from jostle.models.weights.shipped.sources import is_fetched

if TYPE_CHECKING:
    from jostle.models.extractors.protocol import FeatureExtractor


def load_extractor(
    name: str, *, weights: str | Path | None = None, device: str = "cpu", **changes: Any
) -> FeatureExtractor:
    """A feature extractor: (B, T, H, W, 3) uint8 frames in, (B, C) float32 features out.

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
    from jostle.models.extractors.extractor import load_extractor as load
    from jostle.models.extractors.penultimate import as_extractor

    if is_place(name):
        return AskedExtractor(name, weights).get(device, **changes)
    if _is_model(name):
        return as_extractor(load_recogniser(name, weights=weights, device=device, **changes))
    found = _weights(name, weights)
    return load(name, weights=None if found is None else _tensors(name, Path(found)), device=device, **changes)


@dataclass(frozen=True)
class AskedExtractor:
    """An extractor as it was asked for; it travels to other processes, and gives the extractor there.

    Attributes:
        given: a name, `package.module:attribute`, or the thing itself: an extractor, or a recogniser that names its
            head.
        weights: of a name.
    """

    given: Any
    weights: str | Path | None = None

    def __post_init__(self) -> None:
        if self.weights is not None and not self._by_name:
            raise BadValue(f"weights go with the name of an extractor, and {self.name} has its weights already")

    @property
    def name(self) -> str:
        """What features are said to be made by."""
        if isinstance(self.given, str):
            return self.given
        own = getattr(getattr(self.given, "kind", self.given), "name", "")
        return own if isinstance(own, str) and own else type(self.given).__qualname__

    def get(self, device: str = "cpu", **changes: Any) -> FeatureExtractor:
        """The extractor on a device, with fields of its spec replaced."""
        if self._by_name:
            return load_extractor(self.given, weights=self.weights, device=device, **changes)
        from jostle.models.extractors.extractor import Extractor
        from jostle.models.extractors.penultimate import as_extractor
        from jostle.models.recognition.recogniser import Recogniser, changed

        found = found_at(self.given, "--extractor") if isinstance(self.given, str) else self.given
        if isinstance(found, Recogniser):
            found = as_extractor(found)
        if isinstance(found, Extractor):
            kind = replace(found.kind, spec=changed(self.name, found.spec, changes)) if changes else found.kind
            return Extractor(kind, found.network.to(device))
        lacking = [part for part in ("spec", "dim", "frame_dim") if not hasattr(found, part)]
        if lacking or not callable(found):
            raise BadValue(
                f"{self.name}: a {type(found).__name__} is no extractor: give a Recogniser with its head, one that "
                f"as_extractor made, or something called on clips with spec, dim and frame_dim"
            )
        if changes:
            raise BadValue(f"{self.name}: brings its own spec; change {', '.join(changes)} there")
        made: FeatureExtractor = found
        return made

    def fingerprint(self) -> str | None:
        """Of its weights, where there are any; whoever loads them says what is wrong with them."""
        from jostle.io.files.fingerprint import file_fingerprint

        if not self._by_name:
            from jostle.models.fingerprint import tensors_fingerprint

            return tensors_fingerprint(self.get())
        if _is_model(self.given):
            return NamedRecogniser(self.given, self.weights).identity()[0]
        found = _weights(self.given, self.weights)
        if found is None:
            return None
        parts = list(_streams(self.given, Path(found)).values())
        if not all(part.is_file() for part in parts):
            return None
        made = [file_fingerprint(part) for part in parts]
        return made[0] if len(made) == 1 else f"sha256:{hashlib.sha256(' '.join(made).encode()).hexdigest()}"

    @property
    def _by_name(self) -> bool:
        return isinstance(self.given, str) and not is_place(self.given)


def _is_model(name: str) -> bool:
    """Whether a name is that of a recogniser, and not that of an extractor."""
    from jostle.models.extractors.extractor import extractors
    from jostle.models.recognition.recogniser import recognisers

    if "/" in name:
        return True  # of a library of recognisers, whose own names it knows
    if name not in extractors and name not in recognisers:
        raise UnknownName("extractor", name, [*extractors, *recognisers], hint())
    return name not in extractors


def _streams(extractor: str, weights: Path) -> dict[str, Path]:
    """The files that weights are in, by what precedes the names of their tensors."""
    from jostle.models.extractors.extractor import extractors

    parts = extractors[extractor].streams
    if not parts or not weights.is_dir():
        return {"": weights}
    return {f"{part}.": weights / file for part, file in parts.items()}


def _tensors(extractor: str, weights: Path) -> dict[str, Any]:
    from jostle.models.checkpoints import read_weights

    found: dict[str, Any] = {}
    for prefix, path in _streams(extractor, weights).items():
        found |= {f"{prefix}{name}": tensor for name, tensor in read_weights(path).items()}
    return found


def _weights(extractor: str, weights: str | Path | None) -> str | Path | None:
    if weights is None:
        return weights_file(extractor) if extractor in shipped_names() else None
    return weights_path("extractors", extractor, weights) if is_fetched(weights) else weights
