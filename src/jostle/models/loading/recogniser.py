"""Loading of recognisers by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.models.loading.names import need_torch
from jostle.models.weights.resolve import weights_path

if TYPE_CHECKING:
    from jostle.models.recognition.recogniser import Recogniser


def load_recogniser(
    name: str, *, weights: str | Path | Mapping[str, Any] | None = None, device: str = "cpu", **changes: Any
) -> Recogniser:
    """Load a recogniser by name: (B, T, H, W, 3) uint8 clips in, (B, classes) float32 scores out.

    Weights written by `jostle train` include the input spec of their network, and its class names.

    Args:
        name: one of `jostle names models`.
        weights: a checkpoint, a folder of transformers, an `.onnx` file, or tensors by name; for those that come with
            jostle `clean` or `robust`; `public` or `hf:ORG/NAME[/file]` to have them fetched. None gives an error that
            says where to get them.
        device: `cpu` or `cuda`.
        changes: fields of its `InputSpec` to replace, such as `frames=8` or `crops="ten"`; `views`, a named way of
            looking at a video, and settings of the network, where the reference lists them.

    Raises:
        CheckpointError: if the weights do not fit.
        MissingExtra: if the library that the network comes from is not installed.
    """
    need_torch("recognisers")
    from jostle.models.checkpoints import read_metadata, read_note, read_weights
    from jostle.models.recognition.recogniser import find_kind
    from jostle.models.recognition.recogniser import load_recogniser as load

    if isinstance(weights, Mapping):
        return load(name, weights=weights, device=device, **changes)
    path = recogniser_weights(name, weights)
    if path is None or str(path) == "random" or path.is_dir() or path.suffix.lower() == ".onnx":
        return load(name, weights=None if path is None else str(path), device=device, **changes)
    own: dict[str, Any] = read_note(path, "input", {}) if read_metadata(path).get("recogniser") == name else {}
    tensors = read_weights(path, ema=None)
    recogniser = load(name, weights=tensors, device=device, **(find_kind(name).fit(own) | changes))
    if not recogniser.classes:
        recogniser.classes = tuple(map(str, read_note(path, "classes", [])))
    return recogniser


def recogniser_weights(name: str, weights: str | Path | None) -> Path | None:
    """Resolve `weights` to the file or folder of a recogniser."""
    return None if weights is None else weights_path("models", name, weights)
