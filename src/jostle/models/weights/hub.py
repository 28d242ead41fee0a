"""Weights of the Hugging Face hub, by `hf:ORG/NAME`: through its own library, with its cache and its tokens."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.core.cache import cache_folder
from jostle.core.state_dict import listed
from jostle.errors import BadValue, JostleError, MissingExtra, ResourceError
from jostle.io.files.atomic import write_bytes
from jostle.models.weights.shipped.sources import HUB

USUAL = "model.safetensors"
PICKLED = "pytorch_model.bin"
# Settings and tensors; what else a repository holds is not fetched.
WANTED = ("*.json", "*.safetensors")
_SAID = re.compile(r"hf:(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[\w.-]+))?(/(?P<file>.+))?")


@dataclass(frozen=True)
class HubPlace:
    """A repository of the hub, or a file in it.

    >>> HubPlace.said("hf:timm/resnet18.a1_in1k@main/model.safetensors")
    HubPlace(repo='timm/resnet18.a1_in1k', revision='main', file='model.safetensors')
    """

    repo: str
    revision: str | None = None
    file: str | None = None

    @classmethod
    def said(cls, text: str) -> HubPlace:
        """What `hf:ORG/NAME[@REVISION][/file]` means."""
        found = _SAID.fullmatch(text)
        if found is None or ".." in text:
            raise BadValue(
                f"weights of the hub are hf:ORG/NAME, hf:ORG/NAME/file or hf:ORG/NAME@REVISION, not {text!r}"
            )
        return cls(**found.groupdict())

    @property
    def address(self) -> str:
        """For a browser."""
        where = f"https://huggingface.co/{self.repo}"
        revision = self.revision or "main"
        return f"{where}/resolve/{revision}/{self.file}" if self.file else f"{where}/tree/{revision}"


def from_hub(said: str, *, folder: bool = False) -> Path:
    """The file that `hf:ORG/NAME/file` means, or of `hf:ORG/NAME` the one file of tensors, or the folder.

    Args:
        folder: whether the network wants a folder, with settings and tensors.

    Raises:
        MissingExtra: without huggingface_hub.
        BadValue: if there is no such thing, or it is not said which.
        ResourceError: if it cannot be reached; the message says what to fetch by hand.
    """
    place = HubPlace.said(said)
    try:
        hub = importlib.import_module("huggingface_hub")
    except ImportError:
        raise MissingExtra(f"weights by {HUB}", "hf") from None
    try:
        if place.file is not None:
            return Path(hub.hf_hub_download(place.repo, place.file, revision=place.revision))
        if folder:
            found = Path(hub.snapshot_download(place.repo, revision=place.revision, allow_patterns=list(WANTED)))
            return found if any(found.glob("*.safetensors")) else _unpickled(hub, place, found)
        return Path(hub.hf_hub_download(place.repo, _only_file(hub, place), revision=place.revision))
    except JostleError:
        raise
    except Exception as error:  # the library's and its transport's own, which have no common base but this
        raise _told(hub, place, error) from None


def _unpickled(hub: Any, place: HubPlace, folder: Path) -> Path:
    """A copy of a folder from before safetensors; its pickle is read without trusting it, and written as such."""
    from jostle.models.checkpoints import read_weights, write_weights

    copy = cache_folder() / "weights" / "huggingface.co" / place.repo / folder.name  # called by the commit
    made = copy / USUAL
    if not made.is_file():
        pickled = hub.hf_hub_download(place.repo, PICKLED, revision=place.revision)
        copy.mkdir(parents=True, exist_ok=True)
        for path in folder.glob("*.json"):
            write_bytes(copy / path.name, [path.read_bytes()])
        write_weights(read_weights(pickled), made, metadata={"format": "pt"})
    return copy


def _only_file(hub: Any, place: HubPlace) -> str:
    """The one file of tensors in a repository."""
    if isinstance(hub.try_to_load_from_cache(place.repo, USUAL, revision=place.revision), str):
        return USUAL  # there without asking
    names: list[str] = hub.list_repo_files(place.repo, revision=place.revision)
    found = [name for name in names if name.endswith(".safetensors")]
    if USUAL in found:
        return USUAL
    if len(found) != 1:
        held = f"{len(found)} files of tensors ({listed(found)})" if found else f"no safetensors ({listed(names)})"
        raise BadValue(f"hf:{place.repo}: holds {held}; say which file, hf:{place.repo}/FILE")
    return found[0]


def _told(hub: Any, place: HubPlace, error: Exception) -> JostleError:
    errors = hub.errors
    first = str(error).strip().split("\n")[0][:200]
    if isinstance(error, errors.GatedRepoError):
        return BadValue(
            f"hf:{place.repo}: its owners ask for consent: give it at {place.address}, then `hf auth login`"
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return BadValue(f"hf:{place.repo}: there is no such repository, or it is private: `hf auth login` ({first})")
    if isinstance(error, errors.RevisionNotFoundError | errors.HFValidationError):
        return BadValue(f"hf:{place.repo}: {first}")
    if isinstance(error, errors.EntryNotFoundError) and not isinstance(error, errors.LocalEntryNotFoundError):
        return BadValue(f"hf:{place.repo}: has no file {place.file!r}; see {HubPlace(place.repo).address}")
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, ConnectionError):
        return ResourceError(
            f"hf:{place.repo}: cannot be kept ({error.strerror}); see that there is room for its cache"
        )
    return ResourceError(
        f"hf:{place.repo}: the hub cannot be reached, and its cache lacks it ({type(error).__name__}: {first}); "
        f"fetch {place.address} by hand, and give the path of what you got as the weights"
    )
