"""Recognisers by name."""

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
    """A recogniser by name: (B, T, H, W, 3) uint8 clips in, (B, classes) float32 scores out.

    Weights that `jostle train` wrote bring along what their network was shown, and its class names.

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
    from jostle.models.recognition.recogniser import kind_of
    from jostle.models.recognition.recogniser import load_recogniser as load

    if isinstance(weights, Mapping):
        return load(name, weights=weights, device=device, **changes)
    found = recogniser_weights(name, weights)
    if found is None or str(found) == "random" or found.is_dir() or found.suffix.lower() == ".onnx":
        return load(name, weights=None if found is None else str(found), device=device, **changes)
    own: dict[str, Any] = read_note(found, "input", {}) if read_metadata(found).get("recogniser") == name else {}
    tensors = read_weights(found, ema=None)
    made = load(name, weights=tensors, device=device, **(kind_of(name).fit(own) | changes))
    if not made.classes:
        made.classes = tuple(map(str, read_note(found, "classes", [])))
    return made


def recogniser_weights(name: str, weights: str | Path | None) -> Path | None:
    """The file or folder that `weights` means for a recogniser."""
    return None if weights is None else weights_path("models", name, weights)
