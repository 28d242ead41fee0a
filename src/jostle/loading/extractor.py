"""Extractors by name; recognisers serve as such, by what their last layer sees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.errors import UnknownName
from jostle.loading.given import NamedRecogniser
from jostle.loading.installed import need_torch
from jostle.loading.recogniser import load_recogniser
from jostle.shipped import shipped_names, weights_file

if TYPE_CHECKING:
    from jostle.models.extractor import Extractor


def load_extractor(name: str, *, weights: str | Path | None = None, device: str = "cpu", **changes: Any) -> Extractor:
    """A feature extractor by name: (B, T, H, W, 3) uint8 frames in, (B, C) float32 features out.

    Args:
        name: one of `jostle names extractors`; or one of `jostle names models`, whose features are what its last layer
            makes scores of.
        weights: a checkpoint in the public layout, for a model what `jostle.load_recogniser` takes; None for those
            that come with jostle, and where none do, an error that says where to get them.
        device: `cpu` or `cuda`.
        changes: fields of its `InputSpec` to replace, such as `stride=8`.

    Raises:
        CheckpointError: if the weights do not fit.
        MissingExtra: if the library that the network comes from is not installed.
    """
    need_torch("extractors")
    from jostle.detectors.checkpoints import read_weights
    from jostle.models.extractor import load_extractor as load
    from jostle.models.penultimate import as_extractor

    if _is_model(name):
        return as_extractor(load_recogniser(name, weights=weights, device=device, **changes))
    found = _weights(name, weights)
    return load(name, weights=None if found is None else read_weights(found), device=device, **changes)


def extractor_fingerprint(extractor: str, weights: str | Path | None) -> str | None:
    """Of the weights that an extractor gets, where there are any; whoever loads them says what is wrong with them."""
    from jostle.extraction.store import file_fingerprint

    if _is_model(extractor):
        return NamedRecogniser(extractor, weights).identity()[0]
    found = _weights(extractor, weights)
    return file_fingerprint(Path(found)) if found is not None and Path(found).is_file() else None


def _is_model(name: str) -> bool:
    """Whether a name is that of a recogniser, and not that of an extractor."""
    from jostle.models.extractor import extractors
    from jostle.models.recogniser import recognisers

    if name not in extractors and name not in recognisers:
        raise UnknownName("extractor", name, [*extractors, *recognisers])
    return name not in extractors


def _weights(extractor: str, weights: str | Path | None) -> str | Path | None:
    return weights_file(extractor) if weights is None and extractor in shipped_names() else weights
