"""Loading of recognisers by name, and of weights that were trained for one of the caller's own."""

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

    kind = find_kind(name)
    if weights is None:
        more = fetch_hint(kind.place or source_of("models", name))
        raise BadValue(f"{name}: scores of an untrained network mean nothing; give its weights: {kind.source}{more}")
    if isinstance(weights, Mapping):
        return kind.load(weights, changes).to(device)
    path = weights_path("models", name, weights)
    if str(path) == "random" or path.is_dir() or path.suffix.lower() == ".onnx":
        return kind.load(str(path), changes).to(device)
    own: dict[str, Any] = read_note(path, "input", {}) if read_metadata(path).get("recogniser") == name else {}
    tensors = read_weights(path, ema=None)
    recogniser = kind.load(tensors, kind.fit(own) | changes).to(device)
    if not recogniser.classes:
        recogniser.classes = tuple(map(str, read_note(path, "classes", [])))
    return recogniser


def identify_recogniser(name: str, weights: str | Path | None) -> Identity:
    """Return the fingerprint of a recogniser's weights."""
    return identify_weights(None if weights is None else weights_path("models", name, weights))


def load_trained(place: str, weights: Path) -> Recogniser:
    """Load the recogniser of an import path with weights that `jostle train` wrote for it."""
    from jostle.core.settings import convert_settings
    from jostle.models.checkpoints import read_metadata, read_note, read_weights
    from jostle.models.input_spec import InputSpec
    from jostle.models.recognition.recogniser import load_user_recogniser

    whose = read_metadata(weights).get("recogniser")
    if whose != place:
        raise BadValue(
            f"--model {place}: {weights} holds weights of {whose or 'something else'}; give those that "
            "`jostle train` wrote for it, or none if it has its weights already"
        )
    classes = tuple(map(str, read_note(weights, "classes", [])))
    changes = convert_settings(InputSpec, read_note(weights, "input", {}), where=place)
    count = int(read_metadata(weights).get("outputs", len(classes)))
    model = load_user_recogniser(place, count, changes, option="--model", weights=read_weights(weights))
    model.classes = classes
    return model
