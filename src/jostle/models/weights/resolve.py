"""Resolution of weights: a path, bundled weights, or a keyword that downloads them."""

from __future__ import annotations

from pathlib import Path

from jostle.errors import BadValue
from jostle.models.weights.download import Progress
from jostle.models.weights.hub import fetch_from_hub
from jostle.models.weights.public import fetch_weights
from jostle.models.weights.shipped import trained_weights
from jostle.models.weights.shipped.sources import HUB, PUBLIC, WeightSource, source_of

FOREIGN = ("http://", "https://", "ftp://")


def weights_path(registry: str, name: str, weights: str | Path, *, progress: Progress | None = None) -> Path:
    """Resolve `weights` to a file or folder for a network, downloading it if requested.

    Args:
        registry: `models`, `extractors`, `detectors` or `objectdetectors`.
        name: of the network.
        weights: a path; `clean` or `robust`, for those that come with jostle; `public`, or `hf:ORG/NAME[/file]`.
        progress: called with (mebibytes there, mebibytes in all).

    Raises:
        BadValue: if it is not known where public weights are.
        UnknownName: if no weights come with jostle for this model.
    """
    text = str(weights)
    if text == PUBLIC:
        place = public_source(registry, name)
        if place is None:
            raise BadValue(f"{name}: it is not known where public weights of it are; give the path of a file")
        if place.parts:
            files = [weights_path(registry, part, text, progress=progress) for part in place.parts]
            return files[-1].parent
        return fetch_weights(name, place, folder=_wants_folder(registry, name), progress=progress)
    if text.startswith(HUB):
        return fetch_from_hub(text, folder=_wants_folder(registry, name))
    if text.startswith(FOREIGN):
        raise BadValue(
            f"{text}: weights are fetched by {PUBLIC} or hf:ORG/NAME; fetch this yourself, and give the file"
        )
    return trained_weights(name, weights)


def public_source(registry: str, name: str) -> WeightSource | None:
    """Return the source of a network's public weights; a library's network provides its own."""
    if registry == "models" and "/" in name:
        from jostle.models.recognition.recogniser import find_kind

        return find_kind(name).place
    return source_of(registry, name)


def _wants_folder(registry: str, name: str) -> bool:
    if registry == "models":
        from jostle.models.recognition.recogniser import find_kind

        return find_kind(name).takes == "folder"
    if registry == "objectdetectors":
        from jostle.models.objects.object_detector import object_detectors

        return object_detectors[name].takes == "folder"
    return False
