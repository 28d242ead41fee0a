"""What a caller means by weights: a path, those that come with jostle, or a word that has them fetched."""

from __future__ import annotations

from pathlib import Path

from jostle.errors import BadValue
from jostle.models.weights.download import Progress
from jostle.models.weights.hub import from_hub
from jostle.models.weights.public import fetched
from jostle.models.weights.shipped import trained_weights
from jostle.models.weights.shipped.sources import HUB, PUBLIC, Place, place_of

FOREIGN = ("http://", "https://", "ftp://")


def weights_path(shelf: str, name: str, weights: str | Path, *, progress: Progress | None = None) -> Path:
    """The file or folder that `weights` means for a network; it is fetched first, if that is what they say.

    Args:
        shelf: `models`, `extractors`, `detectors` or `objectdetectors`.
        name: of the network.
        weights: a path; `clean` or `robust`, for those that come with jostle; `public`, or `hf:ORG/NAME[/file]`.
        progress: called with (mebibytes there, mebibytes in all).

    Raises:
        BadValue: if it is not known where public weights are.
        UnknownName: if no weights come with jostle for this model.
    """
    said = str(weights)
    if said == PUBLIC:
        place = public_place(shelf, name)
        if place is None:
            raise BadValue(f"{name}: it is not known where public weights of it are; give the path of a file")
        if place.parts:
            files = [weights_path(shelf, part, said, progress=progress) for part in place.parts]
            return files[-1].parent
        return fetched(name, place, folder=_wants_folder(shelf, name), progress=progress)
    if said.startswith(HUB):
        return from_hub(said, folder=_wants_folder(shelf, name))
    if said.startswith(FOREIGN):
        raise BadValue(
            f"{said}: weights are fetched by {PUBLIC} or hf:ORG/NAME; fetch this yourself, and give the file"
        )
    return trained_weights(name, weights)


def public_place(shelf: str, name: str) -> Place | None:
    """Where public weights of a network are; a network of a whole library says so itself."""
    if shelf == "models" and "/" in name:
        from jostle.models.recognition.recogniser import kind_of

        return kind_of(name).place
    return place_of(shelf, name)


def _wants_folder(shelf: str, name: str) -> bool:
    if shelf == "models":
        from jostle.models.recognition.recogniser import kind_of

        return kind_of(name).takes == "folder"
    if shelf == "objectdetectors":
        from jostle.models.objects.object_detector import object_detectors

        return object_detectors[name].takes == "folder"
    return False
